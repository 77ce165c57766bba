// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The plans that the documents speak of, as constants. clang compiles this file within 100,000
// steps a constant.
#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/spec/partition_spec.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;

template <class... Dims> constexpr TensorDesc f32(Extents extents) {
  return {DType::f32, extents, named_sharding<Grid, P<Dims...>>()};
}
template <class... Dims> constexpr Sharding spec = named_sharding<Grid, P<Dims...>>();

inline constexpr MeshShape two_by_four = sizes<Grid>(2, 4).shape;
inline constexpr Index MiB = 1 << 20;

// ---- GSPMD's "2D finalized" feed-forward layer at the article's extents on 2 x 4
// ----------------------------------

inline constexpr Plan in = ops::Einsum{parse("bsm,mh->bsh"), spec<data, _, model>}.plan(
    {f32<data, _, model>({8, 512, 5120}), f32<data, model>({5120, 20480})}, {two_by_four});
static_assert(in.count(all_gather) == 2 && in.communications() == 2);
static_assert(in.count(all_reduce) == 0 && in.count(reduce_scatter) == 0);
static_assert(in.payload_bytes() == 80 * MiB &&
              in.payload_bytes(all_gather) == 80 * MiB);  // 30 of x, 50 of w
static_assert(in.result_desc() == f32<data, _, model>({8, 512, 20480}));
static_assert(in.flops() == 2LL * 4 * 512 * 5120 * 5120);

inline constexpr Plan out = ops::Einsum{parse("bsh,hm->bsm"), spec<data, _, model>}.plan(
    {f32<data, _, model>({8, 512, 20480}), f32<model, data>({20480, 5120})}, {two_by_four});
static_assert(out.count(all_gather) == 1 && out.count(reduce_scatter) == 1 &&
              out.communications() == 2);
static_assert(out.payload_bytes() == 80 * MiB);
static_assert(out.flops() == in.flops());

// ---- the article's cases of a product: I,J,K over a mesh
// ---------------------------------------------------------

inline constexpr Plan contracted = ops::Einsum{parse("ik,kj->ij"), spec<_, _>}.plan(
    {f32<_, model>({512, 1024}), f32<model, _>({1024, 256})}, {two_by_four});
static_assert(contracted.count(all_reduce) == 1 && contracted.communications() == 1);
inline constexpr Plan scattered = ops::Einsum{parse("ik,kj->ij"), spec<model, _>}.plan(
    {f32<_, model>({512, 1024}), f32<model, _>({1024, 256})}, {two_by_four});
static_assert(scattered.count(reduce_scatter) == 1 && scattered.communications() == 1);
inline constexpr Plan left_open =
    ops::Einsum{parse("ik,kj->ij"), spec<_, _, Unreduced<Sum, model>>}.plan(
        {f32<_, model>({512, 1024}), f32<model, _>({1024, 256})}, {two_by_four});
static_assert(left_open.communications() == 0);
inline constexpr Plan aligned = ops::Einsum{parse("ik,kj->ij"), spec<data, model>}.plan(
    {f32<data, _>({512, 1024}), f32<_, model>({1024, 256})}, {two_by_four});
static_assert(aligned.communications() == 0);
inline constexpr Plan batch =
    ops::Einsum{parse("bij,bjk->bik"), spec<Axes<data, model>, _, _>}.plan(
        {f32<Axes<data, model>, _, _>({16, 32, 32}), f32<Axes<data, model>, _, _>({16, 32, 32})},
        {two_by_four});
static_assert(batch.communications() == 0);

// Sixteen combinations, all looked at: each axis splits another letter in each tensor.
inline constexpr Plan scores = ops::Einsum{parse("bqhd,bkhd->bhqk"), spec<_, data, _, model>}.plan(
    {f32<data, model, _, _>({64, 64, 64, 64}), f32<model, _, data, _>({64, 64, 64, 64})},
    {two_by_four});
static_assert(scores.communications() >= 2);

// ---- the rest
// ----------------------------------------------------------------------------------------------------

inline constexpr TensorDesc x = f32<data, model>({64, 96});
static_assert(ops::Reshard{x.sharding}.plan({x}, {two_by_four}).steps.empty());
static_assert(
    ops::Reshard{spec<data, model>}.plan({f32<_, _>({64, 96})}, {two_by_four}).communications() ==
    0);
static_assert(ops::Reshard{spec<data, _>}.plan({x}, {two_by_four}).count(all_gather) == 1);
static_assert(ops::Reshard{spec<data, _>}.plan({x}, {two_by_four}).payload_bytes() == 32 * 72 * 4);
static_assert(
    ops::Reshard{spec<_, data>}.plan({f32<data, _>({64, 96})}, {two_by_four}).count(all_to_all) ==
    1);
static_assert(ops::Reshard{spec<data, _>}
                  .plan({f32<_, _, Unreduced<Sum, data>>({64, 96})}, {two_by_four})
                  .count(reduce_scatter) == 1);
static_assert(ops::Reshard{spec<_, _>}
                  .plan({f32<_, _, Unreduced<Sum, data>>({64, 96})}, {two_by_four})
                  .count(all_reduce) == 1);
static_assert(ops::Reduce{.terms = parse("ij->i"),
                          .reduction = Reduction::max,
                          .type = x.type,
                          .out = spec<data>}
                  .plan({x}, {two_by_four})
                  .count(all_reduce) == 1);
static_assert(ops::Reduce{.terms = parse("ij->j"), .reduction = Reduction::sum, .out = spec<model>}
                  .plan({f32<_, model>({64, 96})}, {two_by_four})
                  .communications() == 0);
static_assert(
    ops::Transpose{parse("ij->ji"), spec<model, data>}.plan({x}, {two_by_four}).communications() ==
    0);
