// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <set>
#include <vector>

#include <doctest/doctest.h>
#include <tessera/plan/op/arg.hpp>
#include <tessera/plan/op/einsum.hpp>
#include <tessera/plan/op/map.hpp>
#include <tessera/plan/op/reshard.hpp>
#include <tessera/plan/op/scan.hpp>
#include <tessera/plan/op/sort.hpp>
#include <tessera/plan/op/transpose.hpp>

using namespace tessera;

namespace {
const MeshShape mesh{2, 3};
const TensorDesc x{DType::f32, {12, 18}, Sharding{{0}, {}}};
const TensorDesc w{DType::f32, {18, 24}, Sharding{{}, {1}}};
const Sharding both{{0}, {1}};

/// What holds of every operator: the value of any kind answers what the struct answers.
template <class Op> void check_laws(const Op& op, const TensorDescs& operands) {
  const Operation any(op);
  const PlanOptions options;
  CHECK(any.kind() == op.kind());
  CHECK(any.name() == detail::name_in_messages(op));
  CHECK(any.digest() == digest_of(op));
  CHECK(any.check(operands) == op.check(operands));
  CHECK(any.view().get_if<Op>() != nullptr);
  CHECK(*any.view().get_if<Op>() == op);
  const Operation copy = any;
  CHECK(copy == any);
  CHECK(copy.digest() == any.digest());
  REQUIRE(op.check(operands).ok());
  CHECK(any.results(operands) == op.results(operands));
  for (int process = 0; process < mesh.processes(); ++process) {
    const Planning on{mesh, process, options};
    const Plan plan = op.plan(operands, on);
    CHECK(any.plan(operands, on) == plan);
    CHECK(plan.kind == op.kind());
    CHECK(plan.result_desc() == op.results(operands)[0]);
  }
}

ops::Einsum product(std::string_view equation, const Sharding& out) {
  return {parse(equation), out};
}
ops::Reduce reduction(std::string_view equation, Reduction kind, const Sharding& out) {
  return {parse(equation), kind, false, false, DType::f32, out};
}
}  // namespace

TEST_CASE("an operation answers what its struct answers") {
  check_laws(product("ik,kj->ij", both), {x, w});
  check_laws(product("ik,kj->ji", Sharding{{1}, {}}), {x, w});
  check_laws(product("ik->k", Sharding{{1}}), {x});
  check_laws(ops::Einsum{parse("ik,kj->ij"), both, true, DType::f64},
             {x, w, {DType::f32, {24}, Sharding{{1}}}});
  check_laws(reduction("ij->i", Reduction::sum, Sharding{{0}}), {x});
  check_laws(reduction("ij->j", Reduction::max, Sharding{{}}), {x});
  check_laws(ops::Reduce{parse("ij->j"), Reduction::sum, true, true, DType::f32, Sharding{{}}},
             {x});
  check_laws(ops::Reshard{both}, {x});
  check_laws(ops::Transpose{parse("ij->ji"), both}, {x});
  check_laws(ops::Map{broadcast_terms({2, 1}), DType::f64, Linearity::pointwise, both},
             {x, {DType::f32, {18}, Sharding{{1}}}});
  check_laws(ops::Arg{parse("ij->i"), Reduction::max, Sharding{{0}}}, {x});
  check_laws(ops::Scan{same_terms("ij"), 'j', Reduction::sum, {.reverse = true}, DType::f32, both},
             {x});
  check_laws(ops::Sort{same_terms("ij"), 'j', {.descending = true, .positions = true}, both}, {x});
  check_laws(ops::Sort{same_terms("ij"), 'i', {.limit = 3, .kind = OperatorKind::top_k}, both},
             {x});
}

TEST_CASE("operations differ where a member differs, and have other digests") {
  std::vector<Operation> every{
      product("ik,kj->ij", both),
      product("ik,kj->ij", Sharding{{0}, {}}),
      product("ik,kj->ji", both),
      product("ik,jk->ij", both),
      ops::Einsum{parse("ik,kj->ij"), both, true},
      ops::Einsum{parse("ik,kj->ij"), both, true, DType::f64},
      ops::Einsum{parse("ik,kj->ij"), both, true, DType::f64, true},
      reduction("ij->i", Reduction::sum, Sharding{{0}}),
      reduction("ij->i", Reduction::max, Sharding{{0}}),
      reduction("ij->i", Reduction::sum, Sharding{{1}}),
      ops::Reduce{parse("ij->i"), Reduction::sum, true, false, DType::f32, Sharding{{0}}},
      ops::Reduce{parse("ij->i"), Reduction::sum, false, true, DType::f32, Sharding{{0}}},
      ops::Reduce{parse("ij->i"), Reduction::sum, false, false, DType::f64, Sharding{{0}}},
      ops::Reshard{both},
      ops::Reshard{Sharding{{0}, {}}}};
  std::set<std::uint64_t> digests;
  for (std::size_t i = 0; i < every.size(); ++i) {
    digests.insert(every[i].digest());
    for (std::size_t j = 0; j < every.size(); ++j) CHECK((every[i] == every[j]) == (i == j));
  }
  CHECK(digests.size() == every.size());
}

TEST_CASE("what an operation needs does not depend on extents") {
  const TensorDesc small{DType::f32, {1, 2}, Sharding{{0}, {1}}},
      large{DType::f32, {1 << 20, 1 << 20}, Sharding{{0}, {1}}};
  const ops::Reshard whole{Sharding{{}, {}}};
  const Contract needed = needs(whole, {small}, mesh, Contract{});
  CHECK(needed == needs(whole, {large}, mesh, Contract{}));
  CHECK(needed.covers(Contract::nothing()));
  CHECK_FALSE(Contract::nothing().covers(needed));
}

TEST_CASE("what is broken is explained with its facts") {
  const AxisNames names{"data", "model"};
  const ops::Einsum op = product("ik,kj->ij", both);
  const TensorDescs operands{x, {DType::f32, {17, 24}, w.sharding}};
  const Verdict v = Operation(op).check(operands);
  CHECK(v.rule == Rule::extents_agree);
  CHECK(OperationView(op).explain(v, operands, names).find("k is 18 in operand 1") !=
        std::string::npos);
  CHECK(OperationView(op).text(names) == " to P<data,model>");
}
