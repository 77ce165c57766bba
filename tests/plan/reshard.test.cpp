// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// Every change of sharding, all processes in a dry run.
#include <doctest/doctest.h>

#include "support/dry_cases.hpp"
#include "support/least_payload.hpp"

using namespace tessera;
using namespace support;

namespace {

/// Returns what is wrong with the reshard of `desc` to `to`, or nothing.
std::string wrong_reshard(const TensorDesc& desc, const Sharding& to, const MeshShape& mesh,
                          const PlanOptions& options = {}) {
  DryRun dry(
      [&](int process) {
        return ops::Reshard{to}.plan({desc}, {mesh, process, options});
      },
      mesh, options.machine);
  std::string text = dry.broken_law();
  if (text.empty() && !(dry.plan().result_desc().sharding == to))
    text = "the chain does not end at the target";
  if (text.empty() && desc.sharding == to && !dry.plan().steps.empty())
    text = "from S to S there are steps";
  if (text.empty() && desc.sharding == Sharding::replicated(desc.rank()) &&
      dry.plan().communications() > 0)
    text = "slicing a replicated tensor communicates";
  if (text.empty()) text = dry.wrong_result({17}, whole_input<DryRun::Value>(desc, mesh, 17));
  if (text.empty()) return "";
  return describe(desc, mesh) + " to " + describe(to, mesh) + " on " + describe(mesh) + ": " +
         text + "\n" + describe(dry.plan());
}

/// Extents that divide, do not divide, are 1 and are 0.
std::vector<Extents> extents_of(int rank) {
  if (rank == 0) return {Extents{}};
  if (rank == 1) return {{7}, {8}, {1}, {0}};
  if (rank == 2) return {{5, 7}, {4, 6}, {1, 9}, {0, 3}};
  return {{3, 5, 2}, {4, 4, 4}, {1, 6, 5}, {2, 0, 3}};
}

}  // namespace

TEST_CASE("reshard: every pair of shardings of up to two dimensions over up to two axes") {
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 2))
    for (int rank = 0; rank <= 2; ++rank)
      for (const Reduction kind : {Reduction::sum, Reduction::max})
        for (const Sharding& from : shardings(rank, mesh.rank(), kind))
          for (const Sharding& to : shardings(rank, mesh.rank(), kind)) {
            if (!detail::can_reshard(from, to) || (kind == Reduction::max && from.partial.empty()))
              continue;
            for (const Extents& extents : extents_of(rank))
              tally.add(wrong_reshard({DType::i64, extents, from}, to, mesh));
          }
}

TEST_CASE(
    "reshard: a sample of the pairs over three axes and of three dimensions, with machines of many "
    "kinds") {
  Random random(seed_for("reshard", 1));
  Tally tally;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int rank = mesh.rank() == 3 ? 1 : 3; rank <= 3; ++rank)
      for (int i = 0; i < 1200 / share; ++i) {
        const Reduction kind =
            random.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
        const Sharding from = some_sharding(random, rank, mesh.rank(), 20, kind);
        const Sharding to =
            some_sharding(random, rank, mesh.rank(), random.chance(30) ? 30 : 0, kind);
        if (!detail::can_reshard(from, to)) continue;
        const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
        tally.add(wrong_reshard({type, random.of(extents_of(rank)), from}, to, mesh,
                                {some_machine(random, mesh.rank()), max_int64}));
      }
}

TEST_CASE("reshard: a sample on meshes of four to six axes") {
  Random random(seed_for("reshard on many axes", 2));
  Tally tally;
  for (const MeshShape& mesh :
       {MeshShape{2, 2, 2, 2}, MeshShape{2, 1, 3, 2}, MeshShape{2, 2, 1, 2, 2},
        MeshShape{2, 2, 2, 2, 2}, MeshShape{1, 2, 1, 2, 1, 2}, MeshShape{2, 1, 2, 2, 1, 2}})
    for (int i = 0; i < 1500 / share; ++i) {
      const int rank = 1 + random.below(4);
      const Sharding from = some_sharding(random, rank, mesh.rank(), 30);
      const Sharding to = some_sharding(random, rank, mesh.rank(), random.chance(30) ? 30 : 0);
      if (!detail::can_reshard(from, to)) continue;
      Extents extents;
      for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({1, 2, 3, 4, 5, 7, 8}));
      tally.add(wrong_reshard({DType::f32, extents, from}, to, mesh,
                              {some_machine(random, mesh.rank()), max_int64}));
    }
}

