// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The least bytes that a move can send, element by element: what is needed where it is not, shared
/// evenly, and what one process alone has and another needs.
///
///     support::Holders has = support::holders(x, mesh), needs = support::holders(y, mesh);
///     support::least_payload(has, needs, mesh, 8)         // the least that the process with most sends
#include <cstdint>
#include <vector>

#include <tessera/spec/block.hpp>

namespace support {
using namespace tessera;

/// For each element of a tensor, in row-major order, the set of the processes that hold it, as
/// bits.
using Holders = std::vector<std::uint64_t>;

inline Holders holders(const TensorDesc& x, const MeshShape& mesh) {
  Holders held(static_cast<std::size_t>(volume(x.extents)), 0);
  for (int process = 0; process < mesh.processes(); ++process) {
    const Box mine = block(x.extents, x.sharding, mesh, mesh.coordinates(process));
    for (std::size_t i = 0; i < held.size(); ++i) {
      Index rest = static_cast<Index>(i);
      bool in = true;
      for (int d = x.rank() - 1; d >= 0; --d) {
        const Index place = rest % x.extents[d];
        rest /= x.extents[d];
        in = in && mine[d].lo <= place && place < mine[d].hi;
      }
      if (in) held[i] |= std::uint64_t{1} << process;
    }
  }
  return held;
}

/// Returns a lower bound of what the process that sends most sends.
inline Index least_payload(const Holders& has, const Holders& needs, const MeshShape& mesh,
                           Index unit) {
  std::vector<Index> alone(static_cast<std::size_t>(mesh.processes()), 0);
  Index all = 0;
  for (std::size_t i = 0; i < has.size(); ++i)
    for (std::uint64_t missing = needs[i] & ~has[i], first = missing; missing != 0;
         missing &= missing - 1) {
      ++all;
      if (missing == first && (has[i] & (has[i] - 1)) == 0)
        for (std::size_t p = 0; p < alone.size(); ++p) alone[p] += has[i] >> p & 1;
    }
  Index least = ceil_div(all, mesh.processes());
  for (const Index one : alone) least = max_of(least, one);
  return least * unit;
}
inline Index least_payload(const TensorDesc& from, const TensorDesc& to, const MeshShape& mesh) {
  return least_payload(holders(from, mesh), holders(to, mesh), mesh,
                       static_cast<Index>(size_of(from.type)));
}

}  // namespace support
