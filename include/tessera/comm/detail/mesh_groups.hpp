// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The groups of a mesh that contain this process, by their axes.
///
///     std::unique_ptr<GroupEntry>& found = groups.find(axes);      // empty before it is made
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/mesh/axis_group.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera::detail {

inline constexpr std::uint64_t control_purpose = 1;
inline constexpr std::uint64_t data_purpose = 2;

/// A group that has been made, with everything that belongs to it.
struct GroupEntry {
  AxisGroup axes;
  std::shared_ptr<Group> group;
  std::shared_ptr<Group> control;  ///< for level heavy
  std::string over;
};

class MeshGroups {
 public:
  /// Returns where the group over `axes` is kept.
  std::unique_ptr<GroupEntry>& find(const AxisGroup& axes) {
    if (!axes.is_divided()) return whole_[axes.axes.bits];
    for (auto& known : divided_)
      if (known != nullptr && known->axes == axes) return known;
    return divided_.emplace_back();
  }
  void clear() {
    for (auto& group : whole_) group.reset();
    divided_.clear();
  }

 private:
  std::array<std::unique_ptr<GroupEntry>, 1u << max_axes> whole_;
  std::vector<std::unique_ptr<GroupEntry>> divided_;
};

/// Makes the group over `axes` of the process at `at`. Collective over: its members.
inline std::shared_ptr<Group> make_group(Transport& transport, const MeshShape& shape,
                                         const Coordinates& at, const AxisGroup& axes,
                                         std::uint64_t purpose) {
  std::vector<int> members;
  for (int k = 0; k < shape.group_size(axes); ++k)
    members.push_back(shape.process(shape.member(axes, at, k)));
  return transport.group(
      members, mix(mix(purpose, axes.key()), static_cast<std::uint64_t>(members.front())));
}

}  // namespace tessera::detail
