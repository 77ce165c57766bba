// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cases that a partitioner must get right, planned at full size: a plan may need less than the row says, never more.
// The names are those of the collection of such cases that the design works with (D: products, R: reductions,
// T: transposes, B: broadcasts, X: changes of sharding, U: results left open).
#include <doctest/doctest.h>

#include "support/enumerate.hpp"

using namespace tessera;

namespace {

/// The most that a plan may communicate. `moves` counts all-to-alls, permutes and exchanges together; a reduce-scatter
/// may stand wherever an all-reduce may. Another plan of no more steps must be cheaper than the row's own, which takes
/// `payload` bytes a process.
struct Most {
  int all_reduces = 0;
  int all_gathers = 0;
  int reduce_scatters = 0;
  int moves = 0;
  Index payload = -1;
};

void check_row(const char* row, const Plan& plan, const Most& most) {
  const int reduces = plan.count(all_reduce);
  const int scatters = plan.count(reduce_scatter);
  const int gathers = plan.count(all_gather);
  const int moves = plan.communications() - reduces - scatters - gathers;
  const bool fits = reduces <= most.all_reduces && scatters + reduces <= most.all_reduces + most.reduce_scatters && gathers <= most.all_gathers &&
                    moves <= most.moves;
  const int steps = most.all_reduces + most.all_gathers + most.reduce_scatters + most.moves;
  const bool cheaper = plan.communications() <= steps && plan.payload_bytes() < most.payload;
  const bool accepted = fits || cheaper;
  CHECK_MESSAGE(accepted, std::string(row) << " communicates more than it may:\n" << support::describe(plan));
}

void product(const char* row, const char* equation, const Extents& a, const Sharding& sa, const Extents& b, const Sharding& sb, const Sharding& out,
             const MeshShape& mesh, const Most& most) {
  check_row(row, plan_einsum(parse(equation), {DType::f32, a, sa}, {DType::f32, b, sb}, out, mesh), most);
}
void change(const char* row, const Extents& extents, const Sharding& from, const Sharding& to, const MeshShape& mesh, const Most& most) {
  check_row(row, plan_reshard({DType::f32, extents, from}, to, mesh), most);
}
const Most nothing{};

}  // namespace

