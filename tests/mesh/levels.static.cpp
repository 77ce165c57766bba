// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Groups that hold an axis in part, and which part of a group is within a node.
#include <tessera/mesh/levels.hpp>

namespace {
using namespace tessera;

// ---- groups ----------------------------------------------------------------------------------

constexpr MeshShape mesh{4, 3, 6};

/// Members of a group are numbered 0 ... size - 1, and a group and its rest cross in one process.
consteval bool cut_in_two(const AxisGroup& group, AxisSet whole) {
  const AxisGroup rest = group.rest(whole);
  if (mesh.group_size(group) * mesh.group_size(rest) != mesh.group_size(whole)) return false;
  if (!(rest.rest(whole) == group)) return false;
  for (int process = 0; process < mesh.processes(); process += 5) {
    const Coordinates at = mesh.coordinates(process);
    bool reached[72] = {};
    for (int i = 0; i < mesh.group_size(group); ++i) {
      const Coordinates one = mesh.member(group, at, i);
      if (mesh.place_in_group(group, one) != i) return false;
      if (mesh.place_in_group(rest, one) != mesh.place_in_group(rest, at)) return false;
      for (int o = 0; o < mesh.group_size(rest); ++o) {
        const Coordinates other = mesh.member(rest, one, o);
        if (mesh.place_in_group(group, other) != i) return false;
        reached[mesh.process(other)] = true;
      }
    }
    int count = 0;
    for (bool r : reached) count += r;
    if (count != mesh.group_size(whole)) return false;
    if (!(mesh.member(group, at, mesh.place_in_group(group, at)) == at)) return false;
  }
  return true;
}
static_assert(cut_in_two(AxisGroup::inner_part({}, 2, 2), {2}));
static_assert(cut_in_two(AxisGroup::inner_part({2}, 0, 2), {0, 1, 2}));
static_assert(cut_in_two(AxisGroup::outer_part({1}, 2, 3), {1, 2}));
static_assert(cut_in_two(AxisSet{2}, {0, 2}));
static_assert(AxisGroup(AxisSet{1}).key() != AxisGroup::inner_part({1}, 2, 2).key());
static_assert(AxisGroup::outer_part({1}, 2, 2).key() != AxisGroup::inner_part({1}, 2, 2).key());
static_assert(AxisGroup::inner_part({1}, 2, 2).spanned() == AxisSet{1, 2});

// ---- levels ----------------------------------------------------------------------------------

constexpr Machine nodes_of(int processes, DeviceOrder order = {}) {
  Machine machine;
  machine.processes_per_node = processes;
  machine.order = order;
  return machine;
}
constexpr detail::Levels over(AxisSet group, const MeshShape& shape, const Machine& machine) {
  return detail::levels(group, shape, machine);
}

static_assert(over({0}, MeshShape{64}, nodes_of(0)).level() == Level::node);
static_assert(over({0}, MeshShape{6}, nodes_of(8)).level() == Level::node);
static_assert(over({1}, MeshShape{4, 8}, nodes_of(8)).node == AxisGroup(AxisSet{1}));
static_assert(over({1}, MeshShape{4, 8}, nodes_of(8)).network.empty());
static_assert(over({0}, MeshShape{4, 8}, nodes_of(8)).node.empty());
static_assert(over({0}, MeshShape{4, 8}, nodes_of(8)).level() == Level::network);
static_assert(over({0, 1}, MeshShape{4, 8}, nodes_of(8)).node == AxisGroup(AxisSet{1}));
static_assert(over({0, 1}, MeshShape{4, 8}, nodes_of(8)).network == AxisGroup(AxisSet{0}));
static_assert(over({0, 1}, MeshShape{2, 32}, nodes_of(8)).node == AxisGroup::inner_part({}, 1, 8));
static_assert(over({0, 1}, MeshShape{2, 32}, nodes_of(8)).network ==
              AxisGroup::outer_part({0}, 1, 8));
static_assert(over({0, 1}, MeshShape{4, 6}, nodes_of(12)).node == AxisGroup::inner_part({1}, 0, 2));
static_assert(over({0}, MeshShape{4, 6}, nodes_of(12)).node == AxisGroup::inner_part({}, 0, 2));
static_assert(over({1}, MeshShape{4, 6}, nodes_of(4)).node == AxisGroup::inner_part({}, 1, 2));
static_assert(over({0}, MeshShape{4, 6}, nodes_of(4)).node.empty());
static_assert(over({0, 1}, MeshShape{1, 1}, nodes_of(4)).level() == Level::node);
static_assert(over({1}, MeshShape{8, 1}, nodes_of(4)).level() == Level::core);
// The order of the devices decides which axis is near.
static_assert(over({0}, MeshShape{8, 4}, nodes_of(8, {{1, 0}})).level() == Level::node);
static_assert(over({1}, MeshShape{8, 4}, nodes_of(8, {{1, 0}})).level() == Level::network);
static_assert(over({0, 1}, MeshShape{8, 4}, nodes_of(4, {{1, 0}})).node ==
              AxisGroup::inner_part({}, 0, 4));

/// The members of the node part are on one node; of the rest, no two are, where all divides.
consteval bool on_one_node(const MeshShape& shape, const Machine& machine) {
  const auto node = [&](const Coordinates& at) {
    return device(machine.order, shape, at) / machine.processes_per_node;
  };
  for (std::uint32_t bits = 1; bits < 1u << shape.rank(); ++bits) {
    const AxisSet group = AxisSet::from_bits(bits);
    const detail::Levels found = detail::levels(group, shape, machine);
    for (int process = 0; process < shape.processes(); ++process) {
      const Coordinates at = shape.coordinates(process);
      for (int k = 0; k < shape.group_size(found.node); ++k)
        if (node(shape.member(found.node, at, k)) != node(at)) return false;
    }
    if (shape.group_size(found.node) * shape.group_size(found.network) != shape.group_size(group))
      return false;
  }
  return true;
}
static_assert(on_one_node(MeshShape{3, 4}, nodes_of(6)));
static_assert(on_one_node(MeshShape{3, 4}, nodes_of(4)));
static_assert(on_one_node(MeshShape{2, 3, 4}, nodes_of(6, {{2, 0, 1}})));
static_assert(on_one_node(MeshShape{2, 3, 4}, nodes_of(8, {{1, 2, 0}})));
static_assert(on_one_node(MeshShape{5, 2}, nodes_of(3)));

// ---- prices ----------------------------------------------------------------------------------

static_assert(Machine{}.transfer(1024, 1) == Machine{}.transfer(1024, 1, Level::node));
static_assert(Machine{}.transfer(1024, 2, Level::network) == 2 * 2'000'000 + 800'000);
static_assert(Machine{}.transfer(1024, 2, Level::core) == Machine{}.copy(1024));
static_assert(Machine{}.transfer(max_int64, max_int64, Level::network) == max_int64);
}  // namespace

// ---- how processes lie on nodes -----------------------------------------------------------------

template <std::size_t N> constexpr std::int64_t node_size(const int (&nodes)[N]) {
  return detail::consecutive_node_size(std::span<const int>(nodes));
}
static_assert(node_size({0, 0, 0, 0}) == 0);  // one node
static_assert(node_size({0, 0, 2, 2, 4, 4}) == 2);
static_assert(node_size({0, 1, 2}) == 1);
static_assert(node_size({0, 0, 0, 3, 3}) == 3);  // the last has fewer
static_assert(node_size({0, 0, 2, 2, 2}) == 0);  // or more
static_assert(node_size({0, 1, 0, 1}) == 0);     // by turns
static_assert(node_size({0, 0, 2, 3}) == 0);
static_assert(detail::consecutive_node_size({}) == 0);
