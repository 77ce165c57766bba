// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
// Reshapes send what must be sent: one exchange between any two blocks, compared with a bound that
// is counted element by element. What arrives is compared with plain loops in shape.test.cpp.
#include <doctest/doctest.h>

#include "support/dry_run.hpp"
#include "support/least_payload.hpp"
#include "support/shapes.hpp"

#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/payload_bound.hpp>

using namespace tessera;
using namespace support;

namespace {

/// A machine on which only bytes take time.
PlanOptions bytes_alone() {
  PlanOptions options;
  options.machine.message_ps = options.machine.copy_ps_per_kib = 1;
  return options;
}
Plan reshaped(const TensorDesc& x, const TensorDesc& y, const MeshShape& mesh,
              const PlanOptions& options = {}) {
  return detail::plan_reshape(x, y, mesh, 0, options);
}
/// Returns a sharding that uses every axis of the mesh once.
Sharding split_over_all(Random& random, int rank, int axes) {
  Sharding s = Sharding::replicated(rank);
  std::vector<int> order;
  for (int axis = 0; axis < axes; ++axis)
    order.insert(order.begin() + random.below(axis + 1), axis);
  for (const int axis : order) s[random.below(rank)].push_back(axis);
  return s;
}

}  // namespace

TEST_CASE("a reshape between blocks that hold the same elements sends nothing") {
  const MeshShape mesh{2, 4};
  const TensorDesc x{DType::f64, {2, 12000}, {{0}, {1}}}, y{DType::f64, {24000}, {{0, 1}}};
  CHECK(reshaped(x, y, mesh).communications() == 0);
  CHECK(reshaped(y, x, mesh).communications() == 0);
  Random random(seed_for("reshapes that need nothing", 41));
  int needless = 0;
  for (const MeshShape& m : meshes(8, 3))
    for (int i = 0; i < 60; ++i) {
      const auto [from, to] = some_reshape(random);
      const TensorDesc a{DType::f32, from, some_sharding(random, from.size(), m.rank())},
          b{DType::f32, to, some_sharding(random, to.size(), m.rank())};
      if (least_payload(a, b, m) > 0) continue;
      ++needless;
      const Plan plan = reshaped(a, b, m);
      CAPTURE(describe(plan));
      CHECK(plan.payload_bytes() == 0);
    }
  CHECK(needless > 100);
}

TEST_CASE("a reshape between any blocks is one exchange of the least bytes") {
  // Sequences that are split along their positions become rows, and rows sequences.
  const TensorDesc tokens{DType::f32, {4, 1024, 512}, {{}, {0}, {}}},
      rows{DType::f32, {4096, 512}, {{0}, {}}};
  const Index half = 512 * 512 * 4;
  for (const Plan& plan : {reshaped(tokens, rows, {8}), reshaped(rows, tokens, {8})}) {
    CHECK(plan.communications() == 1);
    CHECK(plan.payload_bytes() == half);
  }
  CHECK(least_payload({DType::f32, {4, 64, 2}, {{}, {0}, {}}}, {DType::f32, {256, 2}, {{0}, {}}},
                      {8}) == half / (16 * 256));
  // Rows of both sides have only the whole tensor in common, or a part of it.
  const PlanOptions options = bytes_alone();
  const TensorDesc dozen{DType::f64, {12, 8}, {{}, {0}}}, sixteen{DType::f64, {16, 6}, {{0}, {}}};
  CHECK(reshaped(dozen, sixteen, {4}, options).payload_bytes() ==
        least_payload(dozen, sixteen, {4}));
  const TensorDesc odd{DType::f64, {31, 32}, {{}, {0}}}, even{DType::f64, {32, 31}, {{}, {0}}};
  CHECK(reshaped(odd, even, {4}, options).payload_bytes() == least_payload(odd, even, {4}));
  // Without replicas it is the bound wherever that takes the least time too.
  Random random(seed_for("reshapes and their bound", 42));
  int cases = 0, direct = 0, at_the_bound = 0;
  for (const MeshShape& mesh : {MeshShape{8}, MeshShape{2, 4}, MeshShape{2, 2, 2}, MeshShape{2, 3}})
    for (int i = 0; i < 60; ++i) {
      const Index part = random.of<Index>({24, 32, 40, 48}), other = random.of<Index>({8, 16, 60});
      const Extents from =
          random.chance(50) ? Extents{part, other} : Extents{3, part, other / 4, 4};
      const Extents to = random.chance(50) ? Extents{other, volume(from) / other}
                                           : Extents{part / 8, 8 * volume(from) / part};
      const TensorDesc x{DType::f32, from, split_over_all(random, from.size(), mesh.rank())},
          y{DType::f32, to, split_over_all(random, to.size(), mesh.rank())};
      const Plan plan = reshaped(x, y, mesh, options);
      const Index least = least_payload(x, y, mesh);
      CAPTURE(describe(plan));
      ++cases;
      CHECK(plan.payload_bytes() >= least);
      at_the_bound += plan.payload_bytes() == least;
      if (plan.communications() != 1 || plan.steps[0].region < 0) continue;
      ++direct;
      CHECK(plan.payload_bytes() == least);
    }
  MESSAGE(at_the_bound << " of " << cases << " are at the bound, " << direct << " by one exchange");
  CHECK(at_the_bound >= cases * 9 / 10);
}

