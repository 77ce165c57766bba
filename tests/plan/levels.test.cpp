// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// Collectives whose group spans nodes: when they go in levels, by which calls, and what crosses the
// network. That their results are right is tests/plan/reshard.test.cpp's matter, on random
// machines.
#include <doctest/doctest.h>

#include "support/dry_run.hpp"

using namespace tessera;
using namespace support;

namespace {

constexpr Machine nodes_of(int processes) {
  Machine machine;
  machine.processes_per_node = processes;
  return machine;
}
Plan reshard(const Extents& extents, const Sharding& from, const Sharding& to,
             const MeshShape& mesh, const Machine& machine, int process = 0) {
  return ops::Reshard{to}.plan({TensorDesc{DType::f32, extents, from}},
                               {mesh, process, {machine, max_int64}});
}
Sharding open_over(AxisSet axes, int rank) {
  return Sharding::replicated(rank).with_partial(axes, Reduction::sum);
}

struct Made {
  Collective kind;
  AxisGroup group;
  Index network;
  bool operator==(const Made&) const = default;
};
std::vector<Made> calls_of(const Plan& plan) {
  std::vector<Made> made;
  for (const Call& call : instructions_of(plan).calls)
    made.push_back({call.kind, call.group, detail::network_bytes(call)});
  return made;
}
const AxisGroup near8 = AxisGroup::inner_part({}, 0, 8);
const AxisGroup far8 = AxisGroup::outer_part({}, 0, 8);

}  // namespace

TEST_CASE("an axis that spans nodes: each element crosses the network as often as it must") {
  const MeshShape mesh{64};
  const Machine machine = nodes_of(8);
  const Index n = Index{1} << 20;
  const auto only = [](const Plan& p, Collective kind) {
    return p.communications() == 1 && p.count(kind) == 1 && p.steps[0].level == Level::network;
  };

  const Plan reduced = reshard({n}, open_over({0}, 1), {{}}, mesh, machine);
  CHECK(only(reduced, all_reduce));
  CHECK(reduced.steps[0].near == near8);
  CHECK(reduced.network_bytes() == 2 * 4 * (n / 8) * 7 / 8);
  CHECK(reduced.payload_bytes() == 2 * 4 * n * 7 / 8 + reduced.network_bytes());
  CHECK(calls_of(reduced) == std::vector<Made>{{reduce_scatter, near8, 0},
                                               {all_reduce, far8, reduced.network_bytes()},
                                               {all_gather, near8, 0}});

  const Plan scattered = reshard({n}, open_over({0}, 1), {{0}}, mesh, machine);
  CHECK(only(scattered, reduce_scatter));
  CHECK(scattered.network_bytes() == 4 * (n / 8) * 7 / 8);
  CHECK(calls_of(scattered) ==
        std::vector<Made>{{reduce_scatter, near8, 0},
                          {reduce_scatter, far8, scattered.network_bytes()}});

  const Plan gathered = reshard({n}, {{0}}, {{}}, mesh, machine);
  CHECK(only(gathered, all_gather));
  CHECK(gathered.network_bytes() == 4 * (n / 64) * 7);
  CHECK(gathered.payload_bytes() == 4 * n * 63 / 64);  // no more than in one call
  CHECK(calls_of(gathered) ==
        std::vector<Made>{{all_gather, far8, gathered.network_bytes()}, {all_gather, near8, 0}});

  const Plan turned = reshard({64, 64}, {{0}, {}}, {{}, {0}}, mesh, machine);
  CHECK(only(turned, all_to_all));
  CHECK(turned.network_bytes() == 4 * 56);
  CHECK(turned.messages() == 7 + 7);
  CHECK(calls_of(turned) ==
        std::vector<Made>{{all_to_all, near8, 0}, {all_to_all, far8, turned.network_bytes()}});
  CHECK(reshard({64, 64}, {{0}, {}}, {{}, {0}}, mesh, {}).messages() == 63);
}

TEST_CASE("where axes tell nodes from cores, the levels are plain sets of axes") {
  const MeshShape mesh{8, 8};
  const AxisGroup node = AxisSet{1};
  const AxisGroup network = AxisSet{0};
  const Plan reduced = reshard({Index{1} << 20}, open_over({0, 1}, 1), {{}}, mesh, nodes_of(8), 13);
  CHECK(calls_of(reduced) == std::vector<Made>{{reduce_scatter, node, 0},
                                               {all_reduce, network, reduced.network_bytes()},
                                               {all_gather, node, 0}});
  // The numbers are those over one axis of 64.
  const Plan joined =
      reshard({Index{1} << 20}, open_over({0}, 1), {{}}, MeshShape{64}, nodes_of(8), 13);
  CHECK(reduced.payload_bytes() == joined.payload_bytes());
  CHECK(reduced.network_bytes() == joined.network_bytes());
  CHECK(reduced.cost == joined.cost);
}

TEST_CASE("a group within a node, or with one member a node, goes in one call") {
  const MeshShape mesh{8, 8};
  for (const int axis : {0, 1}) {
    const Plan plan = reshard({1024}, open_over({axis}, 1), {{}}, mesh, nodes_of(8));
    CHECK(plan.steps[0].near.empty());
    CHECK(plan.steps[0].level == (axis == 1 ? Level::node : Level::network));
    CHECK(plan.network_bytes() == (axis == 1 ? 0 : plan.payload_bytes()));
  }
  // Nodes of 5 and axes of 8 have no common part.
  const Plan odd = reshard({1024}, {{0}}, {{}}, mesh, nodes_of(5));
  CHECK(odd.steps[0].near.empty());
  CHECK(odd.network_bytes() == odd.payload_bytes());
  // Nodes of 12 hold runs of 4 of an axis of 8.
  const Plan partly = reshard({1024}, {{0}}, {{}}, MeshShape{24}, nodes_of(8));
  CHECK(partly.steps[0].near == AxisGroup::inner_part({}, 0, 8));
  const Plan runs = reshard({1024}, {{0}}, {{}}, MeshShape{8}, nodes_of(6));
  CHECK(runs.steps[0].near == AxisGroup::inner_part({}, 0, 2));
}

