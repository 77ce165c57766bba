// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_rows
// Contracts: what is kept for stand-in sizes is kept on every mesh of those axes, whatever the
// sizes, and the plans that keep it are right.
#include <doctest/doctest.h>

#include "support/dry_run.hpp"

#include <tessera/plan/check/contract.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/product/einsum.hpp>

using namespace tessera;
using namespace support;

namespace {

struct Tally {
  long cases = 0;
  long kept = 0;
  long wrong = 0;
  void add(const std::string& text) {
    if (!text.empty() && ++wrong <= 5) MESSAGE(text);
  }
};

/// The stand-in mesh of three axes of open size.
const MeshShape stand_in{2, 3, 4};

PlanOptions under(const Contract& contract, const Machine& machine = {}) {
  PlanOptions options;
  options.machine = machine;
  options.contract = contract;
  return options;
}
/// Some contract: each clause absent, over some axes, or over all.
Contract some_contract(Random& random) {
  Contract contract = Contract::nothing();
  for (int kind = 0; kind < detail::collective_kinds; ++kind) {
    const int which = random.below(4);
    if (which == 1)
      contract.accept(static_cast<Collective>(kind),
                      AxisSet::from_bits(static_cast<std::uint32_t>(random.below(8))));
    if (which == 2) contract.accept(static_cast<Collective>(kind), AxisSet{0, 1, 2});
  }
  return contract;
}
const std::vector<MeshShape>& sizes_of_three() {
  static const std::vector<MeshShape> all = [] {
    std::vector<MeshShape> meshes;
    for (int a = 1; a <= 3; ++a)
      for (int b = 1; b <= 3; ++b)
        for (int c = 1; c <= 3; ++c) meshes.push_back({a, b, c});
    return meshes;
  }();
  return all;
}
Extents some_extents(Random& random, int rank) {
  Extents extents;
  for (int d = 0; d < rank; ++d) extents.push_back(random.of<Index>({0, 1, 2, 3, 5, 6, 7, 12, 60}));
  return extents;
}
/// Steps say what was counted.
std::string wrong_needs(const Plan& plan) {
  Contract seen = Contract::nothing();
  for (const Step& step : plan.steps)
    if (step.communicates()) seen.accept(step.collective, step.group);
  return seen == plan.needs ? ""
                            : "the plan needs " + to_string(plan.needs, axis_names(3)) +
                                  " but has other steps\n" + describe(plan);
}

}  // namespace

TEST_CASE("reshard: a contract that is kept for stand-in sizes is kept on every mesh") {
  Random random(seed_for("contracts of reshard", 60));
  Tally tally;
  for (int i = 0; i < 20000 / share; ++i) {
    const int rank = random.below(4);
    const Sharding from = some_sharding(random, rank, 3, random.chance(50) ? 30 : 0);
    const Sharding to = some_sharding(random, rank, 3);
    const Contract contract = some_contract(random);
    ++tally.cases;
    if (!contract.covers(needs(ops::Reshard{to}, Shardings{from}, stand_in, contract))) continue;
    ++tally.kept;
    const TensorDesc desc{DType::i64, some_extents(random, rank), from};
    const PlanOptions options = under(contract, some_machine(random, 3));
    for (const MeshShape& mesh : sizes_of_three()) {
      const Plan plan = ops::Reshard{to}.plan({desc}, {mesh, 0, options});
      tally.add(wrong_needs(plan));
      if (!contract.covers(plan.needs))
        tally.add(describe(desc, mesh) + " to " + describe(to, mesh) + " on " + describe(mesh) +
                  " under " + to_string(contract, axis_names(3)) + ":\n" + describe(plan));
    }
    if (volume(desc.extents) > 2000) continue;
    const MeshShape& mesh = random.of(sizes_of_three());
    DryRun run(
        [&](int process) {
          return ops::Reshard{to}.plan({desc}, {mesh, process, options});
        },
        mesh, options.machine);
    tally.add(run.broken_law());
    tally.add(run.wrong_result({17}, whole_input<DryRun::Value>(desc, mesh, 17)));
  }
  MESSAGE(tally.kept << " of " << tally.cases << " contracts are kept");
  CHECK(tally.kept > 3000 / share);
  CHECK(tally.kept < tally.cases - 3000 / share);
  CHECK(tally.wrong == 0);
}

namespace {
/// A mesh type whose axes' sizes are fixed or open.
struct a : Axis<> {};
struct b : Axis<> {};
struct four : Axis<4> {};
struct fore : Axis<4> {};
struct two : Axis<2> {};
}  // namespace

