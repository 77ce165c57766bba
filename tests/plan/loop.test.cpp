// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
// Products in rounds: all processes are played in a dry run, against a plain product; and the cases
// of looped products that a partitioner must get right, planned at full size.
#include <doctest/doctest.h>

#include <map>

#include "support/dry_run.hpp"
#include "support/loop_rows.hpp"

#include <tessera/plan/op/product/einsum.hpp>

using namespace tessera;
using namespace support;

namespace {

PlanOptions looping(Index limit, std::int64_t hidden = 0) {
  PlanOptions options;
  options.workspace_limit = limit;
  options.machine.hidden_percent = hidden;
  return options;
}

struct Case {
  Terms terms;
  TensorDesc a, b;
  Sharding out;
  MeshShape mesh;
  PlanOptions options;
  Plan plan(int process) const {
    return ops::Einsum{terms, out}.plan({a, b}, {mesh, process, options});
  }
};

Case some_case(Random& random) {
  static const std::vector<const char*> equations{
      "ik,kj->ij",   "ki,kj->ij",   "ik,jk->ji",   "bik,bkj->bij",  "bik,kbj->ibj",  "ikl,klj->ij",
      "ikl,lkj->ij", "aik,kj->aij", "ik,kjc->ijc", "iak,kcj->aijc", "bik,bjk->bijk", "ik,k->i",
      "k,kj->j",     "bi,bj->bij",  "ik,kj->jik",  "ikl,kjl->ij"};
  static const std::vector<MeshShape> meshes{
      {2},    {3},    {4},    {5},    {7},    {2, 2}, {2, 3},    {4, 2},    {2, 4},
      {3, 3}, {1, 4}, {4, 4}, {2, 6}, {3, 6}, {6, 2}, {2, 2, 2}, {2, 2, 3}, {4, 2, 2}};
  Case c;
  c.mesh = random.of(meshes);
  while (true) {
    c.terms = parse(random.of(equations));
    const int axes = c.mesh.rank();
    Term letters;
    Extents extents;
    for (const Term& term : c.terms.operands)
      for (char label : term)
        if (!letters.contains(label)) {
          letters.push_back(label);
          extents.push_back(random.of<Index>({1, 2, 3, 4, 5, 6, 7, 8, 9, 12}));
          if (random.chance(3)) extents.back() = 0;
        }
    const DType type = random.of<DType>({DType::f32, DType::bf16, DType::f64, DType::i8});
    const auto desc = [&](const Term& term) {
      TensorDesc x{type, {}, some_sharding(random, term.size(), axes)};
      for (char label : term) x.extents.push_back(extents[letters.find(label)]);
      return x;
    };
    c.a = desc(c.terms.operands[0]);
    c.b = desc(c.terms.operands[1]);
    c.out = some_sharding(random, c.terms.result.size(), axes);
    if (!detail::check_einsum(c.terms, {c.a.sharding, c.b.sharding}, c.out).ok()) continue;
    c.options =
        looping(random.of<Index>({0, 256, 600, max_int64}), random.of<std::int64_t>({0, 50, 100}));
    const std::int64_t hidden = c.options.machine.hidden_percent;
    if (random.chance(60)) c.options.machine = some_machine(random, axes);
    c.options.machine.hidden_percent = hidden;
    c.options.machine.two_way_percent = random.of<std::int64_t>({50, 100});
    return c;
  }
}

/// A product of matrices that are split over two axes each, so that both may travel.
Case some_split_case(Random& random) {
  static const std::vector<MeshShape> meshes{{2, 2},    {2, 3},    {3, 2},    {4, 2},    {2, 4},
                                             {3, 3},    {4, 4},    {2, 6},    {3, 6},    {6, 2},
                                             {2, 2, 2}, {2, 2, 3}, {4, 2, 2}, {2, 3, 2}, {3, 3, 3}};
  Case c;
  c.mesh = random.of(meshes);
  c.terms = parse(random.of<const char*>({"ik,kj->ij", "ki,kj->ij", "ik,jk->ij", "ik,kj->ji"}));
  Extents extents;
  for (int d = 0; d < 3; ++d) extents.push_back(random.of<Index>({6, 8, 9, 12, 13, 24}));
  const auto desc = [&](const Term& term, int of_k) {
    TensorDesc x{DType::f32, {}, Sharding::replicated(2)};
    for (int d = 0; d < 2; ++d) {
      x.extents.push_back(extents[term[d] - 'i']);
      x.sharding[d] = {term[d] == 'k' ? of_k : 1 - of_k};
    }
    return x;
  };
  c.a = desc(c.terms.operands[0], 1);
  c.b = desc(c.terms.operands[1], 0);
  c.out = Sharding::replicated(2);
  for (int d = 0; d < 2; ++d) c.out[d] = {c.terms.result[d] == 'i' ? 0 : 1};
  const bool hides = random.chance(50);
  c.options =
      looping(hides ? max_int64 : random.of<Index>({1024, 1536, 2048, 3072}), hides ? 100 : 0);
  if (hides) c.options.machine.kiloflop_ps_f32 = 1'000'000'000;
  return c;
}

std::string describe_case(const Case& c, const Plan& plan) {
  return to_text(c.terms) + " " + describe(c.a, c.mesh) + " " + describe(c.b, c.mesh) + " -> " +
         describe(c.out, c.mesh) + "\n" + describe(plan);
}

}  // namespace

