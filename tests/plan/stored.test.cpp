// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// Plans of operators on what lies within a halo: where they copy, and that nothing else differs.
#include <doctest/doctest.h>

#include <functional>

#include <tessera/plan/op/halo/halo_exchange.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/plan/op/rows/scan.hpp>
#include <tessera/plan/op/rows/sort.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/program/on_process.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

namespace {
const MeshShape mesh{2, 3};
const TensorDesc x{DType::f64, {9, 7}, Sharding{{0}, {1}}};
const Halo wide{{1, 2, Boundary::periodic}, {2, 1, Boundary::constant}};
const Halo rows{{1, 2, Boundary::periodic}, {0, 0, Boundary::none}};

using MakePlan = std::function<Plan(int, const PlanOptions&)>;
int copies(const Plan& plan) {
  int n = 0;
  for (const Step& step : plan.steps) n += step.kind == StepKind::copy && step.region < 0;
  return n;
}
/// Returns how many copies more there are where the first operand lies within a halo; checks that
/// the rest is as it was, on every process.
int more_copies(const MakePlan& make, const Halo& halo = wide) {
  detail::StoredWithin stored;
  stored.operands.push_back(halo);
  PlanOptions options;
  options.stored = &stored;
  const Plan first = make(0, options);
  CHECK(explain(first, {"a", "b"}).find("stored with halo ") != std::string::npos);
  for (int p = 0; p < mesh.processes(); ++p) {
    const Plan within = make(p, options), alone = make(p, {});
    CHECK(on_process(first, p) == within);
    CHECK(within.own_payload_bytes() == alone.own_payload_bytes());
    CHECK(within.messages() == alone.messages());
    CHECK(within.flops() == alone.flops());
    CHECK(within.needs == alone.needs);
    if (copies(within) == copies(alone) && within.steps.size() == alone.steps.size() &&
        within.communications() == 0)
      CHECK(within.peak_bytes == alone.peak_bytes);
  }
  return copies(first) - copies(make(0, {}));
}
MakePlan reduction(const char* equation, const Sharding& out) {
  return [=](int p, const PlanOptions& options) {
    return ops::Reduce{
        .terms = parse(equation), .reduction = Reduction::sum, .type = x.type, .out = out}
        .plan({x}, {mesh, p, options});
  };
}
MakePlan change(const Sharding& to) {
  return [=](int p, const PlanOptions& options) {
    return ops::Reshard{to}.plan({x}, {mesh, p, options});
  };
}
MakePlan product(const char* equation, const TensorDesc& y, const Sharding& out) {
  return [=](int p, const PlanOptions& options) {
    return ops::Einsum{parse(equation), out}.plan({x, y}, {mesh, p, options});
  };
}
}  // namespace

TEST_CASE("what kernels with strides read is read where it lies") {
  const MakePlan sum_of_two = [](int p, const PlanOptions& options) {
    return ops::Map{.terms = detail::broadcast_terms({2, 2}),
                    .type = DType::f64,
                    .out = x.sharding,
                    .reads_index = false}
        .plan({x, x}, {mesh, p, options});
  };
  CHECK(more_copies(sum_of_two) == 0);
  CHECK(more_copies(reduction("ab->a", Sharding{{0}})) == 0);
  CHECK(more_copies(reduction("ab->", Sharding{})) == 0);
  CHECK(more_copies(change(Sharding{{1}, {0}})) == 0);
  CHECK(more_copies(change(Sharding{{0, 1}, {}})) == 0);
  const TensorDesc square{DType::f64, {7, 5}, Sharding{{1}, {}}};
  CHECK(more_copies(product("ab,bc->ac", square, Sharding{{0}, {}})) == 0);
  CHECK(more_copies([](int p, const PlanOptions& options) {
          return ops::Transpose{parse("ab->ba"), Sharding{{1}, {0}}}.plan({x}, {mesh, p, options});
        }) == 0);
  CHECK(more_copies([](int p, const PlanOptions& options) {
          return ops::HaloExchange{{wide}}.plan({x}, {mesh, p, options});
        }) == 0);
}

TEST_CASE("before what takes one row of memory stands a copy, but not where a halo leaves one") {
  const MakePlan running = [](int p, const PlanOptions& options) {
    return ops::Scan{.terms = parse("ab->ab"),
                     .along = 'a',
                     .reduction = Reduction::sum,
                     .type = x.type,
                     .out = x.sharding}
        .plan({x}, {mesh, p, options});
  };
  const MakePlan ordered = [](int p, const PlanOptions& options) {
    return ops::Sort{parse("ab->ab"), 'a', {}, x.sharding}.plan({x}, {mesh, p, options});
  };
  const MakePlan everywhere = change(Sharding::replicated(2));
  const MakePlan dotted = product("ab,ab->", x, Sharding{});
  for (const MakePlan& make : {running, everywhere, dotted}) {
    CHECK(more_copies(make) == 1);
    CHECK(more_copies(make, rows) == 0);
  }
  CHECK(more_copies(ordered, rows) == 0);
  // From a sharding to itself a tensor is itself, unless it lies within a halo.
  CHECK(more_copies(change(x.sharding)) == 1);
  CHECK(more_copies(change(x.sharding), rows) == 1);
}

TEST_CASE("a destination within a halo is written there by what takes strides") {
  detail::StoredWithin stored;
  stored.operands = {wide, Halo{}};
  stored.destination = wide;
  PlanOptions options;
  options.stored = &stored;
  options.destination = Destination::accumulated;
  const Plan added = ops::Map{.terms = detail::broadcast_terms({2, 2}),
                              .type = DType::f64,
                              .out = x.sharding,
                              .reads_index = false}
                         .plan({x, x}, {mesh, 4, options});
  CHECK(added.steps.size() == 1);
  CHECK(added.peak_bytes == 0);
  CHECK(added.slots[added.result].given);
  // Process 4 owns rows 5 to 8 and columns 3 to 5, in memory that is 6 wide.
  CHECK(added.slots[added.result].first == 1 * 6 + 2);
  CHECK(detail::strides_of(added, added.slots[added.result], mesh.coordinates(4)) == Extents{6, 1});
  options.destination = Destination::given;
  stored.operands = {Halo{}};
  const Plan reduced =
      ops::Reduce{.terms = parse("abc->ab"),
                  .reduction = Reduction::sum,
                  .type = DType::f64,
                  .out = x.sharding}
          .plan({TensorDesc{DType::f64, {9, 7, 4}, Sharding{{0}, {1}, {}}}}, {mesh, 4, options});
  CHECK(copies(reduced) == 1);
  CHECK(reduced.peak_bytes == detail::arena_charge(reduced.slots[1].bytes));
}
