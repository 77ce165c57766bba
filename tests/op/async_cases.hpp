// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operators that are started and waited for later: what both transports must give.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

namespace grid {
struct data : tessera::Axis<> {};
struct model : tessera::Axis<> {};
}  // namespace grid
namespace {
using namespace tessera;
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

struct WholeNumbers {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 5 + static_cast<double>(i[d] % 7);
    return value;
  }
};

/// Returns the first statement that is not true, or nothing. All values are whole, so sums are
/// exact in any order.
inline std::string async_cases(const ProcessMesh<Grid>& mesh) {
#define REQUIRE_THAT(...) \
  if (!(__VA_ARGS__)) return std::string(#__VA_ARGS__)
  for (const Index n : {Index{7}, Index{1}, Index{0}, Index{300}}) {
    const auto x = from_function<Real<data, model>>(mesh, {n, 12}, WholeNumbers{});
    const auto w = from_function<Real<model, _>>(mesh, {12, 5}, WholeNumbers{});
    const Index held = mesh.arena().in_use();
    {
      // Several at once, with other operators between, waited for in another order than started.
      auto gathered = reshard_async<P<_, _>>(x);
      auto turned = reshard_async<P<model, data>>(x);
      auto swapped = reshard_async<P<_, Axes<data, model>>>(x);
      const auto product = einsum<"ik,kj->ij">(x, w);
      auto rows = reduce_async<Sum, "ij->i">(x);
      auto open = einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(x, w);
      auto scattered = reshard_async<P<data, model>>(open);
      auto finished = reshard_async<P<_, _>>(std::as_const(open));
      while (!rows.done()) {
      }
      REQUIRE_THAT(to_host(scattered.wait()).values == to_host(product).values);
      REQUIRE_THAT(to_host(rows.wait()).values == to_host(sum<"ij->i">(x)).values);
      REQUIRE_THAT(to_host(swapped.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(turned.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(gathered.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(finished.wait()).values == to_host(product).values);
      DynamicTensor erased(x);
      auto moved = reshard_async(erased, Sharding{{1}, {}});
      auto largest = reduce_async<Max, "ij->j", P<Axes<data, model>>>(x);
      erased = DynamicTensor();  // what is under way keeps its operand
      REQUIRE_THAT(to_host<double>(moved.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(largest.wait()).values == to_host(max<"ij->j">(x)).values);
      auto waits_itself = reshard_async<P<_, _>>(x);
      auto replaced = reshard_async<P<_, data>>(x);
      replaced = reshard_async<P<_, data>>(x);
      REQUIRE_THAT(to_host(replaced.wait()).values == to_host(x).values);
      auto nothing = reshard_async<P<data, model>>(x);
      REQUIRE_THAT(nothing.done());
      REQUIRE_THAT(to_host(nothing.wait()).values == to_host(x).values);
    }
    REQUIRE_THAT(mesh.arena().in_use() == held);
  }
  return "";
#undef REQUIRE_THAT
}
}  // namespace