TEST_CASE("products") {
  const MeshShape two{2}, square{2, 2}, cube{2, 2, 2};
  product("D1", "mk,kn->mn", {128, 64}, {{}, {0}}, {64, 256}, {{0}, {}}, {{}, {}}, two, {.all_reduces = 1});
  product("D3", "mk,nk->mn", {24, 64}, {{}, {}}, {39296, 64}, {{0}, {}}, {{}, {0}}, two, nothing);
  CHECK(plan_einsum(parse("mk,nk->mn"), {DType::f32, {24, 64}, {{}, {}}}, {DType::f32, {39296, 64}, {{0}, {}}}, {{}, {0}}, two).flops() ==
        2LL * 24 * 19648 * 64);
  product("D5", "abm,abn->mn", {16, 32, 7}, {{0}, {}, {}}, {16, 32, 64}, {{0}, {1}, {}}, {{}, {0}}, MeshShape{4, 2}, {.all_reduces = 2});
  product("D7", "bmk,bnk->bmn", {32, 24, 64}, {{0}, {}, {}}, {32, 39296, 64}, {{0}, {}, {}}, {{0}, {}, {}}, two, nothing);
  product("D9", "bmk,bnk->bmn", {32, 24, 64}, {{}, {0}, {}}, {32, 39296, 64}, {{0}, {}, {}}, {{0}, {}, {}}, two, {.moves = 1});
  product("D11", "bmkl,bnkl->bmn", {32, 24, 64, 128}, {{}, {}, {0}, {1}}, {32, 39296, 64, 128}, {{}, {}, {0}, {1}}, {{}, {}, {}}, square,
          {.all_reduces = 2});
  product("D13", "bmpk,bnk->bmpn", {32, 24, 64, 128}, {{}, {0}, {1}, {}}, {32, 39296, 128}, {{}, {}, {}}, {{}, {0}, {1}, {}}, square, nothing);
  product("D13 mirrored", "bnk,bmpk->bnmp", {32, 39296, 128}, {{}, {}, {}}, {32, 24, 64, 128}, {{}, {0}, {1}, {}}, {{}, {}, {0}, {1}}, square, nothing);
  product("D15", "mk,nk->mn", {48, 12}, {{0}, {1}}, {32, 12}, {{1}, {0}}, {{0}, {1}}, square, {.all_gathers = 2});
  product("D17", "mk,nk->mn", {48, 100}, {{}, {}}, {32, 100}, {{0}, {1}}, {{0}, {1}}, square,
          {.all_gathers = 1, .moves = 1, .payload = 2 * 16 * 50 * 4});
  product("D19", "bmk,bnk->bmn", {4, 24, 100}, {{0}, {1}, {}}, {4, 32, 100}, {{0}, {1}, {}}, {{0}, {1}, {}}, square, {.all_gathers = 1});
  product("D21", "bmk,bnk->bmn", {4, 24, 100}, {{0}, {}, {1}}, {4, 32, 100}, {{}, {}, {}}, {{0}, {1}, {}}, square,
          {.moves = 1, .payload = 2 * 12 * 50 * 4});
  product("D23", "acmk,acnk->acmn", {4, 8, 24, 100}, {{0}, {}, {1}, {}}, {4, 8, 32, 100}, {{0}, {}, {1}, {}}, {{}, {0}, {1}, {}}, square,
          {.all_gathers = 1, .moves = 1});
  product("D25", "mk,nk->mn", {24, 100}, {{}, {0}}, {32, 100}, {{}, {0}}, {{}, {}}, square, {.all_reduces = 1});
  product("D27", "mk,nk->mn", {24, 100}, {{}, {0}}, {32, 100}, {{}, {0}}, {{}, {1}}, cube, {.all_reduces = 1, .moves = 1});
  product("D29", "mpk,nk->mpn", {24, 8, 100}, {{0}, {}, {}}, {32, 100}, {{1}, {0}}, {{0}, {}, {1}}, square, {.all_gathers = 1});
  product("D31", "mpk,kn->mpn", {24, 8, 100}, {{0}, {}, {1}}, {100, 50}, {{1}, {0}}, {{0}, {1}, {}}, square, {.all_gathers = 1, .reduce_scatters = 1});
  product("D35", "ik,kj->ij", {4000, 4000}, {{0}, {1}}, {4000, 4000}, {{0}, {1}}, {{0}, {1}}, MeshShape{2, 4}, {.all_gathers = 2});
  product("D39", "mk,knp->mnp", {64, 64}, {{0}, {1}}, {64, 64, 64}, {{}, {0}, {1, 2}}, {{0}, {1}, {}}, cube,
          {.all_reduces = 1, .all_gathers = 1, .moves = 1, .payload = (64 + 128 + 256) * 1024});
  product("U1", "mk,kn->mn", {8, 1024}, {{}, {0}}, {1024, 256}, {{0}, {}}, Sharding{{}, {}}.with_partial(AxisSet{0}, Reduction::sum), two, nothing);
}

TEST_CASE("reductions") {
  const MeshShape two{2};
  const auto reduction = [&](const char* row, const char* equation, Reduction kind, const Extents& extents, const Sharding& s, const Sharding& out,
                             const Most& most) { check_row(row, plan_reduce(parse(equation), kind, {DType::f32, extents, s}, out, two), most); };
  reduction("R1", "ab->", Reduction::sum, {3, 3}, {{0}, {}}, {}, {.all_reduces = 1});
  reduction("R3", "bhwf->f", Reduction::sum, {4, 32, 32, 128}, {{}, {0}, {}, {}}, {{0}}, {.reduce_scatters = 1});
  const Sharding open = Sharding{{}}.with_partial(AxisSet{0}, Reduction::max);
  reduction("U3", "ab->a", Reduction::max, {8, 1024}, {{}, {0}}, open, nothing);
  CHECK(plan_reduce(parse("ab->a"), Reduction::max, {DType::f32, {8, 1024}, {{}, {0}}}, open, two).result_desc().sharding.reduction == Reduction::max);
}

TEST_CASE("transposes and broadcasts") {
  const auto transposed = [](const char* row, const char* equation, const Sharding& s, const Sharding& out, const MeshShape& mesh) {
    check_row(row, plan_transpose(parse(equation), {DType::f32, {16, 38, 38, 4}, s}, out, mesh), nothing);
  };
  transposed("T9", "abcd->acbd", {{}, {0}, {}, {}}, {{}, {}, {0}, {}}, MeshShape{2});
  transposed("T9 on two axes", "abcd->bcad", {{0}, {1}, {}, {}}, {{1}, {}, {0}, {}}, MeshShape{4, 2});
  transposed("T9 with replicas", "abcd->acbd", {{}, {0}, {}, {}}, {{}, {}, {0}, {}}, MeshShape{2, 2});
  for (const Index n : {19, 5}) {
    const TensorDesc x{DType::f32, {n, n}, {{0}, {1}}};
    check_row("T11", plan_map(parse("ij,ji->ij"), {x, x}, DType::f32, {{0}, {1}}, MeshShape{4, 2}), {.moves = n == 19 ? 1 : 3});
  }
  const TensorDesc whole{DType::f32, {4, 3}, {{}, {}}};
  const TensorDesc added{DType::f32, {3}, {{}}};
  for (const Sharding& out : {Sharding{{0}, {}, {}}, Sharding{{}, {0}, {}}, Sharding{{0}, {1}, {}}})
    check_row("B1", plan_map(parse("bc,a->abc"), {whole, added}, DType::f32, out, MeshShape{2, 2}), nothing);
}

