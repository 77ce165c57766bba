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
  /// and all-reduces go around a ring of the members in their order, half of the data each way. The
  /// messages of all-to-alls and those point to point set out at once. An all-to-all ends when the
  /// fullest link is done, a message point to point when the fullest of its own links is. Where a
  /// torus has two ways that are as short, half of a message goes each way.
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
