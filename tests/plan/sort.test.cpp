// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_rows
// Sorts and the first k over enumerated shardings, all processes in a dry run; what they
// communicate.
#include <doctest/doctest.h>

#include <tessera/plan/check/contract.hpp>
#include <tessera/plan/op/rows/sort.hpp>
#include <tessera/program/simulation.hpp>

#include "support/dry_run.hpp"
#include "support/rows.hpp"

using namespace tessera;
using namespace support;

namespace {

using Value = DryRun::Value;

struct Case {
  MeshShape mesh;
  Term labels;
  int along = 0;
  SortTask task;
  TensorDescs x;
  Sharding out;
  PlanOptions options;

  Plan plan(int process = 0) const {
    return detail::plan_sort(labels, along, task, x, out, mesh, process, options);
  }
  std::vector<Whole<Value>> expected() const {
    std::vector<Whole<Value>> whole;
    for (int i = 0; i < x.size(); ++i)
      whole.push_back(whole_input<Value>(x[i], mesh, 5 + static_cast<std::uint64_t>(i)));
    const Index limit = task.limit < 0 ? x[0].extents[along] : task.limit;
    const Whole<std::int64_t> positions = support::order(along, task.descending, limit, whole[0]);
    std::vector<Whole<Value>> results;
    for (std::size_t i = task.keys ? 0 : 1; i < whole.size(); ++i)
      results.push_back(support::arrange(along, whole[i], positions));
    if (task.positions) results.push_back(positions);
    return results;
  }
  /// Returns what is wrong, or nothing.
  std::string wrong() const {
    std::string text;
    try {
      DryRun dry([&](int p) { return plan(p); }, mesh, options.machine);
      text = dry.broken_law();
      std::vector<std::uint64_t> seeds;
      for (int i = 0; i < x.size(); ++i) seeds.push_back(5 + static_cast<std::uint64_t>(i));
      if (text.empty() && !(dry.plan().result_desc().sharding == out))
        text = "the result is not sharded as was asked";
      if (text.empty()) text = dry.wrong_results(seeds, expected());
      Index calls = 0;
      if (text.empty()) text = detail::fault_of(dry.plan(), calls);
      for (int p = 0; p < mesh.processes() && text.empty(); ++p)
        if (!(on_process(dry.plan(), p) == plan(p)))
          text = "told for process " + std::to_string(p) + " it is another plan";
      text = text.empty() ? "" : text + "\n" + describe(dry.plan());
    } catch (const std::exception& error) {
      text = error.what();
    }
    return text.empty() ? ""
                        : describe(x[0], mesh) + " to " + describe(out, mesh) + " on " +
                              describe(mesh) + " along " + std::to_string(along) + ", the first " +
                              std::to_string(task.limit) + ": " + text;
  }
};

Index some_extent(Random& random) {
  return random.of<Index>({1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 24, 0});
}
Case some_case(Random& random, const MeshShape& mesh, int rank) {
  Case c;
  c.mesh = mesh;
  c.labels = detail::default_labels(rank);
  c.along = random.below(rank);
  c.task.descending = random.chance(50);
  const bool first = random.chance(40);
  const int carried = first ? 0 : random.of<int>({0, 0, 1, 2, 3, 6});  // 6: the most
  const DType key = random.of<DType>({DType::i32, DType::i32, DType::f32, DType::f64});
  Extents extents;
  for (int d = 0; d < rank; ++d) extents.push_back(some_extent(random));
  for (int i = 0; i <= carried; ++i)
    c.x.push_back({i == 0 ? key : random.of<DType>({DType::i32, DType::f64, DType::i8}), extents,
                   some_sharding(random, rank, mesh.rank())});
  if (random.chance(50))
    for (TensorDesc& x : c.x) x.sharding = c.x[0].sharding;
  if (first) {
    c.task.limit = random.below(static_cast<int>(extents[c.along]) + 1);
    c.task.kind = OperatorKind::top_k;
  }
  c.task.positions = random.chance(50);
  c.task.keys = carried > 0 || !c.task.positions || random.chance(50);
  c.out = random.chance(50) ? c.x[0].sharding : some_sharding(random, rank, mesh.rank());
  c.options.machine = some_machine(random);
  if (random.chance(20)) c.options.workspace_limit = random.of<Index>({0, 256, 1024});
  return c;
}

TensorDesc tensor(DType type, const Extents& extents, const Sharding& s) {
  return {type, extents, s};
}

}  // namespace