TEST_CASE("changes of sharding") {
  const MeshShape two{2}, square{2, 2}, cube{2, 2, 2};
  change("X1", {2, 3}, {{0}, {}}, {{}, {}}, two, {.all_gathers = 1});
  change("X3", {7, 31, 128}, {{}, {0}, {}}, {{0}, {}, {}}, two, {.moves = 1});
  change("X5", {64, 64, 64, 64, 64, 64}, {{0}, {1}, {2}, {}, {}, {}}, {{}, {}, {}, {1}, {2}, {0}}, cube, {.moves = 2});
  change("X7", {8, 8}, {{0}, {1, 2}}, {{0, 1}, {2}}, cube, {.moves = 2});
  change("X7 in device order", {8, 8}, {{0}, {1, 2}}, {{1, 2}, {0}}, cube, {.moves = 2});
  change("X9", {8, 8}, {{0}, {1}}, {{}, {0}}, MeshShape{2, 3}, {.all_gathers = 1, .moves = 1});
  change("X9 reversed", {8, 8}, {{}, {0}}, {{0}, {1}}, MeshShape{2, 3}, {.moves = 1});
  change("X11", {8, 8}, {{0}, {1}}, {{}, {0}}, cube, {.all_gathers = 1, .moves = 1});
  change("X11 reversed", {8, 8}, {{}, {0}}, {{0}, {1}}, cube, {.moves = 1});
  change("X13", {6, 3}, {{0, 1}, {}}, {{0}, {}}, cube, {.all_gathers = 1});
  change("X13 reversed", {6, 3}, {{0}, {}}, {{0, 1}, {}}, cube, nothing);
  change("X15", {4, 15, 4, 16}, {{}, {}, {}, {0}}, {{}, {0, 1, 2}, {}, {}}, cube, {.moves = 1});
  change("X17", {8, 32}, {{0, 1}, {}}, {{0}, {1}}, MeshShape{2, 4}, {.moves = 1});
  change("X17, columns", {8, 32}, {{}, {0, 1}}, {{0}, {1}}, MeshShape{2, 4}, {.moves = 1});
  change("X17, ragged", {5, 32}, {{}, {0, 1, 2}}, {{0, 1}, {2}}, cube, {.moves = 1});
  change("X19", {8, 32}, {{0, 1}, {2}}, {{0}, {1, 2}}, MeshShape{2, 4, 4}, {.moves = 1});
  change("X21 reversed", {8, 8}, {{0}, {}}, {{}, {}}, two, {.all_gathers = 1});
  change("X23", {8, 8}, {{0}, {1, 2}}, {{0, 2}, {1}}, cube, {.moves = 1});
  change("X23, swapped", {8, 8}, {{0}, {1}}, {{1}, {0}}, square, {.moves = 1});
  change("X25", {256, 256, 256}, {{0}, {}, {1}}, {{}, {0}, {}}, cube, {.all_gathers = 1, .moves = 1});
  change("X27", {8, 8, 8}, {{}, {0}, {1, 2, 3}}, {{1, 2}, {0}, {3}}, MeshShape{2, 2, 2, 2}, {.moves = 2});
}

TEST_CASE("what native collectives do at least volume") {
  const MeshShape mesh{2, 4};
  // Gathering one axis of two moves three quarters of the result, whatever the other axis.
  CHECK(plan_reshard({DType::f32, {4000, 4000}, {{0}, {1}}}, {{0}, {}}, mesh).payload_bytes() == 2000 * 3000 * 4);
  // An all-to-all sends all of a block but the own part.
  CHECK(plan_reshard({DType::f32, {8, 32}, {{1}, {}}}, {{}, {1}}, mesh).payload_bytes() == 2 * 24 * 4);
  // The products of D35 read each operand once.
  const TensorDesc a{DType::f32, {4000, 4000}, {{0}, {1}}};
  CHECK(plan_einsum(parse("ik,kj->ij"), a, a, {{0}, {1}}, mesh).payload_bytes() == (2000LL * 3000 + 2000LL * 1000) * 4);
}
