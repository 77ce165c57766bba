// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The networks on which programs are simulated, by name: both what SMPI simulates and what
/// simulate(program, network) computes come from them.
///
///     simgrid::network_of("fat_tree", 64)
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/program/network/network.hpp>

namespace simgrid {

/// Returns a network of links of 100 Gbit/s for a multiple of 16 processes.
inline tessera::Network network_of(const std::string& shape, int processes) {
  using tessera::Network;
  const tessera::NetworkLink link{12.5e9, 1e-6};
  // 8 hosts a switch: all links above, or a quarter of them.
  if (shape == "fat_tree") return Network::fat_tree({8, processes / 8}, {1, 8}, link);
  if (shape == "thin_tree") return Network::fat_tree({8, processes / 8}, {1, 2}, link);
  if (shape == "torus") return Network::torus({4, 4, processes / 16}, link);
  // 8 processes a host, at a switch that is never full.
  if (shape == "nodes") return Network::nodes(processes / 8, 8, {50e9, 1e-7}, link);
  // Groups of one chassis each, for SimGrid's routes within a group of several leave out links or
  // take one too many (3.32 to 4.1); two links side by side between groups.
  if (shape == "dragonfly") {
    const int side = processes < 64 ? 2 : processes < 1024 ? 4 : 8;  // groups, routers of one
    return Network::dragonfly(
        {.groups = side, .routers = side, .nodes = processes / (side * side), .group_links = 2},
        link);
  }
  throw tessera::UsageError("there is no network '" + shape +
                            "'; there are fat_tree, thin_tree, torus, nodes and dragonfly");
}

}  // namespace simgrid
