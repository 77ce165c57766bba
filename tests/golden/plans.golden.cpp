// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plans as people read them. After a change of the planner: TESSERA_UPDATE_GOLDEN=1, then read the
// difference.
#include <doctest/doctest.h>

#include <tessera/tessera.hpp>

#include "support/golden.hpp"

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct x : Axis<> {};
struct y : Axis<> {};
struct z : Axis<> {};
struct w : Axis<> {};
}  // namespace grid
namespace {
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

void compare(const std::string& name, const std::string& text) {
  const std::string kept = support::golden(name + ".txt", text);
  CHECK_MESSAGE(kept == text, name << ".txt holds\n" << kept << "but now it reads\n" << text);
}
const AxisNames names{"x", "y", "z", "w"};
void product(const char* name, const char* equation, const Extents& a, const Sharding& sa,
             const Extents& b, const Sharding& sb, const Sharding& out, const MeshShape& mesh) {
  const TensorDescs x{{DType::f32, a, sa}, {DType::f32, b, sb}};
  compare(name, std::string(equation) + "\n" +
                    explain(ops::Einsum{parse(equation), out}.plan(x, {mesh}), names));
}
void change(const char* name, const Extents& extents, const Sharding& from, const Sharding& to,
            const MeshShape& mesh) {
  const TensorDesc x{DType::f32, extents, from};
  compare(name, explain(ops::Reshard{to}.plan({x}, {mesh}), names));
}

Tensor<data, _, model> feed_forward(const Tensor<data, _, model>& x,
                                    const Tensor<data, model>& w_in,
                                    const Tensor<model, data>& w_out) {
  const auto h = gelu(einsum<"bsm,mh->bsh">(x, w_in));
  return einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out);
}
}  // namespace

TEST_CASE("the feed-forward layer of GSPMD's article, 8 x 512 x 5120 x 20480 on 2 x 4") {
  const auto x = like<Tensor<data, _, model>>(8, 512, 5120);
  const auto h = like<Tensor<data, _, model>>(8, 512, 20480);
  const auto w_in = like<Tensor<data, model>>(5120, 20480);
  const auto w_out = like<Tensor<model, data>>(20480, 5120);
  compare("feed_forward_in",
          explain(plan<"bsm,mh->bsh">(x, w_in, sizes<Grid>(2, 4)), Grid::names()));
  compare(
      "feed_forward_out",
      explain(plan<"bsh,hm->bsm", P<data, _, model>>(h, w_out, sizes<Grid>(2, 4)), Grid::names()));
  compare("feed_forward_program", explain(plan(feed_forward)(x, w_in, w_out, sizes<Grid>(2, 4))));
  compare("feed_forward_program_64x64",
          explain(plan(feed_forward)(x, w_in, w_out, sizes<Grid>(64, 64))));
  const auto named = plan(layer("feed_forward", feed_forward));
  const Program small = named(x, w_in, w_out, sizes<Grid>(2, 4));
  compare("feed_forward_memory", explain_memory(small));
  compare("feed_forward_layered",
          explain(named(x, like<Tensor<data, model>>(5120, 20480), w_out, sizes<Grid>(8, 1))));
  compare("feed_forward_diff", explain(diff(small, named(x, w_in, w_out, sizes<Grid>(4, 8)))));
}

TEST_CASE("the call whose way docs/inside/call.md goes") {
  const auto p =
      plan<"bsh,hm->bsm", P<data, _, model>>(like<Tensor<data, _, model>>(8, 16, 32),
                                             like<Tensor<model, data>>(32, 24), sizes<Grid>(2, 2));
  compare("call_plan", explain(p, Grid::names()));
  compare("call_work", explain_work(p, Grid::names()));
}

TEST_CASE("the product of the pjit article, 4 x 16 by 16 x 4 on 2 x 4") {
  const MeshShape mesh{2, 4};
  product("pjit_case_1a", "ik,kj->ij", {4, 16}, {{}, {1}}, {16, 4}, {{1}, {}}, {{}, {}}, mesh);
  product("pjit_case_1b", "ik,kj->ij", {4, 16}, {{}, {1}}, {16, 4}, {{0}, {}}, {{}, {}}, mesh);
  product("pjit_case_2", "ik,kj->ij", {4, 16}, {{0}, {1}}, {16, 4}, {{0}, {}}, {{0}, {}}, mesh);
  product("pjit_full_sharding", "ik,kj->ij", {4, 16}, {{0}, {1}}, {16, 4}, {{0}, {1}}, {{0}, {1}},
          mesh);
}

TEST_CASE("a process's work, instruction by instruction") {
  const MeshShape line{4};
  const TensorDesc square{DType::f32, {1024, 1024}, {{0}, {}}};
  PlanOptions small;
  small.workspace_limit = 2 << 20;
  compare("work_in_a_loop", explain_work(ops::Einsum{parse("ij,jk->ik"), {{0}, {}}}.plan(
                                             {square, square}, {line, 0, small}),
                                         names));
  const TensorDesc row{DType::f32, {65536}, {{0}}};
  compare(
      "work_of_a_sort",
      explain_work(ops::Sort{parse("a->a"), 'a', {.positions = true}, {{0}}}.plan({row}, {line}),
                   names));
}