TEST_CASE("the stand-in mesh: fixed sizes as they are, open ones all different") {
  CHECK(detail::stand_in_mesh<Mesh<a, b>>() == MeshShape{2, 3});
  CHECK(detail::stand_in_mesh<Mesh<a, two, b, four>>() == MeshShape{3, 2, 5, 4});
  const Sharding from{{0}, {1}}, to{{1}, {0}};
  const Contract by_permutes = contract_of<Mesh<a, b>, Only<permutes<>>>();
  CHECK(!by_permutes.covers(needs(ops::Reshard{to}, Shardings{from},
                                  detail::stand_in_mesh<Mesh<a, b>>(),
                                  by_permutes)));  // sizes may differ
  CHECK(by_permutes.covers(needs(ops::Reshard{to}, Shardings{from},
                                 detail::stand_in_mesh<Mesh<four, fore>>(), by_permutes)));
  const Contract by_exchanges = contract_of<Mesh<a, b>, Only<exchanges<>>>();
  CHECK(by_exchanges.covers(
      needs(ops::Reshard{to}, Shardings{from}, detail::stand_in_mesh<Mesh<a, b>>(), by_exchanges)));
  CHECK(by_exchanges.covers(
      ops::Reshard{to}
          .plan({TensorDesc{DType::f32, {6, 6}, from}}, {MeshShape{2, 2}, 0, under(by_exchanges)})
          .needs));
}

TEST_CASE("other ways where the usual one is not accepted") {
  const MeshShape mesh{2, 3};
  const auto collectives = [&](const Sharding& from, const Sharding& to, const Contract& contract) {
    const Plan plan =
        ops::Reshard{to}.plan({TensorDesc{DType::f32, {12, 12}, from}}, {mesh, 0, under(contract)});
    CHECK(contract.covers(plan.needs));
    std::string text;
    for (const Step& step : plan.steps)
      text += std::string(step.kind == StepKind::communicate ? name_of(step.collective)
                                                             : name_of(step.kind)) +
              " ";
    return text;
  };
  using Grid = Mesh<a, b>;
  const Sharding open = Sharding{{}, {}}.with_partial(AxisSet{1}, Reduction::sum);
  CHECK(collectives(open, {{}, {}}, contract_of<Grid, Only<reduce_scatters<>, gathers<>>>()) ==
        "reduce-scatter all-gather ");
  CHECK(collectives(open, {{1}, {}}, contract_of<Grid, Only<all_reduces<>>>()) ==
        "all-reduce slice ");
  CHECK(collectives({{0}, {1}}, {{1}, {0}}, contract_of<Grid, Only<gathers<>>>()) ==
        "all-gather slice ");
  CHECK(collectives({{0}, {}}, {{}, {0}}, contract_of<Grid, Only<gathers<>>>()) ==
        "all-gather slice ");
  CHECK(collectives({{0}, {}}, {{}, {}}, contract_of<Grid, Only<exchanges<>>>()) == "exchange ");
  CHECK(collectives({{}, {}}, {{0}, {1}}, Contract::nothing()) == "slice ");
}

TEST_CASE("einsum: a contract chooses among the ways of one product") {
  const Terms terms = parse("ik,kj->ij");
  const auto collectives = [&](const Contract& contract) {
    const Plan plan = ops::Einsum{terms, {{}, {}}}.plan(
        {TensorDesc{DType::f32, {64, 64}, {{}, {0}}}, TensorDesc{DType::f32, {64, 64}, {{0}, {}}}},
        {MeshShape{4}, 0, under(contract)});
    CHECK(contract.covers(plan.needs));
    return to_string(plan.needs, axis_names(1));
  };
  CHECK(collectives(contract_of<Mesh<a>, Only<all_reduces<>>>()) == "Only<all_reduces<a>>");
  CHECK(collectives(contract_of<Mesh<a>, Only<gathers<>>>()) == "Only<gathers<a>>");
  CHECK(collectives(contract_of<Mesh<a>, Only<reduce_scatters<>, gathers<a>>>())
            .find("all_reduces") == std::string::npos);
}

