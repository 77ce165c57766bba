// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise functions with several results: each is what map makes of that result alone, with
// broadcasting, ragged and empty blocks, in compiled functions, on paper.
#include <doctest/doctest.h>

#include <mutex>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
struct Momentum {
  float of_velocity;
  KOKKOS_FUNCTION Several<float, double, std::int32_t> operator()(float w, double v,
                                                                  float g) const {
    const double next = of_velocity * v + g;
    return several(static_cast<float>(w - next), next, static_cast<std::int32_t>(8 * g));
  }
};
template <int I> struct Alone {
  Momentum f;
  KOKKOS_FUNCTION auto operator()(float w, double v, float g) const {
    const auto made = f(w, v, g);
    if constexpr (I == 0) return made.first;
    if constexpr (I == 1) return made.rest.first;
    if constexpr (I == 2) return made.rest.rest.first;
  }
};
template <class T, class S> using On = ShardedTensor<T, Grid, S>;

template <class A, class B> bool same(const A& a, const B& b) {
  return to_host(a).values == to_host(b).values;
}
}  // namespace

TEST_CASE("a function with several results is map of each result") {
  std::mutex mutex;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 1}, {2, 2}, {3, 2}})
    run_loopback(
        rows * columns, [&, rows = rows, columns = columns](std::shared_ptr<Transport> world) {
          const auto mesh = make_mesh<Grid>(world, rows, columns);
          for (const Extents& extents :
               {Extents{7, 11}, Extents{1, 2}, Extents{0, 5}, Extents{40, 999}}) {
            const auto w = random_normal<On<float, P<data, model>>>(mesh, extents, 1);
            const auto v = random_normal<On<double, P<data, model>>>(mesh, extents, 2);
            const auto row = random_normal<On<float, P<model>>>(mesh, Extents{extents[1]}, 3);
            const auto other = random_normal<On<float, P<model, data>>>(mesh, extents, 4);
            const auto scalar = full<On<float, P<>>>(mesh, {}, 0.25f);
            const Momentum f{0.9f};
            const auto check = [&](const auto& g) {
              const auto [a, b, c] = map_several(f, w, v, g);
              auto compiled = compile([&] { return map_several(f, w, v, g); });
              const auto [d, e, h] = compiled();
              const bool good =
                  same(a, map(Alone<0>{f}, w, v, g)) && same(b, map(Alone<1>{f}, w, v, g)) &&
                  same(c, map(Alone<2>{f}, w, v, g)) && same(a, d) && same(b, e) && same(c, h);
              const std::lock_guard lock(mutex);
              CHECK(good);
            };
            check(row);
            check(other);  // which is brought
            check(scalar);
            const auto all = map_several<float, double, float>(
                f, Sharding{{1}, {}}, DynamicTensor(w), DynamicTensor(v), DynamicTensor(other));
            const bool good =
                all.size() == 3 && all[1].sharding() == Sharding{{1}, {}} &&
                to_host<double>(all[1]).values == to_host(map(Alone<1>{f}, w, v, other)).values;
            const std::lock_guard lock(mutex);
            CHECK(good);
          }
        });
}

TEST_CASE("its plan is one step, with a slot for each result, priced by its bytes") {
  const TensorDesc x{DType::f32, {64, 32}, Sharding{{0}, {}}};
  const ops::MapSeveral operation{
      detail::broadcast_terms({2, 2}), {DType::f32, DType::f64}, x.sharding};
  const Plan plan = operation.plan({x, x}, {MeshShape{4}, 0, {}});
  CHECK(plan.steps.size() == 1);
  CHECK(plan.also.size() == 1);
  CHECK(plan.payload_bytes() == 0);
  CHECK(plan.peak_bytes == detail::arena_charge(16 * 32 * 4) + detail::arena_charge(16 * 32 * 8));
  CHECK(operation.results({x, x})[1] == TensorDesc{DType::f64, {64, 32}, x.sharding});
}
