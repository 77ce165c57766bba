// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A workspace limit decides between plans of one product: the cheapest that keeps to it is taken,
// and the cheapest of all when none does.
#include <tessera/plan.hpp>

namespace {
using namespace tessera;

constexpr MeshShape mesh{2, 4};
constexpr Terms terms = parse("bsh,hm->bsm");
constexpr TensorDesc h{DType::f32, {8, 512, 20480}, Sharding{{0}, {}, {1}}};
constexpr TensorDesc w{DType::f32, {20480, 5120}, Sharding{{1}, {0}}};
constexpr Sharding out{{0}, {}, {1}};

constexpr Plan with_limit(Index bytes) {
  return ops::Einsum{terms, out}.plan({h, w}, {mesh, 0, {Machine{}, bytes}});
}
constexpr Plan unlimited = with_limit(max_int64);
constexpr Plan limited = with_limit(Index{130} << 20);
constexpr Plan impossible = with_limit(1);

static_assert(unlimited.peak_bytes > Index{130} << 20);
static_assert(limited.peak_bytes < unlimited.peak_bytes && limited.cost > unlimited.cost);
static_assert(impossible.steps == unlimited.steps && impossible.over_limit > 0);
}  // namespace
