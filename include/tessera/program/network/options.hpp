// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What `simulate` on a network counts, and how it sends the messages of collectives.
///
///     const NetworkOptions options{.computes = false, .ways = CollectiveWays::links};
#include <tessera/mesh/machine.hpp>

namespace tessera {

/// How the messages of collectives go.
enum class CollectiveWays {
  libraries,  ///< as MPI libraries send them (program/network/rounds.hpp)
  /// As the interconnects of accelerators do, over links that are their own: all-gathers,
  /// reduce-scatters and all-reduces around a ring of the members in their order, half of it each
  /// way; of an all-to-all all messages at once, so that it takes as long as the link that has most
  /// to carry.
  links
};

struct NetworkOptions {
  /// Whether work on a process takes time: a step what its plan says, copies and the products of a
  /// loop by `machine`; else the result is communication alone.
  bool computes = true;
  /// Give that which the plans were made for. Its `order` says how the mesh lies on the places.
  Machine machine = {};
  CollectiveWays ways = CollectiveWays::libraries;
};

}  // namespace tessera