TEST_CASE(
    "reshard: every pair over three axes of three dimensions has a chain that ends at the target") {
  const MeshShape mesh{2, 2, 2};
  long cases = 0;
  long wrong = 0;
  for (const Sharding& from : shardings(3, 3, Reduction::sum))
    for (const Sharding& to : shardings(3, 3, Reduction::sum)) {
      if (!detail::can_reshard(from, to)) continue;
      ++cases;
      const Plan plan = ops::Reshard{to}.plan({TensorDesc{DType::f32, {8, 6, 5}, from}}, {mesh});
      if (!(plan.result_desc().sharding == to)) ++wrong;
      if (from == to && !plan.steps.empty()) ++wrong;
    }
  CHECK(cases > 10000);
  CHECK(wrong == 0);
}

TEST_CASE("reshard: the longest chains fit into a plan") {
  Random random(seed_for("reshard chains", 3));
  long cases = 0;
  int longest = 0;
  for (int i = 0; i < 60000 / share; ++i) {
    const MeshShape mesh = random.of<MeshShape>({{2, 2, 2, 2, 2, 2}, {1, 2, 2, 3, 2, 2}});
    const int rank = 2 + random.below(3);
    const Sharding from = some_sharding(random, rank, mesh.rank(), 35);
    const Sharding to = some_sharding(random, rank, mesh.rank());
    Extents extents;
    for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({1, 8, 64, 100, 256}));
    const Plan plan =
        ops::Reshard{to}.plan({TensorDesc{DType::f32, extents, from}},
                              {mesh, 0, {some_machine(random, mesh.rank()), max_int64}});
    longest = plan.steps.size() > longest ? plan.steps.size() : longest;
    cases += plan.result_desc().sharding == to;
  }
  CHECK(cases == 60000 / share);
  CHECK(longest == 6);  // slice, scatter, combine, slice, exchange, gather
}

TEST_CASE("reshard: what one native collective does is one native collective") {
  const MeshShape mesh{2, 4};
  const auto plan = [&](const Sharding& from, const Sharding& to) {
    return ops::Reshard{to}.plan({TensorDesc{DType::f32, {8, 8}, from}}, {mesh});
  };
  const auto only = [](const Plan& p, Collective kind) {
    return p.count(kind) == 1 && p.communications() == 1;
  };
  CHECK(only(plan({{0}, {}}, {{}, {}}), Collective::all_gather));
  CHECK(only(plan({{0, 1}, {}}, {{0}, {}}), Collective::all_gather));
  CHECK(only(plan({{0}, {1}}, {{}, {}}), Collective::all_gather));
  CHECK(only(plan({{1}, {}}, {{}, {1}}), Collective::all_to_all));
  CHECK(only(plan({{0, 1}, {}}, {{0}, {1}}), Collective::all_to_all));
  CHECK(only(plan({{0, 1}, {}}, {{}, {0, 1}}), Collective::all_to_all));
  const Sharding open = Sharding{{}, {}}.with_partial(AxisSet{1}, Reduction::sum);
  CHECK(only(plan(open, {{}, {}}), Collective::all_reduce));
  CHECK(only(plan(open, {{1}, {}}), Collective::reduce_scatter));
  CHECK(only(plan(open, {{}, {1}}), Collective::reduce_scatter));
  CHECK(only(ops::Reshard{{{1}, {0}}}.plan({TensorDesc{DType::f32, {8, 8}, {{0}, {1}}}},
                                           {MeshShape{3, 3}}),
             Collective::collective_permute));
}

