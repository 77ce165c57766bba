// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device assignments: the constructors give every process one place, and the place that they say.
#include <tessera/mesh/device_assignment.hpp>

namespace {
using namespace tessera;

constexpr bool every_process_once(const DeviceAssignment& assignment, const MeshShape& shape) {
  if (assignment.size() != shape.processes()) return false;
  for (int p = 0; p < shape.processes(); ++p) {
    const int position = assignment.position(p);
    if (position < 0 || assignment[position] != p) return false;
  }
  return true;
}
/// Consecutive processes differ by one step along one axis.
constexpr bool steps_are_to_neighbours(const DeviceAssignment& assignment, const MeshShape& shape) {
  for (int p = 0; p + 1 < shape.processes(); ++p) {
    const Coordinates a = shape.coordinates(assignment.position(p));
    const Coordinates b = shape.coordinates(assignment.position(p + 1));
    int distance = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      distance += a[axis] > b[axis] ? a[axis] - b[axis] : b[axis] - a[axis];
    if (distance != 1) return false;
  }
  return true;
}
consteval bool constructors_are_legal(int a) {
  for (int b = 1; b <= 3; ++b)
    for (int c = 1; c <= 3; ++c) {
      const MeshShape shape{a, b, c};
      if (!every_process_once(as_snake(shape), shape) ||
          !steps_are_to_neighbours(as_snake(shape), shape))
        return false;
      if (!every_process_once(along_axes(shape, {{2, 0, 1}}), shape)) return false;
      for (int t = 1; t <= a; ++t)
        if (a % t == 0 && !every_process_once(in_tiles(shape, {t, b, 1}), shape)) return false;
    }
  return true;
}
static_assert(constructors_are_legal(1) && constructors_are_legal(2));
static_assert(constructors_are_legal(3));
static_assert(constructors_are_legal(4));

static_assert(DeviceAssignment{}.natural() && DeviceAssignment{}[5] == 5 &&
              DeviceAssignment{}.position(3) == 3);
static_assert(DeviceAssignment{2, 0, 1}.position(1) == 2 &&
              DeviceAssignment{2, 0, 1}.position(7) == -1);
static_assert(along_axes(MeshShape{2, 3}, {}) == DeviceAssignment{0, 1, 2, 3, 4, 5});
static_assert(along_axes(MeshShape{2, 3}, {{1, 0}}) == DeviceAssignment{0, 2, 4, 1, 3, 5});
static_assert(in_tiles(MeshShape{2, 4}, {2, 2}) ==
              DeviceAssignment{0, 1, 4, 5, 2, 3, 6, 7});  // GShard, figure 10
static_assert(as_snake(MeshShape{2, 3}) == DeviceAssignment{0, 1, 2, 5, 4, 3});

consteval bool agrees_with_the_order_of_axes() {
  const MeshShape shape{2, 3, 4};
  for (const DeviceOrder& order : {DeviceOrder{}, DeviceOrder{{2, 1, 0}}, DeviceOrder{{1, 2, 0}}})
    for (int p = 0; p < shape.processes(); ++p)
      if (along_axes(shape, order)[p] != device(order, shape, shape.coordinates(p))) return false;
  return true;
}
static_assert(agrees_with_the_order_of_axes());
}  // namespace
