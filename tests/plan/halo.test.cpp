// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// Plans of halo exchanges: widths, messages and payload of each process, the two ways of corners,
// deep halos.
#include <doctest/doctest.h>

#include <tessera/plan/work/instruction_list.hpp>
#include <tessera/program/deep_halo.hpp>
#include <tessera/program/on_process.hpp>
#include <tessera/program/simulation.hpp>

#include "support/enumerate.hpp"
#include "support/fences.hpp"

using namespace tessera;
using namespace support;

namespace {
constexpr Halo around(int rank, Index width, Boundary boundary) {
  return Halo(rank, {width, width, boundary});
}
Machine message_price(std::int64_t picoseconds) {
  Machine machine;
  machine.message_ps = picoseconds;
  return machine;
}
}  // namespace

static_assert(ops::HaloExchange{{around(1, 1, Boundary::none)}}
                  .plan({TensorDesc{DType::f64, {16}, Sharding{{0}}}}, {MeshShape{4}, 1})
                  .messages() == 2);
static_assert(detail::inner_box({{{4, 8}, {0, 6}}}, {{{3, 10}, {0, 7}}}) == Box{{{5, 6}, {0, 5}}});
static_assert(detail::inner_box({{{4, 6}}}, {{{1, 9}}}).empty());
static_assert(detail::border_boxes({{{4, 8}, {0, 6}}}, {{{5, 6}, {0, 5}}}).size() == 3);

TEST_CASE("a halo of one element: two messages in the middle, one at the rim, none around it") {
  const TensorDesc x{DType::f64, {16}, Sharding{{0}}};
  const MeshShape mesh{4};
  for (int p = 0; p < 4; ++p) {
    const Plan rim = ops::HaloExchange{{around(1, 1, Boundary::none)}}.plan({x}, {mesh, p});
    CHECK(rim.messages() == (p == 0 || p == 3 ? 1 : 2));
    CHECK(rim.own_payload_bytes() == 8 * rim.messages());
    CHECK(rim.slots[rim.result].bytes == 8 * (p == 0 || p == 3 ? 5 : 6));
    CHECK(ops::HaloExchange{{around(1, 1, Boundary::periodic)}}.plan({x}, {mesh, p}).messages() ==
          2);
    const Plan constant =
        ops::HaloExchange{{around(1, 1, Boundary::constant)}}.plan({x}, {mesh, p});
    CHECK(constant.messages() == rim.messages());
    CHECK(constant.slots[constant.result].bytes == 8 * 6);
  }
  // As wide as two and a half blocks: from three processes on each side.
  const Plan wide = ops::HaloExchange{{around(1, 10, Boundary::periodic)}}.plan(
      {TensorDesc{DType::f64, {32}, Sharding{{0}}}}, {MeshShape{8}, 3});
  CHECK(wide.messages() == 6);
  CHECK(wide.payload_bytes() == 8 * 20);
  CHECK(explain_own(ops::HaloExchange{{Halo{{2, 1, Boundary::none}}}}.plan({x}, {mesh, 0}), {"a"})
            .find("with halo 0_1 ") != std::string::npos);
}

TEST_CASE(
    "corners go to all neighbours, or dimension by dimension, for the same payload; the cheaper is "
    "taken") {
  const TensorDesc x{DType::f64, {24, 24, 24}, Sharding{{0}, {1}, {2}}};
  const MeshShape mesh{3, 3, 3};
  const Halo halo = around(3, 2, Boundary::periodic);
  const int middle = 13;
  for (const bool in_place : {false, true}) {
    const Plan direct = detail::plan_halo(x, halo, mesh, middle, {}, {Corners::direct, in_place});
    const Plan in_turn =
        detail::plan_halo(x, halo, mesh, middle, {}, {Corners::by_dimension, in_place});
    CHECK(direct.messages() == 26);
    CHECK(in_turn.messages() == 6);
    CHECK(in_turn.count(Collective::exchange) == 3);
    CHECK(direct.payload_bytes() == 8 * (12 * 12 * 12 - 8 * 8 * 8));
    CHECK(in_turn.payload_bytes() == direct.payload_bytes());
    for (const std::int64_t price : {std::int64_t{0}, std::int64_t{1'000'000}}) {
      const PlanOptions options{message_price(price)};
      const std::int64_t least = min_of(
          detail::plan_halo(x, halo, mesh, 0, options, {Corners::direct, in_place}).cost,
          detail::plan_halo(x, halo, mesh, 0, options, {Corners::by_dimension, in_place}).cost);
      CHECK(detail::plan_halo(x, halo, mesh, 0, options, {Corners::cheaper, in_place}).cost ==
            least);
    }
    CHECK(detail::plan_halo(x, halo, mesh, middle, {}, {Corners::cheaper, in_place}).messages() ==
          6);
  }
  // In place there is staging memory and nothing else; a new block comes on top of it.
  const Plan in_place = detail::plan_halo(x, halo, mesh, middle, {}, {Corners::direct, true});
  CHECK(in_place.peak_bytes == 2 * detail::arena_charge(in_place.payload_bytes()));
  CHECK(detail::plan_halo(x, halo, mesh, middle, {}, {Corners::direct, false}).peak_bytes ==
        in_place.peak_bytes + detail::arena_charge(8 * 12 * 12 * 12));
}

