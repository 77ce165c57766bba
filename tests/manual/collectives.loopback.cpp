// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives by the name of an axis, within manual functions: what they return, and their
// gradients.
#include <doctest/doctest.h>

#include <tessera/grad/value_and_grad.hpp>
#include <tessera/manual/axis.hpp>
#include <tessera/manual/collectives.hpp>
#include <tessera/manual/equal_by_promise.hpp>
#include <tessera/manual/manual.hpp>
#include <tessera/manual/permute.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/to_host.hpp>

#include "op/texts_of.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... D> using Tensor = ShardedTensor<double, Grid, P<D...>>;
struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return static_cast<double>(10 * i[0] + i[1] + 1);
  }
};
double ramp(Index i, Index j) { return static_cast<double>(10 * i + j + 1); }
}  // namespace

TEST_CASE("every collective on a mesh of a named and an automatic axis") {
  for (const auto& [processes, rows, columns] :
       {std::tuple{1, 1, 1}, {2, 1, 2}, {2, 2, 1}, {4, 2, 2}, {6, 3, 2}, {6, 2, 3}})
    CHECK(quiet(texts_of(
        processes,
        [&, d = rows, m = columns](const std::shared_ptr<Transport>& world) -> std::string {
          const auto mesh = make_mesh<Grid>(world, d, m);
          const Index n = 6 * m, k = 5;  // ragged over data
          const auto x = from_function<Tensor<model, data>>(mesh, {n, k}, Ramp{});
          const Index own = n / m;
          {
            const auto y =
                manual<model>([](const auto& b) { return all_reduce_over<model>(b); })(x);
            static_assert(std::is_same_v<std::decay_t<decltype(y)>, Tensor<_, data>>);
            const auto host = to_host(y);
            for (Index i = 0; i < own; ++i)
              for (Index j = 0; j < k; ++j) {
                double sum = 0;
                for (int p = 0; p < m; ++p) sum += ramp(p * own + i, j);
                REQUIRE_THAT(host(i, j) == sum);
              }
          }
          {
            const auto y =
                manual<model>([](const auto& b) { return all_gather_over<model, 0>(b); })(x);
            static_assert(std::is_same_v<std::decay_t<decltype(y)>, Tensor<_, data>>);
            const auto host = to_host(y);
            for (Index i = 0; i < n; ++i)
              for (Index j = 0; j < k; ++j) REQUIRE_THAT(host(i, j) == ramp(i, j));
          }
          {
            const auto y =
                manual<model>([](const auto& b) { return all_gather_over<model>(b); })(x);
            const auto host = to_host(y);
            for (Index i = 0; i < n; ++i)
              for (Index j = 0; j < k; ++j) REQUIRE_THAT(host(i / own, i % own, j) == ramp(i, j));
          }
          {
            const auto y =
                manual<model>([](const auto& b) { return all_gather_over<model, 1>(b); })(x);
            const auto host = to_host(y);
            for (Index i = 0; i < own; ++i)
              for (Index j = 0; j < m * k; ++j)
                REQUIRE_THAT(host(i, j) == ramp(j / k * own + i, j % k));
          }
          {
            const auto y = manual<model>(
                [](const auto& b) { return along<0, model>(reduce_scatter_over<model, 0>(b)); })(x);
            if (own % m == 0) {
              static_assert(std::is_same_v<std::decay_t<decltype(y)>, Tensor<model, data>>);
              const auto host = to_host(y);
              for (Index i = 0; i < own; ++i)
                for (Index j = 0; j < k; ++j) {
                  double sum = 0;
                  for (int p = 0; p < m; ++p) sum += ramp(p * own + i, j);
                  REQUIRE_THAT(host(i, j) == sum);
                }
            }
          }
          {
            const auto y = manual<model>(
                [](const auto& b) { return along<1, model>(all_to_all_over<model, 0, 1>(b)); })(x);
            (void)y;
            const auto back = manual<model>([](const auto& b) {
              return along<0, model>(all_to_all_over<model, 1, 0>(all_to_all_over<model, 0, 1>(b)));
            })(x);
            const auto host = to_host(back);
            for (Index i = 0; i < n; ++i)
              for (Index j = 0; j < k; ++j) REQUIRE_THAT(host(i, j) == ramp(i, j));
          }
          {
            const auto y = manual<model>(
                [](const auto& b) { return along<0, model>(permute_over<model, Shift<1>>(b)); })(x);
            const auto host = to_host(y);
            for (Index i = 0; i < n; ++i)
              for (Index j = 0; j < k; ++j) REQUIRE_THAT(host(i, j) == ramp((i + n - own) % n, j));
          }
          {
            const auto y = manual<model>(
                [](const auto& b) { return all_gather_over<model>(axis_index<model>(b)); })(x);
            const auto host = to_host(y);
            for (int p = 0; p < m; ++p) REQUIRE_THAT(host(p) == p);
          }
          return "";
        })));
}

TEST_CASE("gradients through collectives") {
  for (const auto& [processes, rows, columns] :
       {std::tuple{1, 1, 1}, {2, 1, 2}, {4, 2, 2}, {6, 2, 3}})
    CHECK(quiet(texts_of(
        processes,
        [&, d = rows, m = columns](const std::shared_ptr<Transport>& world) -> std::string {
          const auto mesh = make_mesh<Grid>(world, d, m);
          const Index n = 6 * m, k = 5, own = n / m;
          const auto x = from_function<Tensor<model, data>>(mesh, {n, k}, Ramp{});
          const auto w = from_function<Tensor<_, data>>(mesh, {own, k}, Ramp{});
          // The loss is the sum of (x_p w)^2 over all blocks: w is equal, and gets the sum.
          const auto f = [](const Tensor<model, data>& a, const Tensor<_, data>& b) {
            return sum(manual<model>([](const auto& c, const auto& v) {
              const auto t = c * v;
              return all_reduce_over<model>(t * t);
            })(a, b));
          };
          const auto [value, g] = value_and_grad<0, 1>(f)(x, w);
          (void)value;
          const auto gx = to_host(std::get<0>(g));
          const auto gw = to_host(std::get<1>(g));
          for (Index i = 0; i < n; ++i)
            for (Index j = 0; j < k; ++j)
              REQUIRE_THAT(gx(i, j) == 2 * ramp(i, j) * ramp(i % own, j) * ramp(i % own, j));
          for (Index i = 0; i < own; ++i)
            for (Index j = 0; j < k; ++j) {
              double sum = 0;
              for (int p = 0; p < m; ++p)
                sum += 2 * ramp(p * own + i, j) * ramp(p * own + i, j) * ramp(i, j);
              REQUIRE_THAT(gw(i, j) == sum);
            }
          return "";
        })));
}