TEST_CASE(
    "products of many: judged from left to right, run in the cheapest order that keeps the "
    "contract") {
  Random random(seed_for("contracts of many", 62));
  Tally tally;
  const std::vector<std::string> equations{"ij,jk,kl->il", "ij,jk,kl,lm->im", "i,j,k->ijk",
                                           "ab,b,bc,c,cd,d->ad"};
  for (int i = 0; i < 400; ++i) {
    const Terms terms = parse(random.of(equations));
    Shardings shardings;
    for (const Term& term : terms.operands)
      shardings.push_back(some_sharding(random, term.size(), 3));
    const Sharding out = random.chance(50) ? detail::deduce(terms, shardings)
                                           : some_sharding(random, terms.result.size(), 3);
    const Contract contract = some_contract(random);
    ++tally.cases;
    if (!contract.covers(needs(ops::Einsum{terms, out}, shardings, stand_in, contract))) continue;
    ++tally.kept;
    TensorDescs descs;
    for (const Sharding& s : shardings) descs.push_back({DType::f32, Extents(s.rank(), 12), s});
    const MeshShape& mesh = random.of(sizes_of_three());
    const PlanOptions options = under(contract, some_machine(random, 3));
    const detail::EinsumOrder order = detail::einsum_order(terms, descs, out, mesh, options);
    CHECK(detail::breaches(order.cost) == 0);
  }
  MESSAGE(tally.kept << " of " << tally.cases << " contracts are kept");
  CHECK(tally.kept > 50);
  CHECK(tally.kept < tally.cases - 50);
}

TEST_CASE("einsum: a contract that is kept for stand-in sizes is kept on every mesh") {
  Random random(seed_for("contracts of einsum", 61));
  Tally tally;
  const std::vector<std::string> equations{"ik,kj->ij", "ij,jk->ik", "bij,bjk->bik", "bsm,mh->bsh",
                                           "i,j->ji",   "ij,ij->",   "ika,kj->ji"};
  for (int i = 0; i < 6000 / share; ++i) {
    const Terms terms = parse(random.of(equations));
    const Sharding a =
        some_sharding(random, terms.operands[0].size(), 3, random.chance(20) ? 30 : 0);
    const Sharding b = some_sharding(random, terms.operands[1].size(), 3);
    const Sharding out = random.chance(30) ? detail::deduce(terms, {a, b})
                                           : some_sharding(random, terms.result.size(), 3,
                                                           random.chance(20) ? 30 : 0);
    if (!detail::check_einsum(terms, {a, b}, out).ok()) continue;
    const Contract contract = some_contract(random);
    ++tally.cases;
    if (!contract.covers(needs(ops::Einsum{terms, out}, Shardings{a, b}, stand_in, contract)))
      continue;
    ++tally.kept;
    Term letters;
    for (const Term& term : terms.operands)
      for (char label : term)
        if (!letters.contains(label)) letters.push_back(label);
    const Extents of_letter = some_extents(random, letters.size());
    TensorDesc da{DType::i64, {}, a}, db{DType::i64, {}, b};
    for (char label : terms.operands[0]) da.extents.push_back(of_letter[letters.find(label)]);
    for (char label : terms.operands[1]) db.extents.push_back(of_letter[letters.find(label)]);
    PlanOptions options = under(contract, some_machine(random, 3));
    if (random.chance(30)) options.workspace_limit = 100;
    for (const MeshShape& mesh : sizes_of_three()) {
      const Plan plan = ops::Einsum{terms, out}.plan({da, db}, {mesh, 0, options});
      tally.add(wrong_needs(plan));
      if (!contract.covers(plan.needs))
        tally.add(describe(mesh) + " under " + to_string(contract, axis_names(3)) + ":\n" +
                  describe(plan));
    }
  }
  MESSAGE(tally.kept << " of " << tally.cases << " contracts are kept");
  CHECK(tally.kept > 500 / share);
  CHECK(tally.kept < tally.cases - 500 / share);
  CHECK(tally.wrong == 0);
}

TEST_CASE("a contract is judged by names alone, however many letters a product has") {
  using Grid = Mesh<a, b>;
  const Contract pattern = contract_of<Grid, Only<gathers<a>, reduce_scatters<b>>>();
  const MeshShape mesh{2, 3};
  const auto kept = [&](std::string_view equation, const Shardings& x, const Sharding& out) {
    ops::Einsum product{parse(equation)};
    product.out = out;
    return pattern.covers(needs(product, x, mesh, pattern));
  };
  CHECK(kept("bsk,km->bsm", {{{0}, {}, {1}}, {{1}, {0}}}, {{0}, {}, {1}}));
  CHECK(kept("bsnd,ndm->bsm", {{{0}, {}, {1}, {}}, {{1}, {}, {0}}}, {{0}, {}, {1}}));
  CHECK(kept("bsndefgh,ndefghm->bsm",
             {{{0}, {}, {1}, {}, {}, {}, {}, {}}, {{1}, {}, {}, {}, {}, {}, {0}}}, {{0}, {}, {1}}));
  CHECK(kept("bsnd,ndm->bsm", {{{0}, {}, {1}, {}}, {{1}, {}, {0}}}, {{}, {}, {1}}) ==
        kept("bsk,km->bsm", {{{0}, {}, {1}}, {{1}, {0}}}, {{}, {}, {1}}));
}
