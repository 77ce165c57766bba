// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_rows
// Cases that a partitioner must get right, planned at full size: a plan may need less than the row
// says, never more.
#include <doctest/doctest.h>

#include "support/conformance.hpp"

using namespace tessera;
using namespace support;

namespace {

void check_row(const Conformance& row) {
  int reduces = 0, scatters = 0, gathers = 0, all = 0;
  Index payload = 0;
  std::string text;
  const std::vector<Plan> plans = plans_of(row, row.mesh);
  for (const Plan& plan : plans) {
    reduces += plan.count(all_reduce);
    scatters += plan.count(reduce_scatter);
    gathers += plan.count(all_gather);
    all += plan.communications();
    payload += plan.payload_bytes();
    text += describe(plan);
  }
  const Most& most = row.most;
  const int moves = all - reduces - scatters - gathers;
  const bool fits = reduces <= most.all_reduces &&
                    scatters + reduces <= most.all_reduces + most.reduce_scatters &&
                    gathers <= most.all_gathers && moves <= most.moves;
  const int steps = most.all_reduces + most.all_gathers + most.reduce_scatters + most.moves;
  const bool cheaper = all <= steps && payload < most.payload;
  const bool accepted = fits || cheaper;
  CHECK_MESSAGE(accepted, row.name << " communicates more than it may:\n" << text);
  REQUIRE(!plans.empty());
  CHECK_MESSAGE(plans.back().result_desc().sharding == row.out, row.name);
}

}  // namespace

TEST_CASE("products") {
  for (const Conformance& row : conformance_products()) check_row(row);
  const Conformance d3 = conformance_products()[1];
  CHECK(plans_of(d3, d3.mesh)[0].flops() == 2LL * 24 * 19648 * 64);
}

TEST_CASE("reductions, transposes and broadcasts") {
  for (const Conformance& row : conformance_others()) {
    check_row(row);
    if (row.name == "U3")
      CHECK(plans_of(row, row.mesh)[0].result_desc().sharding.reduction == Reduction::max);
  }
}

TEST_CASE("changes of sharding") {
  for (const Conformance& row : conformance_changes()) check_row(row);
}

TEST_CASE("rows are shrunk to extents of the same remainders") {
  for (const Conformance& row : conformance()) {
    const Conformance less = shrunk(row);
    for (int t = 0; t < row.operands.size(); ++t) {
      CHECK(volume(less.operands[t].extents) <= 70'000);
      for (int d = 0; d < row.operands[t].rank(); ++d) {
        const int parts = row.mesh.parts(row.operands[t].sharding[d]);
        CHECK(row.operands[t].extents[d] % parts == less.operands[t].extents[d] % parts);
      }
    }
  }
}

TEST_CASE("what native collectives do at least volume") {
  const MeshShape mesh{2, 4};
  // Gathering one axis of two moves three quarters of the result, whatever the other axis.
  CHECK(ops::Reshard{{{0}, {}}}
            .plan({TensorDesc{DType::f32, {4000, 4000}, {{0}, {1}}}}, {mesh})
            .payload_bytes() == 2000 * 3000 * 4);
  // An all-to-all sends all of a block but the own part.
  CHECK(ops::Reshard{{{}, {1}}}
            .plan({TensorDesc{DType::f32, {8, 32}, {{1}, {}}}}, {mesh})
            .payload_bytes() == 2 * 24 * 4);
  // The products of D35 read each operand once.
  const TensorDesc a{DType::f32, {4000, 4000}, {{0}, {1}}};
  CHECK(ops::Einsum{parse("ik,kj->ij"), {{0}, {1}}}.plan({a, a}, {mesh}).payload_bytes() ==
        (2000LL * 3000 + 2000LL * 1000) * 4);
}