TEST_CASE("sorts and the first k: every result, on every mesh, under many shardings") {
  Random random(seed_for("sort", 34));
  long cases = 0, wrong = 0, merged = 0, joined = 0;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int rank = 1; rank <= 4; ++rank)
      for (int i = 0; i < 60 / share; ++i) {
        const Case c = some_case(random, mesh, rank);
        ++cases;
        for (const Step& step : c.plan().steps) {
          merged += step.merges;
          joined += !step.merges && !step.also.empty();
        }
        if (const std::string text = c.wrong(); !text.empty() && ++wrong <= 5) MESSAGE(text);
      }
  MESSAGE(cases << " cases, " << merged << " with merges, " << joined << " joined calls");
  CHECK(merged > 300 / share);
  CHECK(joined > 100 / share);
  CHECK(wrong == 0);
}

TEST_CASE("one row under every sharding of a line, merged by any number of processes") {
  long wrong = 0;
  for (int p = 2; p <= 17; ++p)
    for (Index n = 0; n <= 3 * p + 2; ++n) {
      Case c;
      c.mesh = {p};
      c.labels = {'a'};
      c.x = {tensor(DType::f64, {n}, {{0}})};
      c.out = c.x[0].sharding;
      c.task = {.descending = n % 2 == 1, .keys = n % 3 > 0, .positions = n % 3 < 2};
      // More than the blocks does not fit, so that nothing is gathered.
      c.options.workspace_limit = ceil_div(n, p) * 8 * (1 + c.task.keys + c.task.positions);
      const Plan plan = c.plan();
      bool merges = false;
      for (const Step& step : plan.steps) merges = merges || step.merges;
      if (n > 1) {
        CHECK(plan.communications() == 1);
        CHECK(merges);
      }
      if (const std::string text = c.wrong(); !text.empty() && ++wrong <= 5) MESSAGE(text);
    }
  CHECK(wrong == 0);
}

TEST_CASE("Z1: an all-to-all to the free dimension, a sort, an all-to-all back") {
  const TensorDesc x = tensor(DType::f32, {1024, 1024}, {{}, {0}});
  const Plan plan = ops::Sort{parse("ab->ab"), 'b', {}, x.sharding}.plan({x}, {MeshShape{8}});
  CHECK(plan.count(all_to_all) == 2);
  CHECK(plan.communications() == 2);
  CHECK(plan.payload_bytes() == 2 * (1024 * 128 - 128 * 128) * 4);
  CHECK(plan.steps[1].is<step::Sort>());
  const Extents there =
      block(x.extents, plan.slots[plan.steps[1].in[0]].desc.sharding, MeshShape{8}, Coordinates{0})
          .extents();
  CHECK(there == Extents{128, 1024});
  // Where the result may stay, there is no way back; along the other dimension there is nothing.
  CHECK(ops::Sort{parse("ab->ab"), 'b', {}, {{0}, {}}}.plan({x}, {MeshShape{8}}).communications() ==
        1);
  CHECK(
      ops::Sort{parse("ab->ab"), 'a', {}, x.sharding}.plan({x}, {MeshShape{8}}).communications() ==
      0);
  // Positions go back alone, as int32; with values, both.
  const SortTask positions{.keys = false, .positions = true};
  CHECK(ops::Sort{parse("ab->ab"), 'b', positions, x.sharding}
            .plan({x}, {MeshShape{8}})
            .payload_bytes() == (1024 * 128 - 128 * 128) * (4 + 4));
  const SortTask both{.positions = true};
  CHECK(
      ops::Sort{parse("ab->ab"), 'b', both, x.sharding}.plan({x}, {MeshShape{8}}).payload_bytes() ==
      (1024 * 128 - 128 * 128) * (4 + 4 + 4));
}

TEST_CASE("Z3: the axis moves to where blocks stay even, beside the one that is there") {
  const TensorDesc x = tensor(DType::f32, {7, 1024, 1024}, {{}, {0}, {1}});
  const Plan plan = ops::Sort{parse("abc->abc"), 'c', {}, x.sharding}.plan({x}, {MeshShape{2, 4}});
  CHECK(plan.count(all_to_all) == 2);
  CHECK(plan.communications() == 2);
  CHECK(plan.payload_bytes() == 2 * 7 * 512 * 256 / 4 * 3 * 4);
  // Only part of an axis list moves, where the other dimension takes no more.
  const TensorDesc two = tensor(DType::f32, {2, 1 << 16}, {{}, {0, 1}});
  const Plan partly =
      ops::Sort{parse("ab->ab"), 'b', {}, two.sharding}.plan({two}, {MeshShape{16, 2}});
  CHECK(partly.count(all_to_all) == 2);
  CHECK(partly.count(Collective::exchange) == 1);
  bool merged = false;
  for (const Step& step : partly.steps)
    if (step.merges) {
      merged = true;
      CHECK(step.group == AxisSet{0});
      CHECK(partly.slots[step.in[0]].desc.sharding == Sharding{{1}, {0}});
    }
  CHECK(merged);
}