TEST_CASE("products in rounds, played by all processes") {
  Random random(seed_for("products in rounds", 71));
  std::map<std::string, int> seen;
  long wrong = 0, loops = 0;
  for (int i = 0; i < 6000 / share; ++i) {
    const Case c = i % 3 == 0 ? some_split_case(random) : some_case(random);
    const Plan first = c.plan(0);
    const bool may_loop =
        c.options.workspace_limit < max_int64 || c.options.machine.hidden_percent > 0;
    const Step* const loop = loop_of(first);
    if (loop == nullptr) continue;
    CHECK(may_loop);
    ++loops;
    ++seen[std::string(name_of(loop->loop.kind)) + (loop->loop.both_ways ? " both ways" : "") +
           (loop->loop.layers.empty() ? "" : " in layers") +
           (c.terms.result.contains(loop->loop.letter) ? " of a free letter" : "")];
    std::string text;
    try {
      DryRun dry([&](int p) { return c.plan(p); }, c.mesh, c.options.machine);
      text = dry.broken_law();
      const Whole<DryRun::Value> expected =
          einsum(c.terms, whole_input<DryRun::Value>(c.a, c.mesh, 5),
                 whole_input<DryRun::Value>(c.b, c.mesh, 6));
      for (const bool late : {false, true}) {
        dry.move_late(late);
        if (text.empty()) text = dry.wrong_result({5, 6}, expected);
      }
      for (int p = 1; p < c.mesh.processes() && text.empty(); ++p)
        if (!(on_process(first, p) == c.plan(p))) text = "on another process other numbers";
    } catch (const std::exception& error) {
      text = error.what();
    }
    if (text.empty() && first.payload_bytes() < payload_bound(first))
      text = "the payload is less than its bound, " + std::to_string(payload_bound(first));
    if (!text.empty() && ++wrong <= 5) MESSAGE(std::string(text + "\n" + describe_case(c, first)));
  }
  CHECK(wrong == 0);
  for (const auto& [name, count] : seen) MESSAGE(name << ": " << count);
  if (support::share > 1) return;  // too few cases for every one to be chosen
  for (const char* name :
       {"gather loop", "gather loop of a free letter", "gather loop both ways",
        "gather loop both ways of a free letter", "reduce-scatter loop of a free letter",
        "reduce-scatter loop both ways of a free letter", "Cannon loop", "SUMMA loop",
        "Cannon loop in layers", "SUMMA loop in layers"})
    CHECK_MESSAGE(seen[name] > 0, (std::string(name) + " was not chosen once"));
}

TEST_CASE("the payload of a product is at least its bound") {
  Random random(seed_for("bounds of products", 72));
  long bounds = 0, tight = 0;
  for (int i = 0; i < 3000 / share; ++i) {
    const Case c = some_case(random);
    const Plan plan = c.plan(0);
    const Index bound = payload_bound(plan);
    CHECK_MESSAGE(plan.payload_bytes() >= bound, describe_case(c, plan));
    bounds += bound > 0;
    tight += bound > 0 && plan.payload_bytes() == bound;
  }
  CHECK(bounds > 0);
  CHECK(tight > 0);
}