TEST_CASE("all-reduce is all-gather of reduce-scatter, in payload too") {
  for (const MeshShape& mesh : meshes(8, 1))
    for (const Index n : {0, 1, 5, 7, 8, 24})
      for (int p = 0; p < mesh.processes(); ++p) {
        const Sharding open = Sharding{{}}.with_partial(AxisSet{0}, Reduction::sum);
        const Index both = ops::Reshard{{{}}}
                               .plan({TensorDesc{DType::f32, {n}, open}}, {mesh, p})
                               .own_payload_bytes();
        const Index scatter = ops::Reshard{{{0}}}
                                  .plan({TensorDesc{DType::f32, {n}, open}}, {mesh, p})
                                  .own_payload_bytes();
        const Index gather = ops::Reshard{{{}}}
                                 .plan({TensorDesc{DType::f32, {n}, {{0}}}}, {mesh, p})
                                 .own_payload_bytes();
        CHECK(both == scatter + gather);
      }
}

// ---- which chain is kept
// ----------------------------------------------------------------------------------------

namespace {

/// A chain of moves, each priced, nothing left out: what reshard_moves prunes, shares and abandons.
struct PlainChain {
  TensorDesc at;
  MeshShape mesh;
  Machine machine;
  std::vector<detail::Move> moves;
  std::int64_t cost = 0;

  void apply(const detail::Move& move) {
    moves.push_back(move);
    for (const detail::Move& other : {detail::in_levels(move, at, mesh, machine),
                                      detail::shared_by_replicas(move, at.sharding)})
      if (detail::price(other, at, mesh, machine) < detail::price(moves.back(), at, mesh, machine))
        moves.back() = other;
    cost = detail::saturating_add(cost, detail::price(moves.back(), at, mesh, machine));
    at.sharding = move.to;
  }
  PlainChain go(const Sharding& to) const {
    PlainChain next = *this;
    if (!(at.sharding == to)) next.apply(detail::classify(at.extents, at.sharding, to, mesh));
    return next;
  }
  PlainChain combine(AxisSet group) const {
    PlainChain next = *this;
    if (!group.empty()) next.apply(detail::reduce_move(at.sharding, group));
    return next;
  }
  PlainChain scatter(const Sharding& to, AxisSet group) const {
    PlainChain next = *this;
    if (group.empty()) return next;
    Sharding s = at.sharding.with_partial(at.sharding.partial - group, at.sharding.reduction);
    for (int d = 0; d < to.rank(); ++d)
      for (int i = 0; i < to[d].size(); ++i)
        if (group.contains(to[d][i])) s[d].push_back(to[d][i]);
    next.apply(detail::scatter_move(at.extents, at.sharding, s, group, mesh));
    return next;
  }
  const PlainChain& or_cheaper(const PlainChain& other) const {
    return other.cost < cost || (other.cost == cost && other.moves.size() < moves.size()) ? other
                                                                                          : *this;
  }
  PlainChain finish(const Sharding& to) const {
    const PlainChain direct = go(to);
    if (direct.moves.size() == moves.size() || direct.moves.back().kind == StepKind::slice ||
        direct.moves.back().collective != Collective::exchange)
      return direct;
    const PlainChain sliced = go(detail::sliced_towards(at.sharding, to));
    const Sharding& s = sliced.at.sharding;
    return direct.or_cheaper(sliced.go(detail::before_gather(s, to)).go(to))
        .or_cheaper(sliced.go(detail::gathered_towards(s, to)).go(to))
        .or_cheaper(sliced.go(to));
  }
};

PlainChain plain_reshard(const TensorDesc& tensor, const Sharding& target, const MeshShape& mesh,
                         const Machine& machine) {
  const TensorDesc from{tensor.type, tensor.extents,
                        detail::without_unit_axes(tensor.sharding, mesh)};
  const Sharding to = detail::without_unit_axes(target, mesh);
  const PlainChain start{from, mesh, machine, {}, 0};
  const AxisSet open = from.sharding.partial - to.partial;
  const AxisSet scattered = open & to.used();
  if (open.empty()) return start.finish(to);
  const Sharding partial = to.with_partial(from.sharding.partial, from.sharding.reduction);
  const PlainChain sliced = start.go(detail::sliced_towards(from.sharding, partial));
  PlainChain best = sliced.scatter(to, scattered).combine(open - scattered).finish(to);
  if (scattered.empty()) return best;
  best = best.or_cheaper(sliced.combine(open).finish(to));
  Sharding moved = partial;
  bool lands = true;
  for (int d = 0; d < to.rank(); ++d) {
    moved[d] = to[d].without(open);
    lands = lands && to[d].starts_with(moved[d]);
  }
  return lands
             ? best.or_cheaper(start.finish(moved).scatter(to, scattered).combine(open - scattered))
             : best;
}

}  // namespace

