// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which process stands where in a mesh (GShard, appendix A.3), as a plain list: the process at
/// each position, with positions counted row-major. Meshes take one as an option. Planners reason
/// about an order of axes instead (mesh/device_order.hpp).
///
///     DeviceAssignment assignment{0, 2, 1, 3};             // position 1 is process 2
///     in_tiles(MeshShape{4, 4}, {2, 2})                    // processes 0..3 fill a 2 x 2 corner
///     MeshOptions options{.device_assignment = in_tiles(MeshShape{4, 4}, {2, 2})};
///
/// Laws: a legal assignment holds every process once; a.position(a[i]) == i; the functions here
/// give legal ones; along_axes(shape, order)[shape.process(at)] == device(order, shape, at).
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/mesh/device_order.hpp>

namespace tessera {

class DeviceAssignment {
 public:
  /// Leaves the processes in the order of their numbers.
  constexpr DeviceAssignment() = default;
  constexpr DeviceAssignment(std::initializer_list<int> processes) : processes_(processes) {}
  constexpr explicit DeviceAssignment(std::vector<int> processes)
      : processes_(std::move(processes)) {}

  /// Returns whether no list was given: position i is process i.
  constexpr bool natural() const { return processes_.empty(); }
  constexpr int size() const { return static_cast<int>(processes_.size()); }
  /// Returns the process at a position.
  constexpr int operator[](int position) const {
    return natural() ? position : processes_[static_cast<std::size_t>(position)];
  }
  /// Returns the position of a process, or -1 when it has none.
  constexpr int position(int process) const {
    if (natural()) return process;
    for (int i = 0; i < size(); ++i)
      if ((*this)[i] == process) return i;
    return -1;
  }
  constexpr const std::vector<int>& processes() const { return processes_; }

  /// Returns what is wrong with this assignment for `count` processes, or nothing.
  std::string fault(int count) const {
    if (natural()) return "";
    if (size() != count)
      return "the device assignment lists " + std::to_string(size()) +
             " processes and the mesh has " + std::to_string(count) + "; list every process once";
    std::vector<int> seen(static_cast<std::size_t>(count), -1);
    for (int i = 0; i < count; ++i) {
      const int process = (*this)[i];
      if (process < 0 || process >= count)
        return "the device assignment puts process " + std::to_string(process) + " at position " +
               std::to_string(i) + ", but processes are numbered 0 to " +
               std::to_string(count - 1) + "; list every process once";
      int& first = seen[static_cast<std::size_t>(process)];
      if (first >= 0)
        return "the device assignment puts process " + std::to_string(process) + " at positions " +
               std::to_string(first) + " and " + std::to_string(i) + "; list every process once";
      first = i;
    }
    return "";
  }
  constexpr bool operator==(const DeviceAssignment&) const = default;

 private:
  std::vector<int> processes_;
};

/// Returns the assignment in which consecutive processes go along the axes as ordered, the last one
/// fastest: {{1, 0}} numbers a mesh of two axes column by column. Throws MeshError unless every
/// axis is named once.
constexpr DeviceAssignment along_axes(const MeshShape& shape, const DeviceOrder& order) {
  if (!fits(order, shape))
    throw MeshError("a device order goes through " + std::to_string(order.axes.size()) +
                    " axes of a mesh of " + std::to_string(shape.rank()) +
                    "; name every axis of the mesh once, the outermost first");
  std::vector<int> processes;
  for (int position = 0; position < shape.processes(); ++position)
    processes.push_back(device(order, shape, shape.coordinates(position)));
  return DeviceAssignment(std::move(processes));
}

/// Returns the assignment in which consecutive processes fill tiles of `tile` positions, tile after
/// tile (GShard, figure 10): when a tile has as many positions as a node has processes, both axes
/// of a mesh stay partly within nodes. Throws MeshError unless the tile divides the mesh.
constexpr DeviceAssignment in_tiles(const MeshShape& shape, const MeshShape& tile) {
  bool fits = tile.rank() == shape.rank();
  for (int a = 0; fits && a < shape.rank(); ++a) fits = tile[a] > 0 && shape[a] % tile[a] == 0;
  if (!fits)
    throw MeshError(
        "the tiles of a device assignment do not divide the mesh; give one size for each axis, a "
        "divisor of the axis's own");
  std::vector<int> processes;
  for (int position = 0; position < shape.processes(); ++position) {
    const Coordinates at = shape.coordinates(position);
    int which = 0;
    int within = 0;
    for (int a = 0; a < shape.rank(); ++a) {
      which = which * (shape[a] / tile[a]) + at[a] / tile[a];
      within = within * tile[a] + at[a] % tile[a];
    }
    processes.push_back(which * tile.processes() + within);
  }
  return DeviceAssignment(std::move(processes));
}

/// Returns the assignment in which consecutive processes are always neighbours in the mesh: every
/// other line runs backwards. It suits a machine that is a chain or a ring.
constexpr DeviceAssignment as_snake(const MeshShape& shape) {
  std::vector<int> processes;
  for (int position = 0; position < shape.processes(); ++position) {
    const Coordinates at = shape.coordinates(position);
    int process = 0;
    bool backwards = false;
    for (int a = 0; a < shape.rank(); ++a) {
      const int step = backwards ? shape[a] - 1 - at[a] : at[a];
      process = process * shape[a] + step;
      backwards = process % 2 != 0;
    }
    processes.push_back(process);
  }
  return DeviceAssignment(std::move(processes));
}

}  // namespace tessera
