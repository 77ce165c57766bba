// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise operators against plain loops over the gathered elements, on meshes of several
/// shapes.
///
///     differs("exp", exp(x), [](float v) { return std::exp(v); }, x)        // what is wrong, or nothing
#include <cmath>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace elementwise {
using namespace tessera;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
template <class... D> using Float = Tensor<float, D...>;

/// Small numbers of both signs that differ by their place, whole for integers.
template <class T> struct Numbers {
  int seed = 1;
  T operator()(const GlobalIndex& i) const {
    const Index n = (i.linear() * 7 + seed * 5) % 23 - 9;
    if constexpr (std::is_same_v<T, bool>)
      return n % 2 == 0;
    else if constexpr (ComplexElement<T>)
      return T(static_cast<typename T::value_type>(n), static_cast<typename T::value_type>(seed));
    else if constexpr (RealElement<T>)
      return static_cast<T>(0.25 * static_cast<double>(n));
    else
      return static_cast<T>(std::is_signed_v<T> ? n : n + 9);
  }
};
template <class X> X make(const ProcessMesh<Grid>& mesh, const Extents& extents, int seed) {
  return from_function<X>(mesh, extents, Numbers<typename X::value_type>{seed});
}

template <class T> bool same(T a, T b) {
  if constexpr (RealElement<T>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return x == y || (x != x && y != y) || std::fabs(x - y) <= 1e-6 * std::fabs(y);
  } else {
    return a == b;
  }
}

/// Where element i of a result of these extents lies in an operand that is broadcast from the
/// right.
template <class T> T element(const HostTensor<T>& x, const Extents& extents, Index i) {
  Index at = 0, stride = 1;
  for (int d = extents.size() - 1; d >= 0; --d) {
    const int own = d - (extents.size() - x.extents.size());
    const Index coordinate = i % extents[d];
    i /= extents[d];
    if (own < 0) continue;
    if (x.extents[own] != 1) at += coordinate * stride;
    stride *= x.extents[own];
  }
  return static_cast<T>(x.values[static_cast<std::size_t>(at)]);  // truths are bytes there
}

/// Returns what is wrong with y as f of the elements of x.
template <class Y, class F, class... X>
std::string differs(const char* what, const Y& y, const F& f, const X&... x) {
  const auto got = to_host(y);
  Extents extents;
  const auto widen = [&](const Extents& e) {
    while (extents.size() < e.size()) extents.push_back(1);
    Extents wide;
    for (int d = 0; d < extents.size(); ++d) {
      const int own = d - (extents.size() - e.size());
      wide.push_back(own >= 0 && extents[d] == 1 ? e[own] : extents[d]);
    }
    extents = wide;
  };
  int rank = 0;
  ((rank = std::max(rank, X::rank)), ...);
  extents = Extents(rank, 1);
  (widen(x.extents()), ...);
  if (!(got.extents == extents))
    return std::string(what) + ": extents " + to_string(got.extents) + ", not " +
           to_string(extents);
  const auto compare = [&](const auto&... host) -> std::string {
    for (Index i = 0; i < volume(extents); ++i) {
      const typename Y::value_type wanted = f(element(host, extents, i)...);
      if (!same(static_cast<typename Y::value_type>(got.values[static_cast<std::size_t>(i)]),
                wanted))
        return std::string(what) + ": element " + std::to_string(i) + " of " + to_string(extents);
    }
    return "";
  };
  return compare(to_host(x)...);
}

template <class F> void on_meshes(const F& f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2),
                                     sizes<Grid>(1, 4), sizes<Grid>(4, 1)}) {
    std::mutex mutex;
    std::string first;
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const std::string text = f(make_mesh<Grid>(world, size));
      const std::lock_guard lock(mutex);
      if (first.empty()) first = text;
    });
    CHECK_MESSAGE(first.empty(), to_string(size.shape, Grid::names()) << ": " << first);
  }
}

}  // namespace elementwise