TEST_CASE("products of the conformance collection") {
  const MeshShape two{2}, square{2, 2};
  product("d1", "mk,kn->mn", {128, 64}, {{}, {0}}, {64, 256}, {{0}, {}}, {{}, {}}, two);
  product("d3", "mk,nk->mn", {24, 64}, {{}, {}}, {39296, 64}, {{0}, {}}, {{}, {0}}, two);
  product("d7", "bmk,bnk->bmn", {32, 24, 64}, {{0}, {}, {}}, {32, 39296, 64}, {{0}, {}, {}},
          {{0}, {}, {}}, two);
  product("d9", "bmk,bnk->bmn", {32, 24, 64}, {{}, {0}, {}}, {32, 39296, 64}, {{0}, {}, {}},
          {{0}, {}, {}}, two);
  product("d11", "bmkl,bnkl->bmn", {32, 24, 64, 128}, {{}, {}, {0}, {1}}, {32, 39296, 64, 128},
          {{}, {}, {0}, {1}}, {{}, {}, {}}, square);
  product("d13", "bmpk,bnk->bmpn", {32, 24, 64, 128}, {{}, {0}, {1}, {}}, {32, 39296, 128},
          {{}, {}, {}}, {{}, {0}, {1}, {}}, square);
  product("d15", "mk,nk->mn", {48, 12}, {{0}, {1}}, {32, 12}, {{1}, {0}}, {{0}, {1}}, square);
  product("d19", "bmk,bnk->bmn", {4, 24, 100}, {{0}, {1}, {}}, {4, 32, 100}, {{0}, {1}, {}},
          {{0}, {1}, {}}, square);
  product("d21", "bmk,bnk->bmn", {4, 24, 100}, {{0}, {}, {1}}, {4, 32, 100}, {{}, {}, {}},
          {{0}, {1}, {}}, square);
  product("d25", "mk,nk->mn", {24, 100}, {{}, {0}}, {32, 100}, {{}, {0}}, {{}, {}}, square);
}

TEST_CASE("an embedding: looked up, and its gradient, 8 x 512 of 32000 x 1024 on 2 x 4") {
  const MeshShape mesh{2, 4};
  const AxisNames axes = Grid::names();
  const TensorDesc table{DType::f32, {32000, 1024}, {{1}, {}}},
      ids{DType::i32, {8, 512}, {{0}, {}}};
  const TensorDesc back{DType::f32, {8, 512, 1024}, {{0}, {}, {}}};
  const Terms look_up = parse("vm,bs->bsm"), gradient = parse("bs,bsm->vm");
  compare("embedding",
          explain(ops::Take{look_up, OutOfRange::clamp, {{0}, {}, {}}}.plan({table, ids}, {mesh}),
                  axes));
  compare("embedding_scattered",
          explain(ops::Take{look_up, OutOfRange::clamp, {{0}, {1}, {}}}.plan({table, ids}, {mesh}),
                  axes));
  compare(
      "embedding_gradient",
      explain(
          ops::Scatter{gradient, Reduction::sum, OutOfRange::drop, {32000}, false, {{1}, {}}}.plan(
              {ids, back}, {mesh}),
          axes));
  compare(
      "embedding_gradient_sharded",
      explain(
          ops::Scatter{gradient, Reduction::sum, OutOfRange::drop, {32000}, false, {{1}, {0}}}.plan(
              {ids, back}, {mesh}),
          axes));
}

TEST_CASE(
    "windows of 16 rows that begin at indices, and their gradient, of 32000 x 1024 on 2 x 4") {
  const MeshShape mesh{2, 4};
  const AxisNames axes = Grid::names();
  const TensorDesc table{DType::f32, {32000, 1024}, {{1}, {}}}, ids{DType::i32, {64}, {{0}}},
      back{DType::f32, {64, 16, 1024}, {{0}, {}, {}}};
  compare("windows",
          explain(ops::Take{parse("vm,b->bVm"), OutOfRange::clamp, {{0}, {}, {}}, {16}}.plan(
                      {table, ids}, {mesh, 0, PlanOptions{}}),
                  axes));
  compare("windows_gradient",
          explain(
              ops::Scatter{
                  parse("b,bVm->vm"), Reduction::sum, OutOfRange::clamp, {32000}, false, {{1}, {}}}
                  .plan({ids, back}, {mesh}),
              axes));
}

