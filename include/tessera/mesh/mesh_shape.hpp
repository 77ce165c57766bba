// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The sizes of a mesh's axes as a value, and where each process stands in it.
///
///     MeshShape shape{2, 4};
///     shape.processes() == 8;   shape.coordinates(5)[0] == 1;   shape.coordinates(5)[1] == 1
///
/// Laws: process(coordinates(r)) == r: processes are numbered row-major, the last axis fastest.
#include <initializer_list>
#include <string_view>
#include <vector>

#include <tessera/base/fixed_vector.hpp>
#include <tessera/mesh/axis_group.hpp>

namespace tessera {

/// One process's place along each axis.
using Coordinates = FixedVector<int, max_axes>;
/// The printed name of each axis.
using AxisNames = FixedVector<std::string_view, max_axes>;

class MeshShape {
 public:
  constexpr MeshShape() = default;
  constexpr MeshShape(std::initializer_list<int> sizes) : sizes_(sizes) {}
  /// Takes sizes that are known when the program runs. Throws MeshError for more than max_axes.
  MeshShape(const std::vector<int>& sizes) {  // NOLINT: a list of sizes is a shape
    sizes_.resize(static_cast<int>(sizes.size()));
    for (int a = 0; a < rank(); ++a) sizes_[a] = sizes[static_cast<std::size_t>(a)];
  }
  constexpr void push_back(int size) { sizes_.push_back(size); }

  constexpr int rank() const { return sizes_.size(); }
  constexpr int operator[](int axis) const { return sizes_[axis]; }
  constexpr AxisSet axes() const { return AxisSet::from_bits((1u << rank()) - 1); }

  /// Returns the axes of size 1: splitting or gathering over them does nothing.
  constexpr AxisSet unit_axes() const {
    AxisSet units;
    for (int a = 0; a < rank(); ++a)
      if (sizes_[a] == 1) units.insert(a);
    return units;
  }

  constexpr int processes() const { return group_size(axes()); }
  /// Returns the number of processes that differ only in their coordinates on the axes of `group`.
  constexpr int group_size(AxisSet group) const {
    int product = 1;
    for (int a = 0; a < rank(); ++a)
      if (group.contains(a)) product *= sizes_[a];
    return product;
  }
  /// Returns the number of parts into which a list of axes cuts a dimension.
  constexpr int parts(AxisList axes) const {
    int product = 1;
    for (int i = 0; i < axes.size(); ++i) product *= sizes_[axes[i]];
    return product;
  }
  constexpr Coordinates coordinates(int process) const {
    Coordinates at(rank(), 0);
    for (int a = rank() - 1; a >= 0; --a) {
      at[a] = process % sizes_[a];
      process /= sizes_[a];
    }
    return at;
  }
  constexpr int process(const Coordinates& at) const {
    int index = 0;
    for (int a = 0; a < rank(); ++a) index = index * sizes_[a] + at[a];
    return index;
  }
  /// Returns the number of the process at `at` within its group: row-major over the group's axes in
  /// mesh order.
  constexpr int place_in_group(AxisSet group, const Coordinates& at) const {
    int index = 0;
    for (int a = 0; a < rank(); ++a)
      if (group.contains(a)) index = index * sizes_[a] + at[a];
    return index;
  }
  /// Returns the coordinates of member `rank_in_group` of the group that `at` belongs to.
  constexpr Coordinates member(AxisSet group, Coordinates at, int rank_in_group) const {
    for (int a = rank() - 1; a >= 0; --a)
      if (group.contains(a)) {
        at[a] = rank_in_group % sizes_[a];
        rank_in_group /= sizes_[a];
      }
    return at;
  }

  // These overloads are for a group that may hold an axis in part. Its members are numbered in
  // row-major order over its axes in mesh order, where a divided axis has the size of its part.
  constexpr int group_size(const AxisGroup& group) const {
    return group_size(group.axes) * (group.is_divided() ? part_size(group) : 1);
  }
  constexpr int place_in_group(const AxisGroup& group, const Coordinates& at) const {
    if (!group.is_divided()) return place_in_group(group.axes, at);
    int index = 0;
    for (int a = 0; a < rank(); ++a)
      if (a == group.divided)
        index =
            index * part_size(group) + (group.outer ? at[a] / group.inner : at[a] % group.inner);
      else if (group.axes.contains(a))
        index = index * sizes_[a] + at[a];
    return index;
  }
  constexpr Coordinates member(const AxisGroup& group, Coordinates at, int rank_in_group) const {
    if (!group.is_divided()) return member(group.axes, at, rank_in_group);
    for (int a = rank() - 1; a >= 0; --a) {
      if (a != group.divided && !group.axes.contains(a)) continue;
      const int size = a == group.divided ? part_size(group) : sizes_[a];
      const int place = rank_in_group % size;
      rank_in_group /= size;
      if (a != group.divided)
        at[a] = place;
      else if (group.outer)
        at[a] = place * group.inner + at[a] % group.inner;
      else
        at[a] = at[a] / group.inner * group.inner + place;
    }
    return at;
  }
  constexpr bool operator==(const MeshShape&) const = default;

 private:
  constexpr int part_size(const AxisGroup& group) const {
    return group.outer ? sizes_[group.divided] / group.inner : group.inner;
  }

  FixedVector<int, max_axes> sizes_;
};

}  // namespace tessera