TEST_CASE("reshard: the chain that is kept is the cheapest of all, each priced to its end") {
  Random random(seed_for("reshard chains", 23));
  Tally tally;
  long chains = 0;
  const auto compare = [&](const TensorDesc& from, const Sharding& to, const MeshShape& mesh,
                           const Machine& machine) {
    const detail::Moves moves = detail::reshard_moves(from, to, from.type, mesh, machine);
    const PlainChain plain = plain_reshard(from, to, mesh, machine);
    bool same = moves.cost == plain.cost &&
                static_cast<std::size_t>(moves.list.size()) == plain.moves.size();
    for (int i = 0; same && i < moves.list.size(); ++i) {
      const detail::Move& mine = moves.list[i];
      const detail::Move& other = plain.moves[static_cast<std::size_t>(i)];
      same = mine.to == other.to && mine.collective == other.collective &&
             mine.group == other.group && mine.kind == other.kind && mine.near == other.near;
    }
    chains += plain.moves.size() > 1;
    tally.add(same ? ""
                   : describe(from, mesh) + " to " + describe(to, mesh) + " on " + describe(mesh) +
                         " goes another way");
  };
  for (const MeshShape& mesh : {MeshShape{2, 2, 2}, MeshShape{2, 4, 3}})
    for (const Sharding& from : shardings(2, 3, Reduction::sum))
      for (const Sharding& to : shardings(2, 3))
        compare({DType::f32, {64, 24}, from}, to, mesh, {});
  for (int i = 0; i < 20000; ++i) {
    MeshShape mesh;
    const int axes = 1 + random.below(5);
    for (int a = 0; a < axes; ++a) mesh.push_back(random.of<int>({1, 2, 3, 4, 8}));
    TensorDesc from{DType::f32,
                    {},
                    some_sharding(random, 1 + random.below(4), axes, random.chance(30) ? 40 : 0)};
    for (int d = 0; d < from.sharding.rank(); ++d)
      from.extents.push_back(random.of<Index>({0, 1, 3, 7, 16, 64, 130, 512}));
    compare(from, some_sharding(random, from.sharding.rank(), axes), mesh, some_machine(random));
  }
  MESSAGE(chains << " cases of several moves");
  CHECK(chains > 1000);
}

