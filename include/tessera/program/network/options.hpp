// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What `simulate` on a network counts, and how it sends the messages of collectives.
///
///     const NetworkOptions options{.computes = false, .ways = CollectiveWays::links};
#include <tessera/mesh/machine.hpp>

namespace tessera {

/// How a collective sends its messages.
enum class CollectiveWays {
  libraries,  ///< as MPI libraries do (program/network/rounds.hpp)
  /// As the interconnects of accelerators do, over links of their own. All-gathers, reduce-scatters
  /// and all-reduces go around a ring of the members in their order, half of the data each way. All
  /// other messages of a call but a broadcast's set out at once: an all-to-all takes as long as the
  /// link that has most to carry; a message point to point, as the one of its links that has. Half
  /// of a message goes each way where a torus has two that are as short.
  links
};

struct NetworkOptions {
  /// Whether work on a process takes time: of a trace the time that it took; else a step takes what
  /// its plan says, and copies and the products of a loop are priced by `machine`. If not, the
  /// result is communication alone.
  bool computes = true;
  /// The machine that the plans were made for. Its `order` says how the mesh lies on the places.
  Machine machine = {};
  CollectiveWays ways = CollectiveWays::libraries;
};

}  // namespace tessera
