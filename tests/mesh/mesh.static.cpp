// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <tessera/mesh/machine.hpp>
#include <tessera/mesh/mesh.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<4> {};
struct expert : Axis<> {
  static constexpr std::string_view name = "experts";
};
struct not_an_axis {};
}  // namespace grid
using grid::data, grid::model, grid::expert;
using Grid = Mesh<data, model, expert>;

static_assert(Grid::rank == 3);
static_assert(Grid::index<data> == 0 && Grid::index<model> == 1 && Grid::index<expert> == 2);
static_assert(Grid::index<grid::not_an_axis> == -1);
static_assert(std::is_same_v<Grid::axis<1>, model>);
static_assert(Grid::names()[0] == "data" && Grid::names()[1] == "model" &&
              Grid::names()[2] == "experts");
static_assert(Grid::fixed_sizes() == FixedVector<int, max_axes>{dynamic, 4, dynamic});
static_assert(MeshAxis<data> && MeshAxis<model> && !MeshAxis<grid::not_an_axis> && !MeshAxis<int>);
static_assert(sizes<Grid>(2, 4, 3).shape == MeshShape{2, 4, 3});
static_assert(!std::is_same_v<Mesh<data, model>, Mesh<model, data>>);

// ---- places
// ------------------------------------------------------------------------------------------------------

consteval bool processes_and_coordinates_are_inverse() {
  for (int a = 1; a <= 4; ++a)
    for (int b = 1; b <= 3; ++b)
      for (int c = 1; c <= 2; ++c) {
        const MeshShape mesh{a, b, c};
        if (mesh.processes() != a * b * c) return false;
        for (int p = 0; p < mesh.processes(); ++p)
          if (mesh.process(mesh.coordinates(p)) != p) return false;
      }
  return true;
}
static_assert(processes_and_coordinates_are_inverse());
static_assert(MeshShape{2, 4}.coordinates(5) == Coordinates{1, 1});
static_assert(MeshShape{3}.axes() == AxisSet{0});

consteval bool groups_are_the_processes_that_differ_along_their_axes() {
  const MeshShape mesh{2, 3, 2};
  for (std::uint32_t bits = 0; bits < 8; ++bits) {
    const AxisSet group = AxisSet::from_bits(bits);
    for (int p = 0; p < mesh.processes(); ++p) {
      const Coordinates at = mesh.coordinates(p);
      int last = -1;
      for (int r = 0; r < mesh.group_size(group); ++r) {
        const Coordinates member = mesh.member(group, at, r);
        if (mesh.place_in_group(group, member) != r) return false;
        for (int a = 0; a < 3; ++a)
          if (!group.contains(a) && member[a] != at[a]) return false;
        if (mesh.process(member) <= last) return false;  // ascending in the mesh
        last = mesh.process(member);
      }
      if (!(mesh.member(group, at, mesh.place_in_group(group, at)) == at)) return false;
    }
  }
  return true;
}
static_assert(groups_are_the_processes_that_differ_along_their_axes());

// ---- sets and lists of axes
// --------------------------------------------------------------------------------------

static_assert(AxisSet{0, 2}.size() == 2 && AxisSet{2, 0} == AxisSet{0, 2});
static_assert((AxisSet{0, 1} | AxisSet{2}) == AxisSet{0, 1, 2});
static_assert((AxisSet{0, 1} & AxisSet{1, 2}) == AxisSet{1} &&
              AxisSet{0, 1} - AxisSet{1, 2} == AxisSet{0});
static_assert(!(AxisList{0, 2} == AxisList{2, 0}) && AxisList{0, 2}.set() == AxisList{2, 0}.set());
static_assert(AxisList{3, 1, 2}.first(2) == AxisList{3, 1} &&
              AxisList{3, 1, 2}.first(0) == AxisList{});
static_assert(AxisList{3, 1, 2}.without(AxisSet{1}) == AxisList{3, 2});
static_assert(AxisList{0, 1, 2}.common_prefix(AxisList{0, 2, 1}) == 1 &&
              AxisList{0, 1}.starts_with(AxisList{0}));
static_assert(AxisList{0, 1}.starts_with(AxisList{}) && !AxisList{}.starts_with(AxisList{0}));
static_assert(!(AxisList{0} == AxisList{}) && AxisList{0}.contains(0) && !AxisList{}.contains(0));
static_assert(AxisList{5, 4, 3, 2, 1, 0}.size() == 6 && AxisList{5, 4, 3, 2, 1, 0}[5] == 0 &&
              AxisList{5, 4, 3, 2, 1, 0}[0] == 5);

// ---- prices
// ------------------------------------------------------------------------------------------------------

consteval bool a_larger_payload_never_costs_less() {
  const Machine machine;
  std::int64_t last = 0;
  for (Index bytes = 0; bytes < 5000; bytes += 7) {
    if (machine.transfer(bytes, 1) < last) return false;
    last = machine.transfer(bytes, 1);
  }
  return machine.transfer(max_int64, max_int64) == max_int64 &&
         machine.compute(max_int64, DType::f32) == max_int64;
}
static_assert(a_larger_payload_never_costs_less());