TEST_CASE("reductions, transposes and changes of sharding of the conformance collection") {
  const MeshShape two{2}, square{2, 2}, cube{2, 2, 2};
  compare("r1",
          explain(ops::Reduce{.terms = parse("ab->"), .reduction = Reduction::sum, .out = {}}.plan(
                      {TensorDesc{DType::f32, {3, 3}, {{0}, {}}}}, {two}),
                  names));
  compare("r3",
          explain(ops::Reduce{.terms = parse("bhwf->f"), .reduction = Reduction::sum, .out = {{0}}}
                      .plan({TensorDesc{DType::f32, {4, 32, 32, 128}, {{}, {0}, {}, {}}}}, {two}),
                  names));
  compare("t9", explain(ops::Transpose{parse("abcd->acbd"), {{}, {}, {0}, {}}}.plan(
                            {TensorDesc{DType::f32, {16, 38, 38, 4}, {{}, {0}, {}, {}}}}, {two}),
                        names));
  change("x1", {2, 3}, {{0}, {}}, {{}, {}}, two);
  change("x3", {7, 31, 128}, {{}, {0}, {}}, {{0}, {}, {}}, two);
  change("x5", {64, 64, 64, 64, 64, 64}, {{0}, {1}, {2}, {}, {}, {}}, {{}, {}, {}, {1}, {2}, {0}},
         cube);
  change("x7", {8, 8}, {{0}, {1, 2}}, {{0, 1}, {2}}, cube);
  change("x17", {8, 32}, {{0, 1}, {}}, {{0}, {1}}, MeshShape{2, 4});
  change("x23_swapped", {8, 8}, {{0}, {1}}, {{1}, {0}}, square);
  change("x27", {8, 8, 8}, {{}, {0}, {1, 2, 3}}, {{1, 2}, {0}, {3}}, MeshShape{2, 2, 2, 2});
}

TEST_CASE("positions go with keys, as int32, where they are asked for") {
  const MeshShape mesh{8};
  const SortTask first{
      .descending = true, .positions = true, .limit = 5, .kind = OperatorKind::top_k};
  compare("top_k", explain(ops::Sort{parse("bv->bv"), 'v', first, {{}, {}}}.plan(
                               {{DType::f32, {16, 32000}, {{}, {0}}}}, {mesh}),
                           names));
  const TensorDesc line{DType::f32, {1 << 20}, {{0}}};
  compare("sort_line",
          explain(ops::Sort{parse("a->a"), 'a', {}, {{0}}}.plan({line}, {mesh}), names));
  compare("sort_line_positions",
          explain(ops::Sort{parse("a->a"), 'a', {.positions = true}, {{0}}}.plan({line}, {mesh}),
                  names));
}

TEST_CASE("operators that move elements, of the conformance collection") {
  const auto plan = [](const char* name, const auto& op, const TensorDescs& x,
                       const MeshShape& mesh) {
    compare(name, explain(op.plan(x, {mesh, 0, PlanOptions()}), names));
  };
  const auto take = [&](const char* name, auto op, const TensorDescs& x, const MeshShape& mesh) {
    op.out = op.deduced(x);
    plan(name, op, x, mesh);
  };
  const TensorDesc a5{DType::f32, {11, 7}, {{}, {0}}}, h1{DType::f32, {4}, {{0}}};
  take("a5", ops::Pad{{{2, 2}, {4, 1}, {1, 2}}}, {a5}, MeshShape{2, 2});
  take("h1", ops::Shift{{1, 0}}, {h1}, MeshShape{4});
  const TensorDesc q7{DType::f32, {14, 257}, {{0}, {}}}, q7b{DType::f32, {14, 116}, {{0}, {}}};
  take("q7", ops::Concatenate{{1}}, {q7, q7b}, MeshShape{2});
  const TensorDesc q9{DType::f32, {14, 257}, {{0}, {1}}}, q9b{DType::f32, {14, 116}, {{0}, {1}}};
  take("q9", ops::Concatenate{{1}}, {q9, q9b}, MeshShape{2, 2});
  const TensorDesc q13{DType::f32, {16, 16}, {{0}, {}}};
  const Slice last{{15, 0}, {16, 16}, {}}, first{{0, 0}, {1, 16}, {}};
  take("q13", ops::Concatenate{{0, {last, {}, first}}}, {q13, q13, q13}, MeshShape{2});
  const auto reshaped = [&](const char* name, const TensorDesc& x, const Extents& to,
                            const Sharding& out, const MeshShape& mesh) {
    plan(name, ops::Reshape{to, out}, {x}, mesh);
  };
  reshaped("t3", {DType::f32, {4, 14, 4}, {{0}, {1}, {2}}}, {2, 2, 2, 7, 2, 2},
           {{0}, {}, {1}, {}, {2}, {}}, MeshShape{2, 4, 2});
  reshaped("t5", {DType::bf16, {80, 64, 2, 2, 2, 2, 2}, {{0}, {1}, {}, {}, {}, {}, {}}},
           {5120, 4, 8}, {{0, 1}, {}, {}}, MeshShape{16, 8});
  reshaped("t13", {DType::f32, {38, 38, 324}, {{0}, {}, {}}}, {38, 38, 2, 162}, {{}, {}, {}, {0}},
           MeshShape{8});
  const TensorDesc s11{DType::f64, {4096, 1024}, {{0}, {}}};
  plan("s11", ops::Slice{{{Slice{{1024, 0}, {2048, 1024}, {}}}}, {{}, {}}}, {s11}, MeshShape{8});
}