TEST_CASE("loops of the conformance cases") {
  for (const LoopRow& row : loop_rows()) {
    const TensorDesc a{row.type, row.a, row.sa}, b{row.type, row.b, row.sb};
    const auto plan_with = [&](PlanOptions options) {
      options.narrow_parts = true;  // the limit has no room for floats
      return ops::Einsum{parse(row.equation), row.out}.plan({a, b}, {row.mesh, 0, options});
    };
    const Plan plain = plan_with({}),
               looped = plan_with(row.limit > 0 ? looping(row.limit) : looping(max_int64, 100));
    const std::string text = std::string(row.name) + "\n" + describe(plain) + describe(looped);
    const Step* const loop = loop_of(looped);
    CHECK_MESSAGE(plan_with(looping(max_int64)) == plain, row.name);
    CHECK_MESSAGE(looped.over_limit == 0, text);
    if (row.limit > 0) {
      CHECK_MESSAGE(tessera::detail::workspace_of_origin(plain) > row.limit, text);
      CHECK_MESSAGE(tessera::detail::workspace_of_origin(looped) <= row.limit, text);
      CHECK_MESSAGE(looped.payload_bytes() <= plain.payload_bytes(), text);
    }
    REQUIRE_MESSAGE(loop != nullptr, text);
    CHECK_MESSAGE(loop->loop.kind == row.kind, text);
    CHECK_MESSAGE(row.mesh.group_size(loop->group) == row.ring, text);
    CHECK_MESSAGE(looped.result_desc().sharding == row.out, text);
    // Where transfers hide behind products, they loop without a limit.
    const Plan hiding = plan_with(looping(max_int64, 100));
    CHECK_MESSAGE(loop_of(hiding) != nullptr, (std::string(row.name) + "\n" + describe(hiding)));
    CHECK_MESSAGE(hiding.cost < plain.cost, row.name);
  }
}

TEST_CASE("two products that share a gathered operand do not loop") {
  // W9: one all-gather, two products.
  const MeshShape mesh{4};
  const TensorDesc shared{DType::f32, {3264, 2176}, {{}, {0}}};
  const Plan gather = ops::Reshard{{{}, {}}}.plan({shared}, {mesh, 0, looping(max_int64, 100)});
  CHECK(gather.count(all_gather) == 1);
  for (int i = 0; i < 2; ++i) {
    const Plan product = ops::Einsum{parse("mk,kn->mn"), {{0}, {}}}.plan(
        {TensorDesc{DType::f32, {2048, 3264}, {{0}, {}}}, gather.result_desc()},
        {mesh, 0, looping(0, 100)});
    CHECK(product.communications() == 0);
    CHECK(loop_of(product) == nullptr);
  }
}

TEST_CASE("a plan says by how much it exceeds the workspace limit") {
  const MeshShape mesh{2, 4};
  const TensorDesc a{DType::f32, {4000, 4000}, {{0}, {1}}};
  const Terms terms = parse("ik,kj->ij");
  const Plan plain = ops::Einsum{terms, {{0}, {1}}}.plan({a, a}, {mesh});
  const Plan impossible = ops::Einsum{terms, {{0}, {1}}}.plan({a, a}, {mesh, 0, looping(1)});
  CHECK(impossible.steps == plain.steps);
  CHECK(impossible.over_limit == tessera::detail::workspace_of_origin(plain) - 1);
  CHECK(explain(impossible, axis_names(2)).find("the workspace limit is exceeded by 45.7 MiB") !=
        std::string::npos);
  // A contract that accepts no loop keeps the gathers.
  PlanOptions bounded = looping(24 << 20);
  bounded.contract = Contract::nothing();
  bounded.contract.accept(Collective::all_gather, AxisSet{0, 1});
  const Plan kept = ops::Einsum{terms, {{0}, {1}}}.plan({a, a}, {mesh, 0, bounded});
  CHECK(kept.count(all_gather) == 2);
  CHECK(kept.over_limit > 0);
}

namespace {
// Loops are planned in constant expressions, too.
constexpr Plan constant_loop() {
  PlanOptions options;
  options.workspace_limit = 24 << 20;
  const TensorDesc a{DType::f32, {4000, 4000}, {{0}, {1}}};
  return ops::Einsum{parse("ik,kj->ij"), {{0}, {1}}}.plan({a, a}, {MeshShape{2, 4}, 0, options});
}
static_assert(constant_loop().count(collective_permute) == 1);
}  // namespace