TEST_CASE("reshard: replicas share the sending, so that the one with most sends the least") {
  PlanOptions bytes_alone;
  bytes_alone.machine.message_ps = bytes_alone.machine.copy_ps_per_kib = 1;
  const auto payload = [&](const Extents& extents, const Sharding& from, const Sharding& to,
                           const MeshShape& mesh) {
    return ops::Reshard{to}
        .plan({TensorDesc{DType::f64, extents, from}}, {mesh, 0, bytes_alone})
        .payload_bytes();
  };
  const auto least = [](const Extents& extents, const Sharding& from, const Sharding& to,
                        const MeshShape& mesh) {
    return least_payload({DType::f64, extents, from}, {DType::f64, extents, to}, mesh);
  };
  // From two axes to a third, whose replicas each have what the others need; the same onto more
  // axes.
  const MeshShape cube{2, 2, 2}, grid{4, 2};
  const Sharding two{{1, 2}, {}}, third{{0}, {}}, one{{1}, {}}, more{{0, 1}, {}};
  CHECK(payload({96, 6}, two, third, cube) == least({96, 6}, two, third, cube));
  CHECK(payload({96, 6}, one, more, grid) == least({96, 6}, one, more, grid));
  Random random(seed_for("reshards and their bound", 43));
  int cases = 0, at_the_bound = 0;
  Index most = 0;
  for (const MeshShape& mesh : {MeshShape{8}, MeshShape{2, 4}, cube, MeshShape{3, 2}})
    for (int i = 0; i < 100; ++i) {
      const Extents extents{48, 24, random.of<Index>({24, 48})};
      const Sharding from = some_sharding(random, 3, mesh.rank()),
                     to = some_sharding(random, 3, mesh.rank());
      const Index bytes = payload(extents, from, to, mesh), bound = least(extents, from, to, mesh);
      ++cases;
      at_the_bound += bytes == bound;
      CHECK(bytes >= bound);
      if (bound > 0) most = max_of(most, 100 * bytes / bound);
    }
  MESSAGE(at_the_bound << " of " << cases << " are at the bound, " << most << " % at most");
  CHECK(at_the_bound >= cases * 17 / 20);
  CHECK(most <= 200);
}

// All processes wait for the one that sends most, whose blocks need not be process 0's: that one
// may have nothing to send, and the last may have an empty block.
TEST_CASE("reshard: a move is priced as on a process that sends most") {
  Random random(seed_for("reshard prices", 4));
  const Machine machine;
  long permutes = 0, exchanges = 0, others = 0, too_low = 0;
  for (int i = 0; i < 1500; ++i) {
    const MeshShape mesh = random.of<MeshShape>({{8, 8}, {5, 7}, {2, 4}, {3, 1, 2}, {16, 3}});
    const int rank = 1 + random.below(3);
    TensorDesc desc{DType::f32, {}, some_sharding(random, rank, mesh.rank(), 35)};
    Sharding to = some_sharding(random, rank, mesh.rank());
    if (random.below(3) == 0) {  // a permutation: two axes change places
      to = Sharding::replicated(rank);
      for (int d = 0; d < rank; ++d)
        for (int k = 0; k < desc.sharding[d].size(); ++k) {
          const int axis = desc.sharding[d][k];
          to.dims[d].push_back(axis < 2 ? 1 - axis : axis);
        }
    }
    for (int d = 0; d < rank; ++d)
      desc.extents.push_back(1 + random.below(random.below(2) ? 300 : 20));
    const Plan first = ops::Reshard{to}.plan({desc}, {mesh, 0});
    std::vector<std::int64_t> most(first.steps.size());
    for (int process = 0; process < mesh.processes(); ++process) {
      const Plan plan = ops::Reshard{to}.plan({desc}, {mesh, process});
      for (std::size_t k = 0; k < most.size(); ++k) {
        const Step& step = plan.steps[static_cast<int>(k)];
        if (step.kind == StepKind::communicate && step.messages > 0)
          most[k] = std::max(most[k], machine.transfer(step.payload, step.messages));
      }
    }
    for (std::size_t k = 0; k < most.size(); ++k) {
      const Step& step = first.steps[static_cast<int>(k)];
      if (step.kind != StepKind::communicate) continue;
      const bool exchange = step.collective == Collective::exchange;
      const bool permute = step.collective == Collective::collective_permute;
      ++(exchange ? exchanges : permute ? permutes : others);
      const std::int64_t priced = step.cost / 100 * (exchange ? 300 : permute ? 100 : 120);
      if (priced + 100 < most[k]) {
        ++too_low;
        INFO(describe(desc, mesh), " to ", describe(to, mesh), " on ", describe(mesh));
        CHECK(step.cost >= most[k]);
      }
    }
  }
  CHECK(permutes > 50);
  CHECK(exchanges > 200);
  CHECK(others > 200);
  CHECK(too_low == 0);
}
