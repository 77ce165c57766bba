// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which part of a group of axes stays within a node, and which crosses nodes.
///
///     const Machine machine{.processes_per_node = 8};
///     detail::levels(AxisSet{1}, MeshShape{4, 8}, machine).level() == Level::node
///     detail::levels(AxisSet{0, 1}, MeshShape{2, 32}, machine).node == AxisGroup::inner_part({}, 1, 8)
///
/// Laws: the members of the node part are on one node, wherever the group lies; node part and
/// network part make up the group. Where nodes and axes do not divide one another, the node part is
/// the largest that is the same for all processes.
#include <span>

#include <tessera/mesh/machine.hpp>

namespace tessera::detail {

/// A group divided at the borders of the nodes.
struct Levels {
  AxisGroup node;     ///< members within a node; empty: only the process itself
  AxisGroup network;  ///< one member of each node; empty: the group is within a node
  constexpr Level level() const {
    return !network.empty() ? Level::network : !node.empty() ? Level::node : Level::core;
  }
};

constexpr std::int64_t greatest_common_divisor(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// Returns Machine::processes_per_node for processes on these nodes: `nodes` holds, for each
/// process, the lowest process on its node. Returns 0, as for one node, where all share one node,
/// and where nodes are not of equal size and made of consecutive processes (the last may have
/// fewer).
constexpr std::int64_t consecutive_node_size(std::span<const int> nodes) {
  const std::size_t count = nodes.size();
  std::size_t size = 0;
  while (size < count && nodes[size] == 0) ++size;
  if (size == 0 || size == count) return 0;
  for (std::size_t p = size; p < count; ++p)
    if (nodes[p] != static_cast<int>(p / size * size)) return 0;
  return static_cast<std::int64_t>(size);
}

/// Returns how a group lies on the nodes of a machine.
constexpr Levels levels(AxisSet group, const MeshShape& mesh, const Machine& machine) {
  if (machine.one_node(mesh)) return {group, {}};
  const AxisSet axes = (group & mesh.axes()) - mesh.unit_axes();
  Levels found{{}, axes};
  const AxisList order = machine.order.over(mesh);
  std::int64_t stride = 1;
  for (int i = order.size() - 1; i >= 0; --i) {
    const int axis = order[i];
    // Runs of `run` members, stride apart, never cross a node when stride * run divides the node.
    if (machine.processes_per_node % stride != 0) break;
    const std::int64_t run =
        detail::greatest_common_divisor(mesh[axis], machine.processes_per_node / stride);
    if (axes.contains(axis) && run == mesh[axis]) found.node.axes.insert(axis);
    if (axes.contains(axis) && run > 1 && run < mesh[axis])
      found.node = AxisGroup::inner_part(found.node.axes, axis, static_cast<int>(run));
    stride *= mesh[axis];
  }
  found.network = found.node.rest(axes);
  return found;
}

/// Returns whether two processes of a group are on one node: `node` is the part of the group within
/// a node.
constexpr bool on_one_node(const AxisGroup& node, const Coordinates& x, const Coordinates& y) {
  for (int axis = 0; axis < x.size(); ++axis) {
    const bool in_part = axis == node.divided && x[axis] / node.inner == y[axis] / node.inner;
    if (x[axis] != y[axis] && !node.axes.contains(axis) && !in_part) return false;
  }
  return true;
}
}  // namespace tessera::detail