TEST_CASE(
    "Z5: the totals of a running sum's parts travel in three rounds of eight, even or ragged, in "
    "either direction") {
  for (const Index n : {1024, 1030})
    for (const bool reverse : {false, true}) {
      const TensorDesc x = tensor(DType::f32, {128, n}, {{}, {0}});
      const Plan plan = ops::Scan{.terms = parse("ab->ab"),
                                  .along = 'b',
                                  .reduction = Reduction::sum,
                                  .options = {.reverse = reverse},
                                  .type = x.type,
                                  .out = x.sharding}
                            .plan({x}, {MeshShape{8}});
      CHECK(plan.count(Collective::exchange) == 3);
      CHECK(plan.communications() == 3);
      CHECK(plan.payload_bytes() == 3 * 128 * 4);
      CHECK(plan.slots[plan.steps[1].out].desc.extents == Extents{128, 8});
    }
}

TEST_CASE("a merge reads both messages and as many tensors as a sort may carry") {
  const TensorDesc one = tensor(DType::f32, {1 << 16}, {{0}});
  const TensorDescs x(7, one);
  const Plan plan =
      ops::Sort{parse("a->a"), 'a', {.positions = true}, one.sharding}.plan(x, {MeshShape{4}});
  Index inputs = 0;
  for (const KernelCall& kernel : instructions_of(plan).kernels)
    inputs = max_of(inputs, Index{kernel.in.size()});
  CHECK(inputs == 2 + 7 + 1);
}

TEST_CASE("one long row: merges between pairs of processes; a short one is gathered") {
  const MeshShape mesh{8};
  const TensorDesc ints = tensor(DType::i32, {1 << 20}, {{0}}),
                   floats = tensor(DType::f32, {1 << 20}, {{0}});
  const Plan plan = ops::Sort{parse("a->a"), 'a', {}, {{0}}}.plan({ints}, {mesh});
  CHECK(plan.communications() == 1);
  CHECK(plan.steps.back().merges);
  CHECK(plan.steps.back().rounds == 6);
  const Index block = 1 << 17;
  CHECK(plan.own_payload_bytes() == 3 * block * 4);  // process 0 takes part in three rounds
  CHECK(ops::Sort{parse("a->a"), 'a', {}, {{0}}}.plan({ints}, {mesh, 3}).own_payload_bytes() ==
        6 * block * 4);
  CHECK(plan.peak_bytes == (1 + 4) * block * 4);  // the result, and a key and a place twice
  // Floats are told apart by their bits (-0 and 0 too); where something is carried, by positions.
  CHECK(ops::Sort{parse("a->a"), 'a', {}, {{0}}}.plan({floats}, {mesh}).own_payload_bytes() ==
        3 * block * 4);
  CHECK(
      ops::Sort{parse("a,a->a"), 'a', {}, {{0}}}.plan({ints, floats}, {mesh}).own_payload_bytes() ==
      3 * block * (4 + 4 + 4));
  // Positions of a line that is too long for int32.
  const Index huge = Index{1} << 32;
  const Plan long_line = ops::Sort{parse("a->a"), 'a', {.positions = true}, {{0}}}.plan(
      {tensor(DType::f32, {huge}, {{0}})}, {mesh});
  CHECK(long_line.own_payload_bytes() == 3 * (huge / 8) * (4 + 8));
  const Plan small =
      ops::Sort{parse("a->a"), 'a', {}, {{0}}}.plan({tensor(DType::i32, {100}, {{0}})}, {mesh});
  CHECK(small.count(all_gather) == 1);
  CHECK(small.communications() == 1);
  // Blocks of several sizes among full ones cannot be merged in place: over one axis there are
  // none.
  const MeshShape cut{2, 4};
  const auto over_two = [&](Index n) {
    return ops::Sort{parse("a->a"), 'a', {}, {{0, 1}}}.plan({tensor(DType::i32, {n}, {{0, 1}})},
                                                            {cut});
  };
  CHECK(over_two(1 << 20).count(Collective::exchange) == 1);
  const Plan uneven = over_two((1 << 20) + 1);
  for (const Step& step : uneven.steps) CHECK((!step.merges || step.group.size() == 1));
  CHECK(uneven.payload_bytes() < 2 * over_two(1 << 20).payload_bytes());
  // Planning does not grow with the number of processes, and the rounds are few.
  const Plan large = ops::Sort{parse("a->a"), 'a', {}, {{0}}}.plan(
      {tensor(DType::i32, {1 << 30}, {{0}})}, {MeshShape{4096}, 77});
  CHECK(large.steps.back().rounds == 78);
  CHECK(large.payload_bytes() <= 78 * (Index{1} << 18) * 4);
}

