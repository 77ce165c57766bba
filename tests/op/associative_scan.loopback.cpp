// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Running joins by a user's functions, typed: a linear recurrence, whose joins do not commute, on
// every mesh of up to 8 processes; further element types.
#include <doctest/doctest.h>

#include <cmath>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"

using namespace tessera;

namespace {
struct rows : Axis<> {};
struct columns : Axis<> {};
using Grid = Mesh<rows, columns>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

/// h -> a h + b as a complex number: first f, then g.
struct Compose {
  KOKKOS_FUNCTION complex<double> operator()(complex<double> f, complex<double> g) const {
    return {f.re * g.re, f.im * g.re + g.im};
  }
};
complex<double> step_of(Index i, Index t) {
  return {0.5 + 0.25 * static_cast<double>((i + t) % 3),
          static_cast<double>((3 * i + 7 * t) % 5) - 2};
}
struct Steps {
  KOKKOS_FUNCTION complex<double> operator()(const GlobalIndex& i) const {
    return step_of(i[0], i[1]);
  }
};
struct Bits {
  KOKKOS_FUNCTION bool operator()(const GlobalIndex& i) const { return i[1] % 3 == 1; }
};
/// Whether an odd number is true.
struct Odd {
  KOKKOS_FUNCTION bool operator()(bool a, bool b) const { return a != b; }
};
struct Longest {
  KOKKOS_FUNCTION tessera::half operator()(tessera::half a, tessera::half b) const {
    return a < b ? b : a;
  }
};

template <class X> long wrong_recurrence(const X& x, Index n, bool reverse, bool exclusive) {
  const auto h = to_host(associative_scan<"bt", 't'>(Compose{}, complex<double>(1, 0), x,
                                                     {.reverse = reverse, .exclusive = exclusive}));
  long wrong = 0;
  for (Index i = 0; i < x.extent(0); ++i) {
    double factor = 1, value = 0;
    for (Index k = 0; k < n; ++k) {
      const Index t = reverse ? n - 1 - k : k;
      const complex<double> seen = h(i, t), step = step_of(i, t);
      const double next_factor = factor * step.re, next_value = value * step.re + step.im;
      wrong += !(std::fabs(seen.re - (exclusive ? factor : next_factor)) <= 1e-9);
      wrong += !(std::fabs(seen.im - (exclusive ? value : next_value)) <= 1e-9);
      factor = next_factor;
      value = next_value;
    }
  }
  return wrong;
}
}  // namespace

TEST_CASE("a linear recurrence along a split dimension") {
  for (const MeshShape& shape : support::meshes(8, 2)) {
    if (shape.rank() != 2) continue;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(shape[0], shape[1]));
      for (const Index n : {0, 1, 7, 16, 103}) {
        const auto x = from_function<Tensor<complex<double>, rows, columns>>(mesh, {3, n}, Steps{});
        const auto y =
            from_function<Tensor<complex<double>, _, Axes<columns, rows>>>(mesh, {3, n}, Steps{});
        for (const bool reverse : {false, true})
          for (const bool exclusive : {false, true}) {
            CHECK(wrong_recurrence(x, n, reverse, exclusive) == 0);
            CHECK(wrong_recurrence(y, n, reverse, exclusive) == 0);
          }
      }
    });
  }
}

TEST_CASE("other elements, dynamic tensors, and what is refused") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2));
    const auto bits = from_function<Tensor<bool, rows, columns>>(mesh, {3, 10}, Bits{});
    const auto odd = to_host(associative_scan<"bt", 't'>(Odd{}, false, bits));
    for (Index t = 0, count = 0; t < 10; ++t) {
      count += t % 3 == 1;
      CHECK(odd(1, t) == (count % 2 == 1));
    }
    const auto x = from_function<Tensor<tessera::half, rows, columns>>(
        mesh, {3, 10},
        [](const GlobalIndex& i) { return tessera::half(static_cast<float>(i[1] % 4)); });
    CHECK(static_cast<float>(
              to_host(associative_scan<"bt", 't'>(Longest{}, tessera::half(-1.0f), x))(2, 9)) == 3);
    const DynamicTensor d = x;
    const DynamicTensor all = associative_scan<tessera::half>(
        "bt", 't', Longest{}, tessera::half(-1.0f), d, {.exclusive = true}, Sharding{{}, {0}});
    CHECK(static_cast<float>(to_host<tessera::half>(all)(0, 0)) == -1);
    CHECK_THROWS_WITH_AS((void)associative_scan<float>("bt", 't', fn::Maximum{}, 0.0f, d),
                         doctest::Contains("half"), UsageError);
    CHECK_THROWS_WITH_AS(
        (void)associative_scan<tessera::half>("bt", 'x', Longest{}, tessera::half(0.0f), d),
        doctest::Contains("a letter that its operand does not have"), ShardingError);
  });
}
