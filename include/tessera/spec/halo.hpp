// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How far blocks extend beyond what their processes own, and how an extended block lies in memory.
/// plan/op/halo/halo_exchange.hpp fills the halo; plan/region/stored.hpp reads blocks stored within
/// one.
///
///     const Halo halo{{1, 1, Boundary::periodic}, {2, 0, Boundary::none}};   // one a dimension
///     const Box box = detail::extended_box(own, extents, halo);
///
/// Laws: the extended block is row-major over extended_box(); an empty block stays empty; without a
/// halo the box is the block itself.
#include <cstdint>
#include <string_view>

#include <tessera/spec/block.hpp>

namespace tessera {

/// What lies outside a tensor.
enum class Boundary : std::uint8_t {
  none,       ///< nothing: a window reads no element there
  constant,   ///< one value everywhere
  periodic,   ///< the tensor repeated
  reflected,  ///< the tensor mirrored about its outermost elements: b a | b c
  symmetric   ///< the tensor mirrored behind its outermost elements: b a | a b
};
constexpr std::string_view name_of(Boundary boundary) {
  switch (boundary) {
    case Boundary::none:
      return "none";
    case Boundary::constant:
      return "constant";
    case Boundary::periodic:
      return "periodic";
    case Boundary::reflected:
      return "reflected";
    case Boundary::symmetric:
      return "symmetric";
  }
  return "?";
}

/// How far blocks extend along one dimension, and what lies outside the tensor there.
struct HaloDim {
  Index low = 0;
  Index high = 0;
  Boundary boundary = Boundary::none;
  constexpr bool operator==(const HaloDim&) const = default;
};
namespace detail {
template <> inline constexpr Limit list_limit<HaloDim, max_dims> = Limit::dimensions;
}  // namespace detail
/// One for each dimension of the tensor; empty where blocks are not extended.
using Halo = FixedVector<HaloDim, max_dims>;

namespace detail {
/// Returns the extended block of a process that owns `own` of a tensor of `extents`, in indices of
/// the whole tensor, from -low on: they may lie outside the tensor.
constexpr Box extended_box(Box own, const Extents& extents, const Halo& halo) {
  for (int d = 0; d < halo.size(); ++d) {
    Interval& side = own[d];
    const HaloDim& h = halo[d];
    if (h.low == 0 && h.high == 0) continue;
    if (side.size() == 0) {
      side = {0, 0};
      continue;
    }
    side = {side.lo - h.low, side.hi + h.high};
    if (h.boundary == Boundary::none) side = intersect(side, {0, extents[d]});
  }
  return own;
}

/// Returns whether, on some process, a block is narrower along dimension d than its memory.
constexpr bool widened(const TensorDesc& desc, const Halo& halo, int d, const MeshShape& mesh) {
  return d < halo.size() && (halo[d].low > 0 || halo[d].high > 0) &&
         (halo[d].boundary != Boundary::none || mesh.parts(desc.sharding[d]) > 1);
}
/// Returns whether, on some process, the elements of a block that lies within a halo do not follow
/// one another in memory.
constexpr bool has_gaps(const TensorDesc& desc, const Halo& halo, const MeshShape& mesh) {
  bool rows = false;
  for (int d = 0; d < halo.size(); ++d) {
    if (rows && widened(desc, halo, d, mesh)) return true;
    rows = rows || desc.extents[d] > 1;
  }
  return false;
}
}  // namespace detail
}  // namespace tessera