TEST_CASE("the first k: a few elements of each part move, not the rows") {
  const MeshShape mesh{8};
  const TensorDesc x = tensor(DType::f32, {16, 32000}, {{}, {0}});
  const SortTask task{
      .descending = true, .positions = true, .limit = 5, .kind = OperatorKind::top_k};
  const Plan plan = ops::Sort{parse("bv->bv"), 'v', task, {{}, {}}}.plan({x}, {mesh});
  CHECK(plan.count(all_gather) == 1);  // of values and positions together
  CHECK(plan.communications() == 1);
  CHECK(plan.payload_bytes() == 16 * 7 * 5 * (4 + 4));
  CHECK(plan.slots[plan.result].desc.extents == Extents{16, 5});
  // To where the rows are split, the candidates go all-to-all.
  const Plan scattered = ops::Sort{parse("bv->bv"), 'v', task, {{0}, {}}}.plan(
      {tensor(DType::f32, {16000, 32000}, {{}, {0}})}, {mesh});
  CHECK(scattered.count(all_to_all) >= 1);
  CHECK(scattered.payload_bytes() == 14000 * 5 * (4 + 4));
  // Most of each row: the rows move.
  SortTask most = task;
  most.limit = 31000;
  CHECK(ops::Sort{parse("bv->bv"), 'v', most, {{0}, {}}}.plan({x}, {mesh}).payload_bytes() ==
        14 * 4000 * 4);
  // Not split: nothing.
  CHECK(ops::Sort{parse("bv->bv"), 'v', task, {{0}, {}}}
            .plan({tensor(DType::f32, {16, 32000}, {{0}, {}})}, {mesh})
            .communications() == 0);
}

TEST_CASE("a contract that is kept for stand-in sizes is kept on every mesh and for all extents") {
  Random random(seed_for("contracts of sort", 61));
  const MeshShape stand_in{2, 3, 4};
  long kept = 0, wrong = 0;
  for (int i = 0; i < 1500; ++i) {
    const int rank = 1 + random.below(3);
    const Shardings s(1, some_sharding(random, rank, 3));
    const Sharding out = random.chance(50) ? s[0] : some_sharding(random, rank, 3);
    Contract contract = Contract::nothing();
    for (int kind = 0; kind < detail::collective_kinds; ++kind)
      if (random.chance(50)) contract.accept(static_cast<Collective>(kind), AxisSet{0, 1, 2});
    const int along = random.below(rank);
    SortTask task{.limit = random.chance(50) ? 2 : -1};
    const Term labels = detail::default_labels(rank);
    const ops::Sort sort{Terms{{labels}, labels}, labels[along], task, out};
    if (!contract.covers(needs(sort, s, stand_in, contract))) continue;
    ++kept;
    PlanOptions options;
    options.contract = contract;
    options.machine = some_machine(random, 3);
    for (const MeshShape& mesh : {MeshShape{1, 2, 3}, MeshShape{2, 2, 2}, MeshShape{3, 1, 1}}) {
      Extents extents;
      for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({0, 2, 3, 5, 7, 12, 60}));
      extents[along] = max_of(2, extents[along]);
      const Plan plan = detail::plan_sort(labels, along, task, {tensor(DType::f32, extents, s[0])},
                                          out, mesh, 0, options);
      if (!contract.covers(plan.needs) && ++wrong <= 3)
        MESSAGE(to_string(contract, axis_names(3)) << "\n" << describe(plan));
    }
  }
  MESSAGE(kept << " contracts are kept");
  CHECK(kept > 300);
  CHECK(wrong == 0);
}

TEST_CASE("verdicts and element types") {
  const Sharding s{{0}, {1}};
  const Sharding open = Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum);
  const auto check = [](const Terms& terms, char along, const Shardings& x, const Sharding& out,
                        DType type = DType::f32) {
    TensorDescs descs;
    for (const Sharding& one : x) descs.push_back(tensor(type, {4, 4}, one));
    return ops::Sort{terms, along, {}, out}.check(descs);
  };
  CHECK(check(parse("ab->ab"), 'b', {s}, s).ok());
  CHECK(check(parse("ab,ab->ab"), 'b', {s, s}, s).ok());
  CHECK(check(parse("ab->ab"), 'c', {s}, s) == Verdict{Rule::along_known, 0, 'c'});
  CHECK(check(parse("ab->ab"), 'b', {open}, s) == Verdict{Rule::finished, 0});
  CHECK(check(parse("ab,ab->ab"), 'b', {s, open}, s) == Verdict{Rule::finished, 1});
  CHECK(check(parse("ab->ab"), 'b', {s}, open) == Verdict{Rule::finished, 1});
  CHECK(check(parse("abc->abc"), 'b', {s}, s).rule == Rule::rank_matches);
  CHECK(check(parse("ab->a->a"), 'b', {s}, s).rule == Rule::equation_readable);
  CHECK(check(parse("ab->ab"), 'b', {s}, s, DType::c64).rule == Rule::extremes_of_ordered);
  CHECK(check(parse("ab->ab"), 'b', {s}, s, DType::boolean).ok());
}