TEST_CASE("levels are chosen by cost: where the network is no slower, what is sent once wins") {
  Machine even = nodes_of(8);
  even.network_message_ps = even.message_ps;
  even.network_payload_ps_per_kib = even.payload_ps_per_kib;
  const MeshShape mesh{64};
  // Large pieces: an all-to-all in levels would send everything twice.
  CHECK(reshard({4096, 4096}, {{0}, {}}, {{}, {0}}, mesh, even).steps[0].near.empty());
  CHECK(reshard({4096, 4096}, {{0}, {}}, {{}, {0}}, mesh, even).messages() == 63);
  // Small ones: fewer messages.
  CHECK(!reshard({64, 64}, {{0}, {}}, {{}, {0}}, mesh, even).steps[0].near.empty());

  Random random(seed_for("levels by cost", 31));
  long staged = 0;
  for (int i = 0; i < 4000; ++i) {
    const MeshShape shape{random.of<int>({2, 4, 6}), random.of<int>({2, 3, 8})};
    const Machine machine = some_machine(random, 2);
    TensorDesc desc{DType::f64, {random.below(40), 24}, some_sharding(random, 2, 2, 30)};
    const Sharding to = some_sharding(random, 2, 2);
    const Plan plan = ops::Reshard{to}.plan({desc}, {shape, 0, {machine, max_int64}});
    for (const Step& step : plan.steps) {
      if (step.kind != StepKind::communicate || step.collective > all_reduce) continue;
      const TensorDesc from = plan.slots[step.in[0]].desc;
      detail::Move move;
      move.kind = step.kind;
      move.collective = step.collective;
      move.group = step.group;
      move.to = plan.slots[step.out].desc.sharding;
      const AxisSet open = from.sharding.partial - move.to.partial;
      const detail::Move flat =
          step.collective == all_reduce ? detail::reduce_move(from.sharding, open)
          : step.collective == reduce_scatter
              ? detail::scatter_move(from.extents, from.sharding, move.to, open, shape)
              : detail::classify(from.extents, from.sharding, move.to, shape);
      const detail::Move levels = detail::in_levels(flat, from, shape, machine);
      CHECK(step.cost == min_of(detail::price(flat, from, shape, machine),
                                detail::price(levels, from, shape, machine)));
      staged += !step.near.empty();
    }
  }
  CHECK(staged > 200);
}

TEST_CASE("levels are told in the text of a plan") {
  const Plan plan = reshard({1024}, open_over({0}, 1), {{}}, MeshShape{64}, nodes_of(8));
  const std::string text = explain(plan, axis_names(1));
  CHECK(text.find("all-reduce over a in levels") != std::string::npos);
  CHECK(text.find("896 B between nodes") != std::string::npos);
  CHECK(explain(reshard({1024}, open_over({0}, 1), {{}}, MeshShape{64}, {}), axis_names(1))
            .find("between nodes") == std::string::npos);
}

TEST_CASE("what a process sends, and what a group owns, are counted without looking at everybody") {
  Random random(seed_for("counting", 32));
  for (int i = 0; i < 6000; ++i) {
    const MeshShape mesh{random.of<int>({1, 2, 3, 4}), random.of<int>({1, 2, 4, 6}),
                         random.of<int>({1, 2, 3})};
    const Extents extents{random.below(14), random.below(9)};
    const Sharding from = some_sharding(random, 2, 3);
    const Sharding to = some_sharding(random, 2, 3);
    const Coordinates at = mesh.coordinates(random.below(mesh.processes()));
    const AxisSet alone = from.used(), others = to.used() - from.used();
    for (const AxisSet over : {alone, alone | others}) {
      detail::SentTo looked;
      detail::for_each_receiver(extents, from, to, over, mesh, at,
                                [&](const Coordinates& peer, const Box& box) {
                                  if (peer == at) return;
                                  looked.elements += box.size();
                                  ++looked.messages;
                                });
      const detail::SharedSending sharing(extents, from, to, over, mesh);
      const detail::SentTo counted =
          sharing.axes.empty() ? detail::sent(extents, from, to, mesh, at)
                               : detail::sent_shared(extents, from, to, sharing, mesh, at, over);
      CHECK(counted.elements == looked.elements);
      CHECK(counted.messages == looked.messages);
    }

    AxisGroup group = AxisSet::from_bits(static_cast<std::uint32_t>(random.below(8)));
    const int axis = random.below(3);
    if (!group.axes.contains(axis) && mesh[axis] % 2 == 0 && random.chance(60))
      group = random.chance(50) ? AxisGroup::inner_part(group.axes, axis, 2)
                                : AxisGroup::outer_part(group.axes, axis, 2);
    Index owned = 0;
    for (int k = 0; k < mesh.group_size(group); ++k)
      owned += block(extents, from, mesh, mesh.member(group, at, k)).size();
    CHECK(detail::owned_by(group, extents, from, mesh, at) == owned);
  }
}