TEST_CASE("a move sends the least, or its plan says what a shorter time costs in bytes") {
  Random random(seed_for("moves and their bound", 44));
  const PlanOptions usual;
  const std::string above = " above its lower bound";
  int exact = 0;
  const auto law = [&](const Plan& plan, Index least) {
    const std::string text = explain(plan, axis_names(plan.mesh.rank()));
    CAPTURE(text);
    const Index bound = payload_bound(plan), more = plan.payload_bytes() - bound;
    CHECK(bound <= least);
    if (plan.count(Collective::all_gather) == 0 ||
        (detail::even_blocks(plan.slots[0].desc, plan.mesh) &&
         detail::even_blocks(plan.result_desc(), plan.mesh))) {
      ++exact;
      CHECK(bound == least);
    }
    CHECK(more >= 0);
    Index most = 0;
    for (int p = 0; p < plan.mesh.processes(); ++p) most = max_of(most, plan.payload_bytes_on(p));
    CHECK(plan.payload_bytes() == most);
    CHECK((text.find(", " + detail::bytes_text(more) + above) != std::string::npos) == (more > 0));
    return more > 0;
  };
  int told = 0, cases = 0;
  for (const MeshShape& mesh :
       {MeshShape{4}, MeshShape{8}, MeshShape{2, 4}, MeshShape{2, 1, 3}, MeshShape{2, 2, 2}})
    for (int i = 0; i < 100; ++i) {
      const auto [from, to] = some_reshape(random);
      if (volume(from) == 0) continue;
      const TensorDesc x{DType::f32, from, some_sharding(random, from.size(), mesh.rank())},
          y{DType::f32, to, some_sharding(random, to.size(), mesh.rank())};
      const Sharding other = some_sharding(random, from.size(), mesh.rank());
      const TensorDesc z{DType::f32, from, other};
      told += law(reshaped(x, y, mesh), least_payload(x, y, mesh));
      told += law(ops::Reshard{other}.plan({x}, {mesh, 0, usual}), least_payload(x, z, mesh));
      Terms terms = detail::same_terms(to_text(detail::default_labels(from.size())));
      std::reverse(terms.result.begin(), terms.result.end());
      TensorDesc back = z;  // the result in the operand's order
      for (int d = 0; d < from.size(); ++d) back.sharding[d] = other[from.size() - 1 - d];
      told += law(ops::Transpose{terms, other}.plan({x}, {mesh, 0, usual}),
                  least_payload(x, back, mesh));
      cases += 3;
    }
  MESSAGE(told << " of " << cases << " moves tell it, of " << exact << " the bound is exact");
  CHECK(exact > cases / 2);
  const TensorDesc dozen{DType::f32, {12, 8}, {{}, {0}}}, sixteen{DType::f32, {16, 6}, {{0}, {}}};
  CHECK(explain(reshaped(dozen, sixteen, {4}), axis_names(1)).find(above) != std::string::npos);
}

TEST_CASE("a reshape is planned by few pieces, whatever the extents") {
  // Extents of 2^40 elements, whose rows nest, and some whose rows do not: then by other ways.
  const Index n = Index{1} << 20;
  const TensorDesc x{DType::f32, {n, 8, n / 8}, {{}, {0}, {1}}},
      y{DType::f32, {n / 2, 2 * n}, {{1}, {0}}};
  const Plan nested = reshaped(x, y, {4, 4});
  CHECK(nested.communications() == 1);
  const TensorDesc sheared{DType::f32, {30000, 30001}, {{}, {0}}},
      other{DType::f32, {30001, 30000}, {{}, {0}}};
  CHECK(reshaped(sheared, other, {4}).payload_bytes() > 0);
}
