// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether collectives among the processes of one node go through shared memory (MPI's shared
/// windows), and not through MPI's collectives. comm/shared/team.hpp does it.
///
///     detail::may_share(Shared::automatic, true) == true     // a core for each process
///
/// Laws: the choice is the same on all members of a group; the cost of a call (its payload) and
/// results computed from integers do not depend on it. Results computed from floats do not depend
/// on where buffers lie, nor on how a mesh waits.
#include <cstdint>
#include <string_view>

#include <tessera/base/math.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/comm/detail/variables.hpp>
#include <tessera/mesh/call.hpp>

namespace tessera {

/// `automatic`: when each process of the node has a core. `on`: always. Large calls go through
/// shared memory, and in a group of two also small ones (comm/transport.hpp); so do permutes,
/// exchanges and uneven all-to-alls, if all their data lie in the arenas' shared memory or fit the
/// staging memory.
enum class Shared : std::uint8_t { automatic, off, on };

/// Returns the name that TESSERA_SHARED accepts.
constexpr std::string_view name_of(Shared shared) {
  return shared == Shared::off ? "off" : shared == Shared::on ? "on" : "auto";
}

namespace detail {
/// Returns the choice named by the environment variable TESSERA_SHARED (auto, off or on), else
/// `otherwise`. Throws UsageError for any other text.
inline Shared shared_from_environment(Shared otherwise = Shared::automatic) {
  const int chosen = detail::choice_variable("TESSERA_SHARED", {"auto", "off", "on"});
  return chosen < 0 ? otherwise : static_cast<Shared>(chosen);
}

/// It asks for cores and not for how a mesh waits, since waiting must not change results.
constexpr bool may_share(Shared asked, bool core_for_each_process) {
  return asked == Shared::on || (asked == Shared::automatic && core_for_each_process);
}

/// Returns the bytes that decide whether a call goes through shared memory: a number that every
/// member knows, or 0 for a call of which each member knows only its own part. Point to point and
/// in an uneven all-to-all it is the most that any member sends or receives.
inline Index window_weight(const Call& call) {
  Index elements = 0;
  switch (call.kind) {
    case Collective::all_gather:
      for (const Piece& piece : call.receive) elements += piece.count;
      break;
    case Collective::all_to_all:
      if (!call.even) return call.bound * static_cast<Index>(size_of(call.type));
      [[fallthrough]];
    case Collective::reduce_scatter:
    case Collective::all_reduce:
      for (const Piece& piece : call.send) elements += piece.count;
      break;
    case Collective::broadcast:
      for (const Piece& piece : call.send.empty() ? call.receive : call.send)
        elements += piece.count;
      break;
    case Collective::collective_permute:
    case Collective::exchange:
      elements = call.bound;
      break;
  }
  return elements * static_cast<Index>(size_of(call.type));
}
}  // namespace detail
}  // namespace tessera
