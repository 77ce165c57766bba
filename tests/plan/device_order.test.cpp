// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// Device orders chosen so that least goes between nodes: planted cases, and against the plans made
// with each order.
#include <tessera/program/device_order.hpp>

#include <doctest/doctest.h>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

namespace {

constexpr Machine nodes_of(int processes) {
  Machine machine;
  machine.processes_per_node = processes;
  return machine;
}
constexpr AxisTraffic over(AxisSet group, Index bytes, Collective kind = all_reduce) {
  AxisTraffic traffic;
  traffic.add(kind, group, bytes);
  return traffic;
}
constexpr AxisTraffic both(AxisTraffic a, const AxisTraffic& b) {
  a.add(b);
  return a;
}

// The heavy axis goes within the node.
static_assert(least_network_order(over({0}, 1 << 20), MeshShape{8, 4}, nodes_of(8)) ==
              DeviceOrder{{1, 0}});
static_assert(least_network_order(over({1}, 1 << 20), MeshShape{8, 4}, nodes_of(4)) ==
              DeviceOrder{});
static_assert(least_network_order(both(over({0}, 1 << 20), over({1}, 1 << 10)), MeshShape{8, 8},
                                  nodes_of(8)) == DeviceOrder{{1, 0}});
static_assert(least_network_order(both(over({0}, 1 << 10), over({1}, 1 << 20)), MeshShape{8, 8},
                                  nodes_of(8)) == DeviceOrder{});
// Two of three axes fit into a node of 4: the two that are heavy.
static_assert(least_network_order(both(over({0}, 900), over({2}, 500)), MeshShape{2, 2, 2},
                                  nodes_of(4))
                  .axes[0] == 1);
static_assert(least_network_order(both(over({0}, 900), over({1}, 500)), MeshShape{2, 2, 2},
                                  nodes_of(4))
                  .axes[0] == 2);
// One node, or nothing to send: the mesh's own order.
static_assert(least_network_order(over({0}, 1 << 20), MeshShape{8, 4}, nodes_of(0)) ==
              DeviceOrder{});
static_assert(least_network_order({}, MeshShape{8, 4}, nodes_of(4)) == DeviceOrder{});
// An axis that fits only in part is better within nodes in part than not at all.
static_assert(least_network_order(both(over({0}, 1 << 20), over({1}, 1 << 10)), MeshShape{64, 4},
                                  nodes_of(8)) == DeviceOrder{{1, 0}});

// What crosses: a sum over 8 of which 4 are near goes to one other node; an exchange to its 4
// processes.
static_assert(over({0}, 700).network_payload(MeshShape{8}, nodes_of(4)) == 100);
static_assert(over({0}, 700, all_to_all).network_payload(MeshShape{8}, nodes_of(4)) == 400);
static_assert(over({0}, 700).network_payload(MeshShape{8}, nodes_of(8)) == 0);

}  // namespace

TEST_CASE(
    "no order of the axes sends less between nodes than the one that is chosen, by the plans made "
    "with each") {
  Random random(seed_for("device orders", 51));
  int moved = 0;
  for (int i = 0; i < 60; ++i) {
    const MeshShape mesh = i % 2 == 0 ? MeshShape{2, 4, 8} : MeshShape{8, 2, 2};
    Machine machine = nodes_of(random.of<int>({2, 4, 8, 16}));
    machine.network_payload_ps_per_kib = 100'000'000;  // so that levels always pay
    machine.network_message_ps = 0;
    machine.message_ps = 0;
    machine.payload_ps_per_kib = machine.copy_ps_per_kib = 1;
    std::vector<std::pair<TensorDesc, Sharding>> moves;
    for (int k = 0; k < 3; ++k) {
      // Sums over one axis each: the chain of moves is the same whatever the order of the axes.
      const Index n = 1024 << random.below(4);
      moves.push_back(
          {{DType::f32, {n}, Sharding{{}}.with_partial(AxisSet{random.below(3)}, Reduction::sum)},
           {{}}});
    }
    const auto planned = [&](const DeviceOrder& order) {
      machine.order = order;
      Index bytes = 0;
      for (const auto& [from, to] : moves)
        bytes += ops::Reshard{to}.plan({from}, {mesh, 0, {machine, max_int64}}).network_bytes();
      return bytes;
    };
    AxisTraffic traffic;
    for (const auto& [from, to] : moves)
      traffic.add(traffic_of(ops::Reshard{to}.plan({from}, {mesh})));
    const DeviceOrder chosen = least_network_order(traffic, mesh, machine);
    machine.order = chosen;
    CHECK(traffic.network_payload(mesh, machine) == planned(chosen));
    for (const DeviceOrder& other :
         {DeviceOrder{{0, 1, 2}}, DeviceOrder{{0, 2, 1}}, DeviceOrder{{1, 0, 2}},
          DeviceOrder{{1, 2, 0}}, DeviceOrder{{2, 0, 1}}, DeviceOrder{{2, 1, 0}}})
      CHECK(planned(other) >= planned(chosen));
    moved += !(chosen == DeviceOrder{});
  }
  CHECK(moved > 10);
}

TEST_CASE("traffic is that of calls that know no nodes, however the plan is carried out") {
  const MeshShape mesh{16};
  for (const auto& [from, to] :
       {std::pair{Sharding{{0}, {}}, Sharding{{}, {0}}},
        std::pair{Sharding{{0}, {}}, Sharding{{}, {}}},
        std::pair{Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum), Sharding{{}, {}}},
        std::pair{Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum), Sharding{{0}, {}}}}) {
    const TensorDesc x{DType::f32, {64, 64}, from};
    const Plan staged = ops::Reshard{to}.plan({x}, {mesh, 0, {nodes_of(4), max_int64}});
    CHECK(!staged.steps[0].near.empty());
    CHECK(traffic_of(staged) == traffic_of(ops::Reshard{to}.plan({x}, {mesh})));
    CHECK(traffic_of(staged).network_payload(mesh, nodes_of(4)) == staged.network_bytes());
  }
}
