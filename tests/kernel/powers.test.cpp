// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>

using namespace tessera;

#if defined(TESSERA_FUSED)
TEST_CASE_TEMPLATE("where bounds say that powers are simple, each is", T, float, double) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> bases = {Limits::min(),
                          Limits::min() / 2,
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN(),
                          T(0),
                          T(-1),
                          T(-2),
                          1 - Limits::epsilon()};
  std::vector<T> exponents = {T(0), T(-0.0), Limits::infinity(), Limits::quiet_NaN()};
  for (int k = Limits::min_exponent - 1; k < Limits::max_exponent; ++k)
    for (const double f : {1.0, 1.4, 1.999999}) bases.push_back(static_cast<T>(std::ldexp(f, k)));
  for (const double size : {0.01, 0.4, 0.9, 1.0, 1.5, 7.0, 40.0, 41.5, 120.0, 126.0, 339.0, 1030.0})
    for (const double sign : {1.0, -1.0}) exponents.push_back(static_cast<T>(sign * size));
  int said = 0, wrong = 0;
  for (const T x : bases)
    for (const T y : exponents) {
      const bool simple = detail::positive_power(x, y);
      const detail::Fit fit = fn::Pow{}.bounds(fn::SimpleWay{}, 1, &x, &y);
      said += fit == detail::Fit::all;
      wrong += fit == detail::Fit::all && !simple;
      // Beside another pair, and with one number for all of a row
      const T xs[] = {T(1), x}, ys[] = {T(1), y};
      wrong += fn::Pow{}.bounds(fn::SimpleWay{}, 2, xs, ys) != fit && fit != detail::Fit::all;
      const fn::Fixed<fn::Pow, 1, T> raised{{}, y};
      const fn::Fixed<fn::Pow, 0, T> raises{{}, x};
      wrong += raised.bounds(fn::SimpleWay{}, 1, &x) != fit;
      wrong += raises.bounds(fn::SimpleWay{}, 1, &y) != fit;
    }
  CHECK(wrong == 0);
  CHECK(said > 1000);
}
#endif

TEST_CASE_TEMPLATE("powers in place, with a rare pair anywhere in a tile", T, float, double) {
  using Limits = std::numeric_limits<T>;
  const T rare[] = {T(-1.5),
                    T(0),
                    T(-0.0),
                    Limits::denorm_min(),
                    Limits::max(),
                    Limits::infinity(),
                    -Limits::infinity(),
                    Limits::quiet_NaN()};
  constexpr std::size_t n = 1300;  // two tiles and a part of one
  std::vector<T> x(n), y(n), apart(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = static_cast<T>(0.01 * static_cast<double>(i % 700 + 1));
    y[i] = static_cast<T>(std::sin(static_cast<double>(i)) * 3);
  }
  const detail::LocalMap work{{n}, {{1}, {1}}};
  int other = 0;
  const auto check = [&] {
    detail::map(fn::Pow{}, work, apart.data(), x.data(), y.data());
    for (std::size_t i = 0; i < n; ++i) {
      const T one = fn::Pow{}(x[i], y[i]);
      other +=
          std::memcmp(&apart[i], &one, sizeof one) != 0 && !(one != one && apart[i] != apart[i]);
    }
    std::vector<T> base = x, exponent = y;
    detail::map(fn::Pow{}, work, base.data(), base.data(), y.data());
    detail::map(fn::Pow{}, work, exponent.data(), x.data(), exponent.data());
    other += std::memcmp(base.data(), apart.data(), n * sizeof(T)) != 0;
    other += std::memcmp(exponent.data(), apart.data(), n * sizeof(T)) != 0;
  };
  check();
  for (const std::size_t at : {0, 255, 511, 512, 700, 1023, 1024, 1150, 1299})
    for (const T number : rare)
      for (std::vector<T>* const row : {&x, &y}) {
        const T before = std::exchange((*row)[at], number);
        check();
        (*row)[at] = before;
      }
  CHECK(other == 0);
}