TEST_CASE("several tensors share their messages") {
  const TensorDesc x{DType::f32, {20, 20}, Sharding{{0}, {1}}},
      y{DType::f32, {12, 16}, Sharding{{0}, {1}}};
  const MeshShape mesh{2, 2};
  const Halo halo = around(2, 1, Boundary::periodic);
  const Plan one = ops::HaloExchange{{halo}}.plan({x}, {mesh, 1}),
             other = ops::HaloExchange{{halo}}.plan({y}, {mesh, 1});
  for (const bool in_place : {false, true}) {
    const Plan both =
        detail::plan_halo_together({x, y}, {halo, halo}, mesh, 1, {}, {Corners::cheaper, in_place});
    CHECK(both.messages() == one.messages());
    CHECK(both.payload_bytes() == one.payload_bytes() + other.payload_bytes());
  }
}

TEST_CASE(
    "every process sends what the others expect; one plan tells all; the adjoint moves as much") {
  Random random(seed_for("halo plans", 3));
  int cases = 0;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int round = 0; round < 6; ++round, ++cases) {
      const int rank = 1 + random.below(3);
      TensorDesc x{DType::f32, {}, some_sharding(random, rank, mesh.rank())};
      Halo halo;
      for (int d = 0; d < rank; ++d) {
        x.extents.push_back(random.below(13));
        const Index most = max_of(0, min_of(5, x.extents[d] - 1));
        halo.push_back({random.below(static_cast<int>(most) + 1),
                        random.below(static_cast<int>(most) + 1),
                        static_cast<Boundary>(random.below(5))});
      }
      const PlanOptions options{some_machine(random, mesh.rank())};
      const HaloOptions how{static_cast<Corners>(random.below(3)), random.chance(50)};
      CAPTURE(describe(x, mesh));
      CAPTURE(describe(mesh));
      const Plan forward = detail::plan_halo(x, halo, mesh, 0, options, how),
                 back = detail::plan_halo_adjoint(x, halo, mesh, 0, options, how);
      Index calls = 0;
      CHECK(detail::fault_of(forward, calls) == "");
      CHECK(detail::fault_of(back, calls) == "");
      Index there = 0, again = 0;
      for (int p = 0; p < mesh.processes(); ++p) {
        const Plan planned = detail::plan_halo(x, halo, mesh, p, options, how);
        CHECK(on_process(forward, p) == planned);
        CHECK(on_process(back, p) == detail::plan_halo_adjoint(x, halo, mesh, p, options, how));
        there += planned.own_payload_bytes();
        again += on_process(back, p).own_payload_bytes();
      }
      if (how.corners != Corners::cheaper) CHECK(there == again);
    }
  CHECK(cases > 300);
}

