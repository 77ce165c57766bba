// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a mesh lies on the processes of its communicator, as a value: the order in which the axes
/// are counted through (GShard, appendix A.3). Processes with consecutive numbers are near each
/// other, so the members along the last axis of the order are on one node.
///
///     DeviceOrder order{{1, 0}};                       // axis 0 is the innermost
///     device(order, MeshShape{2, 4}, {1, 3}) == 7;   device(order, MeshShape{2, 4}, {1, 0}) == 1
///
/// Laws: device() is a bijection between coordinates and 0 ... processes - 1; in the mesh's own
/// order it equals MeshShape::process.
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// The order of the axes, outermost first; empty: the mesh's own.
struct DeviceOrder {
  AxisList axes;

  /// Returns the order with every axis of `mesh` in it.
  constexpr AxisList over(const MeshShape& mesh) const {
    if (!axes.empty()) return axes;
    AxisList all;
    for (int axis = 0; axis < mesh.rank(); ++axis) all.push_back(axis);
    return all;
  }
  constexpr bool operator==(const DeviceOrder&) const = default;
};

/// Returns true when `order` names each axis of the mesh once, or is empty.
constexpr bool fits(const DeviceOrder& order, const MeshShape& mesh) {
  return order.axes.empty() ||
         (order.axes.size() == mesh.rank() && order.axes.set() == mesh.axes());
}

/// Returns the number, in the communicator, of the process at `at`.
constexpr int device(const DeviceOrder& order, const MeshShape& mesh, const Coordinates& at) {
  const AxisList axes = order.over(mesh);
  int index = 0;
  for (int i = 0; i < axes.size(); ++i) index = index * mesh[axes[i]] + at[axes[i]];
  return index;
}

/// Returns where process `device` of the communicator stands in the mesh.
constexpr Coordinates coordinates_of_device(const DeviceOrder& order, const MeshShape& mesh,
                                            int device) {
  const AxisList axes = order.over(mesh);
  Coordinates at(mesh.rank(), 0);
  for (int i = axes.size() - 1; i >= 0; --i) {
    at[axes[i]] = device % mesh[axes[i]];
    device /= mesh[axes[i]];
  }
  return at;
}

}  // namespace tessera
