// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What ways to split weights cost, as constants: a weight that is gathered twice and whose gradient
// is scattered, against one all-reduce; and what "2D finalized" keeps and gathers.
#include <tessera/plan.hpp>

namespace {
using namespace tessera;

// ---- one weight of 4 MiB on 8 processes: ZeRO's stages (Rajbhandari et al. 2020, section 7.2)
// ----
constexpr Index payload(const Plan& plan) { return plan.payload_bytes(); }
constexpr MeshShape line{8};
constexpr TensorDesc shards{DType::f32, {1024, 1024}, Sharding{{0}, {}}};
constexpr TensorDesc gradient{
    DType::f32, {1024, 1024}, Sharding::replicated(2).with_partial(AxisSet{0}, Reduction::sum)};
constexpr Plan gather = ops::Reshard{Sharding::replicated(2)}.plan({shards}, {line});
constexpr Plan scatter = ops::Reshard{shards.sharding}.plan({gradient}, {line});
constexpr Plan sum = ops::Reshard{Sharding::replicated(2)}.plan({gradient}, {line});

constexpr Index bytes = 1024 * 1024 * 4;
static_assert(payload(gather) == bytes * 7 / 8);
static_assert(payload(scatter) == bytes * 7 / 8);
static_assert(payload(sum) == 2 * bytes * 7 / 8);
// Gathered forward and back, and scattered: 1.5 all-reduces. Gathered once, where both ways share
// it: 1.
static_assert(2 * (2 * payload(gather) + payload(scatter)) == 3 * payload(sum));
static_assert(payload(gather) + payload(scatter) == payload(sum));

// ---- GSPMD's 2D finalized (Xu et al. 2021, Table 1), bsm,mh->bsh on X x Y
// -------------------------
constexpr Index batch = 64, positions = 128, m = 1024, h = 4096;
constexpr TensorDesc input{DType::f32, {batch, positions, m}, Sharding{{0}, {}, {1}}};
constexpr TensorDesc weight{DType::f32, {m, h}, Sharding{{0}, {1}}};
/// What a process of X x Y holds at most: the gathered weight, which falls as 1/Y, the gathered
/// activation, as 1/X, and its part of the result, as 1/(X Y).
constexpr bool holds(int x, int y) {
  const Plan plan = ops::Einsum{parse("bsm,mh->bsh"), Sharding{{0}, {}, {1}}}.plan(
      {input, weight}, {MeshShape{x, y}});
  return plan.peak_bytes ==
         4 * (m * h / y + batch * positions * m / x + batch * positions * h / (x * y));
}
static_assert(holds(2, 2) && holds(4, 2) && holds(2, 4) && holds(4, 4) && holds(8, 8));
/// A weight is stored in X Y parts.
constexpr Index stored(int x, int y) {
  return detail::block_volume(weight.extents, weight.sharding, MeshShape{x, y}, Coordinates(2, 0));
}
static_assert(stored(2, 2) == m * h / 4 && stored(4, 8) == m * h / 32 &&
              stored(32, 32) == m * h / 1024);
}  // namespace
