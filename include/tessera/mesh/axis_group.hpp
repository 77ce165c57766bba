// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A group of processes as a value: processes that differ in their coordinates on some axes and, on
/// at most one more axis, in one part of the coordinate. Plans and specs know whole axes only;
/// parts arise where a collective over an axis that spans nodes is done within nodes and between
/// them (mesh/levels.hpp).
///
///     AxisGroup whole = AxisSet{0, 1};                 // a set of axes is a group
///     const auto near = AxisGroup::inner_part({1}, 0, 4);   // axis 1, and axis 0 in runs of 4
///     near.rest(AxisSet{0, 1}) == AxisGroup::outer_part({}, 0, 4)
///
/// Laws: a coordinate on the divided axis is outer part * inner + inner part; a group and its rest
/// have one process in common, and their sizes multiply to the size of the whole.
#include <cstdint>

#include <tessera/mesh/axis_list.hpp>

namespace tessera {

struct AxisGroup {
  AxisSet axes;              ///< axes along which members differ freely
  std::int8_t divided = -1;  ///< an axis on which they differ in one part only; -1: none
  bool outer = false;        ///< which part of its coordinate: / inner, or % inner
  std::int32_t inner = 1;    ///< the size of the inner part; it divides the axis

  constexpr AxisGroup() = default;
  constexpr AxisGroup(AxisSet whole) : axes(whole) {}
  /// Returns the group over the axes `whole` and runs of `size` neighbours along `axis`.
  static constexpr AxisGroup inner_part(AxisSet whole, int axis, int size) {
    AxisGroup group(whole);
    group.divided = static_cast<std::int8_t>(axis);
    group.inner = size;
    return group;
  }
  /// Returns the group over the axes `whole` and every `stride`-th process along `axis`.
  static constexpr AxisGroup outer_part(AxisSet whole, int axis, int stride) {
    AxisGroup group = inner_part(whole, axis, stride);
    group.outer = true;
    return group;
  }
  constexpr bool empty() const { return axes.empty() && divided < 0; }
  constexpr bool is_divided() const { return divided >= 0; }
  /// Returns the axes along which members differ, wholly or in part.
  constexpr AxisSet spanned() const {
    AxisSet all = axes;
    if (divided >= 0) all.insert(divided);
    return all;
  }
  /// Returns the group that makes up `whole` together with this one.
  constexpr AxisGroup rest(AxisSet whole) const {
    AxisGroup other(whole - spanned());
    if (divided < 0) return other;
    other.divided = divided;
    other.inner = inner;
    other.outer = !outer;
    return other;
  }
  /// Returns a number that distinguishes the groups of one mesh.
  constexpr std::uint64_t key() const {
    const std::uint64_t part = divided < 0 ? 0
                                           : static_cast<std::uint64_t>(inner) << 4 |
                                                 static_cast<std::uint64_t>(divided) << 1 |
                                                 (outer ? 1u : 0u);
    return static_cast<std::uint64_t>(axes.bits) | part << max_axes;
  }
  constexpr bool operator==(const AxisGroup&) const = default;
};

}  // namespace tessera
