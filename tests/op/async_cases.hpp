// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operators that are started and waited for later: what both transports must give.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"
#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

/// A function with a state, which is gone when the call that it is given to returns.
struct Times {
  double factor = 1;
  KOKKOS_FUNCTION double operator()(double x) const { return factor * x; }
};
struct Larger {
  KOKKOS_FUNCTION double operator()(double x, double y) const { return x > y ? x : y; }
};
struct WholeNumbers {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 5 + static_cast<double>(i[d] % 7);
    return value;
  }
};

template <class T> std::vector<T> elements(const HostTensor<T>& x) { return x.values; }
template <class T, class M, class S> auto elements(const ShardedTensor<T, M, S>& x) {
  return to_host(x).values;
}
inline auto elements(const DynamicTensor& x) { return to_host<double>(x).values; }
template <class... T> auto elements(const std::tuple<T...>& all) {
  return std::apply([](const auto&... x) { return std::make_tuple(elements(x)...); }, all);
}

/// Returns the number of the first function whose operators, started together and waited for,
/// return other elements than called one after the other; 0: none.
inline int first_of(const ProcessMesh<Grid>& mesh, Index n) {
  const auto x = from_function<Real<data, model>>(mesh, {n, 12}, WholeNumbers{});
  const auto w = from_function<Real<model, _>>(mesh, {12, 12}, WholeNumbers{});
  const auto row = from_function<Real<model>>(mesh, {12}, WholeNumbers{});
  int number = 0, first = 0;
  const auto same = [&](const auto& f) {
    auto early = async(f);
    auto late = async(f);
    const auto expected = elements(f());
    ++number;
    if (!(elements(late.wait()) == expected) || !(elements(early.wait()) == expected))
      first = first == 0 ? number : first;
  };
  // Each needs the results of those before it, some of which are under way.
  same([&] { return max<"ij->j">(map(Times{3}, reshard<P<model, data>>(x))); });
  same([&] { return map<"ij,j->ij">(Larger{}, x, map(Times{7}, sum<"ij->j">(x))); });
  same([&] { return einsum<"ij,jk->ik">(einsum<"ij,jk->ik">(x, w), w); });
  same([&] { return softmax<"ij", 'i'>(map(Times{0}, x)); });
  same([&] { return associative_scan<"ij", 'i'>(Larger{}, -1e300, reshard<P<data, _>>(x)); });
  same([&] { return sort_by_key<"ij", 'j'>(x, map(Times{2}, x)); });
  same([&] {
    const auto s = top_k<"j", 'j'>(reduce<Max, "ij->j", P<data>>(x), 5);
    return std::tuple(s.values, s.indices, row);
  });
  same([&] { return concatenate<0>(reshard<P<data, _>>(x), x, reshard<P<model, data>>(x)); });
  same([&] { return squeeze<0>(expand_dims<0>(sum<"ij->j">(x))); });
  same([&] { return reshape<P<data>>(sum<"ij->j">(x), {12}); });
  same([&] { return broadcast_to<P<data, _>>(sum<"ij->j">(x), {5, 12}); });
  same([&] { return reshard_together<P<_, _>, P<data, _>, P<data, model>>(x, w, x); });
  same([&] { return x; });
  same([&] {
    auto inner = async([&] { return sum<"ij->j">(x); });
    const auto other = reshard<P<_, data>>(x);
    return std::tuple(inner.wait(), other);
  });
  const DynamicTensor d(x);
  same([&] { return exp(log(abs(reshard(d, Sharding{{1}, {0}})))); });
  same([&] {
    return std::get<0>(std::tuple(
        einsum("ij,jk,kl->il", {d, DynamicTensor(w), DynamicTensor(w)}, Sharding{{0}, {}})));
  });
  same([&] {
    auto y = zeros_like(x);
    reshard_into(y, reshard<P<_, _>>(x));
    y += map(Times{2}, reshard<P<data, model>>(reshard<P<model, data>>(x)));
    return y;
  });
  return first;
}

/// Returns the first statement that is not true, or nothing. All values are whole, so sums are
/// exact in any order.
inline std::string async_cases(const ProcessMesh<Grid>& mesh) {
  for (const Index n : {Index{7}, Index{1}, Index{0}, Index{300}}) {
    const auto x = from_function<Real<data, model>>(mesh, {n, 12}, WholeNumbers{});
    const auto w = from_function<Real<model, _>>(mesh, {12, 5}, WholeNumbers{});
    const Index held = mesh.arena().in_use();
    {
      // Several at once, with other operators between, waited for in another order than started.
      auto gathered = async([&] { return reshard<P<_, _>>(x); });
      auto turned = async([&] { return reshard<P<model, data>>(x); });
      auto swapped = async([&] { return reshard<P<_, Axes<data, model>>>(x); });
      const auto product = einsum<"ik,kj->ij">(x, w);
      auto rows = async([&] { return reduce<Sum, "ij->i">(x); });
      auto open = einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(x, w);
      auto scattered = async([&] { return reshard<P<data, model>>(open); });
      auto finished = async([&] { return reshard<P<_, _>>(std::as_const(open)); });
      while (!rows.done()) {
      }
      REQUIRE_THAT(to_host(scattered.wait()).values == to_host(product).values);
      REQUIRE_THAT(to_host(rows.wait()).values == to_host(sum<"ij->i">(x)).values);
      REQUIRE_THAT(to_host(swapped.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(turned.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(gathered.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(finished.wait()).values == to_host(product).values);
      DynamicTensor erased(x);
      auto moved = async([&] { return reshard(erased, Sharding{{1}, {}}); });
      auto largest = async([&] { return reduce<Max, "ij->j", P<Axes<data, model>>>(x); });
      erased = DynamicTensor();  // what is under way keeps its operand
      REQUIRE_THAT(to_host<double>(moved.wait()).values == to_host(x).values);
      REQUIRE_THAT(to_host(largest.wait()).values == to_host(max<"ij->j">(x)).values);
      auto waits_itself = async([&] { return reshard<P<_, _>>(x); });
      auto replaced = async([&] { return reshard<P<_, data>>(x); });
      replaced = async([&] { return reshard<P<_, data>>(x); });
      REQUIRE_THAT(to_host(replaced.wait()).values == to_host(x).values);
      auto nothing = async([&] { return reshard<P<data, model>>(x); });
      REQUIRE_THAT(nothing.done());
      REQUIRE_THAT(to_host(nothing.wait()).values == to_host(x).values);
    }
    if (const int which = first_of(mesh, n); which != 0) return "function " + std::to_string(which);
    REQUIRE_THAT(mesh.arena().in_use() == held);
  }
  return "";
}
}  // namespace