TEST_CASE("an exchange that is repeated lets nobody read what its kernels may still write") {
  Random random(seed_for("repeated halo exchanges", 3));
  int offers = 0, unfenced = 0;
  for (const MeshShape& mesh : meshes(8, 3))
    for (int round = 0; round < 4; ++round) {
      const int rank = 1 + random.below(3), tensors = 1 + random.below(2);
      TensorDescs x;
      FixedVector<Halo, max_operands> halos;
      const Sharding sharding = some_sharding(random, rank, mesh.rank());
      for (int t = 0; t < tensors; ++t) {
        TensorDesc one{random.chance(50) ? DType::f16 : DType::f32, {}, sharding};
        if (t > 0) one.type = x[0].type;
        Halo halo;
        for (int d = 0; d < rank; ++d) {
          one.extents.push_back(4 + random.below(9));
          halo.push_back({random.below(4), random.below(4), Boundary::periodic});
        }
        x.push_back(one);
        halos.push_back(halo);
      }
      const HaloOptions how{static_cast<Corners>(random.below(3)), true};
      for (const bool adjoint : {false, true})
        for (int p = 0; p < mesh.processes(); ++p) {
          const Plan plan = detail::plan_halo_of(x, halos, adjoint, how, mesh, p, {});
          CHECK(broken_fences(instructions_of(plan)) == "");
          for (const bool in_place : {false, true}) {
            const detail::Calls calls{true,
                                      std::vector<bool>(static_cast<std::size_t>(plan.steps.size()),
                                                        in_place && tensors == 1)};
            Instructions list = detail::InstructionList(plan, calls).make();
            CHECK(broken_fences(list) == "");
            for (const Instruction& i : list.all) offers += i.action == Action::offer;
            std::erase_if(list.all, [](const Instruction& i) { return i.action == Action::fence; });
            unfenced += !broken_fences(list).empty();
          }
        }
    }
  CHECK(offers > 100);
  CHECK(unfenced > 100);  // the law sees where a fence is missing
}

TEST_CASE("a deep halo trades messages for work that others do too") {
  const TensorDesc x{DType::f64, {64, 64}, Sharding{{0}, {1}}};
  const MeshShape mesh{4, 4};
  const Halo halo = around(2, 1, Boundary::periodic);
  const DeepHalo one = plan_deep_halo(x, halo, 1, 6, mesh, 5),
                 four = plan_deep_halo(x, halo, 4, 6, mesh, 5);
  CHECK(one.redundant == 0);
  CHECK(one.updates == 16 * 16);
  CHECK(four.plan.messages() == one.plan.messages());
  CHECK(four.plan.payload_bytes() == 8 * (24 * 24 - 16 * 16));
  CHECK(four.updates == 22 * 22 + 20 * 20 + 18 * 18 + 16 * 16);
  CHECK(four.redundant_flops == 6 * (four.updates - 4 * 16 * 16));
  // At the rim of a tensor without more there is less to do.
  CHECK(plan_deep_halo(x, around(2, 1, Boundary::constant), 4, 6, mesh, 0).updates ==
        19 * 19 + 18 * 18 + 17 * 17 + 16 * 16);
  CHECK(best_depth(x, halo, 6, 32, mesh, {message_price(0)}) == 1);
  CHECK(best_depth(x, halo, 6, 32, mesh, {message_price(1'000'000)}) > 4);
  CHECK(best_depth(x, around(2, 1, Boundary::reflected), 0, 200, mesh,
                   {message_price(1'000'000'000)}) <= 63);
  const std::string text = explain(four, {"a", "b"});
  CHECK(text.find("with halo 4_4x4_4") != std::string::npos);
  CHECK(text.find("4 steps from one exchange; a step: 640 B, 1 messages, 2.1 kflop of which 660 "
                  "flop redundant") != std::string::npos);
}

TEST_CASE("a halo that cannot be is told with its numbers") {
  const auto check = [](const Extents& extents, const Halo& halo) {
    return ops::HaloExchange{{halo}}.check(
        {TensorDesc{DType::f32, extents, Sharding::replicated(extents.size())}});
  };
  CHECK(check({8, 8}, {{1, 1, Boundary::none}}) ==
        Verdict{.rule = Rule::halo_width_each, .operand = 0, .left = 1, .right = 2});
  CHECK(check({8}, {{1, -2, Boundary::periodic}}) ==
        Verdict{.rule = Rule::halo_not_negative, .operand = 0, .left = 1, .right = -2, .dim = 0});
  CHECK(check({8}, {{8, 0, Boundary::reflected}}) ==
        Verdict{.rule = Rule::halo_within_image, .operand = 0, .left = 8, .right = 7, .dim = 0});
  CHECK(check({8}, {{9, 0, Boundary::symmetric}}) ==
        Verdict{.rule = Rule::halo_within_image, .operand = 0, .left = 9, .right = 8, .dim = 0});
  CHECK(check({8}, {{70, 0, Boundary::periodic}}).ok());
  CHECK(explain(check({8}, {{8, 0, Boundary::reflected}}), Extents{8}) ==
        "the halo of dimension 0 is 8 wide, and the mirror image of 8 elements has 7; make the "
        "halo narrower, or the boundary periodic");
}
