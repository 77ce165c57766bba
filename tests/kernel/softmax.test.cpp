// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <tessera/kernel/rows/softmax.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"
#include "kernel/ulps.hpp"
#include "support/larger.hpp"

using namespace tessera;
using test::Buffer;

namespace {
const float infinity = std::numeric_limits<float>::infinity();
const float not_a_number = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::vector<T> softmax_of(bool logarithm, const detail::LocalScan& lines, const std::vector<T>& x) {
  detail::use_kernels<detail::SoftmaxKernels, T>();
  const Buffer<T> from(x), to(std::vector<T>(x.size(), T(77.0f)));
  detail::softmax(dtype_of<T>, logarithm, lines, from.data(), nullptr, nullptr, to.data());
  return to.values();
}
std::vector<float> line_of(bool logarithm, const std::vector<float>& x) {
  return softmax_of(logarithm, {.outer = 1, .n = static_cast<Index>(x.size())}, x);
}

/// Calls f(elements of a line, as indices).
template <class F> void each_line(const detail::LocalScan& lines, const F& f) {
  std::vector<std::size_t> at(static_cast<std::size_t>(lines.n));
  for (Index o = 0; o < lines.outer; ++o)
    for (Index i = 0; i < lines.inner; ++i) {
      for (Index k = 0; k < lines.n; ++k)
        at[static_cast<std::size_t>(k)] =
            static_cast<std::size_t>((o * lines.n + k) * lines.inner + i);
      f(at);
    }
}

template <class T> std::vector<T> numbers(test::Random& random, Index count, float spread) {
  std::vector<T> x;
  std::uniform_real_distribution<float> any(-spread, spread);
  for (Index i = 0; i < count; ++i) x.push_back(static_cast<T>(any(random)));
  return x;
}

/// Returns the largest error, in units of what rounding explains: once to T, and in the type of
/// computation for each operation.
template <class T>
double worst_error(bool logarithm, const detail::LocalScan& lines, const std::vector<T>& x) {
  using C = ComputeType<T>;
  const std::vector<T> y = softmax_of(logarithm, lines, x);
  const double eps = std::numeric_limits<C>::epsilon();
  const double rounded = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  double most = 0;
  each_line(lines, [&](const std::vector<std::size_t>& at) {
    long double greatest = -std::numeric_limits<long double>::infinity(), sum = 0;
    for (const std::size_t i : at) greatest = std::max(greatest, static_cast<long double>(x[i]));
    for (const std::size_t i : at) sum += std::exp(static_cast<long double>(x[i]) - greatest);
    for (const std::size_t i : at) {
      const long double below = static_cast<long double>(x[i]) - greatest;
      const long double exact = logarithm ? below - std::log(sum) : std::exp(below) / sum;
      const double size = static_cast<double>(std::abs(exact));
      const double added = std::sqrt(static_cast<double>(lines.n)) / 10;
      const double steps = logarithm
                               ? static_cast<double>(std::abs(below) + std::log(sum)) + 4 + added
                               : (static_cast<double>(std::abs(below)) + 6 + added) * size;
      const double allowed =
          size * rounded + steps * eps + static_cast<double>(std::numeric_limits<T>::denorm_min());
      const double error = static_cast<double>(std::abs(static_cast<long double>(y[i]) - exact));
      most = support::larger(most, error / allowed);
    }
  });
  return most;
}

template <class T> void check_shapes() {
  test::Random random(5);
  for (const Index outer : {1, 3, 70})
    for (const Index n : {1, 2, 5, 9, 63, 64, 65, 130, 1025})
      for (const Index inner : {1, 2, 7, 33, 64, 65, 129}) {
        if (outer * n * inner > 200000) continue;
        const detail::LocalScan lines{.outer = outer, .n = n, .inner = inner};
        const std::vector<T> x = numbers<T>(random, outer * n * inner, n % 2 == 0 ? 80.0f : 4.0f);
        CAPTURE(outer);
        CAPTURE(n);
        CAPTURE(inner);
        REQUIRE(worst_error(false, lines, x) <= 1);
        REQUIRE(worst_error(true, lines, x) <= 1);
      }
}
}  // namespace

TEST_CASE_TEMPLATE("softmax and its logarithm are the formula's, for lines of all shapes", T, float,
                   double, half, bfloat16) {
  check_shapes<T>();
}

TEST_CASE_TEMPLATE("long lines, and lines of half types that fit in no buffer", T, float, double,
                   half, bfloat16) {
  test::Random random(6);
  for (const detail::LocalScan& lines :
       {detail::LocalScan{.outer = 2, .n = 70001}, detail::LocalScan{.n = 20000},
        detail::LocalScan{.n = 300007}, detail::LocalScan{.outer = 1, .n = 3000, .inner = 66}}) {
    const std::vector<T> x = numbers<T>(random, lines.outer * lines.n * lines.inner, 3);
    CHECK(worst_error(false, lines, x) <= 1);
    CHECK(worst_error(true, lines, x) <= 1);
  }
}

TEST_CASE_TEMPLATE("by the largest elements and the sums of parts it is the same", T, float, double,
                   half, bfloat16) {
  using C = ComputeType<T>;
  detail::use_kernels<detail::SoftmaxKernels, T>();
  test::Random random(7);
  for (const Index inner : {1, 3, 100})
    for (const Index n : {1, 6, 50, 700, 9001}) {
      const Index outer = 4;
      const detail::LocalScan lines{.outer = outer, .n = n, .inner = inner};
      const std::vector<T> x = numbers<T>(random, outer * n * inner, 9);
      std::vector<T> greatest;
      std::vector<C> sums;
      each_line(lines, [&](const std::vector<std::size_t>& at) {
        T most = x[at[0]];
        for (const std::size_t i : at) most = std::max(most, x[i]);
        long double sum = 0;
        for (const std::size_t i : at)
          sum += std::exp(static_cast<long double>(x[i]) - static_cast<long double>(most));
        greatest.push_back(most);
        sums.push_back(static_cast<C>(sum));
      });
      const Buffer<T> from(x), top(greatest), to(x);
      const Buffer<C> made(std::vector<C>(sums.size(), C(77)));
      detail::exp_sums(dtype_of<T>, lines, from.data(), top.data(), made.data());
      for (std::size_t i = 0; i < sums.size(); ++i)
        REQUIRE(std::abs(made.values()[i] - sums[i]) <=
                std::numeric_limits<C>::epsilon() * 20 * sums[i]);
      for (const bool logarithm : {false, true}) {
        detail::softmax(dtype_of<T>, logarithm, lines, from.data(), top.data(), made.data(),
                        to.data());
        CHECK(to.values() == softmax_of(logarithm, lines, x));
      }
    }
  // A part without elements adds nothing.
  const Buffer<T> none(std::vector<T>{}), top(std::vector<T>(6, T(2.0f)));
  const Buffer<C> made(std::vector<C>(6, C(77)));
  detail::exp_sums(dtype_of<T>, {.outer = 2, .n = 0, .inner = 3}, none.data(), top.data(),
                   made.data());
  CHECK(made.values() == std::vector<C>(6, C(0)));
}

TEST_CASE("NaN and infinities") {
  const auto all_nan = [](const std::vector<float>& y) {
    return std::all_of(y.begin(), y.end(), [](float v) { return std::isnan(v); });
  };
  for (const std::size_t n : {std::size_t{3}, std::size_t{64}, std::size_t{100}}) {
    CAPTURE(n);
    for (const std::size_t place : {std::size_t{0}, n / 2, n - 1})
      for (const float odd : {not_a_number, -not_a_number, infinity}) {
        std::vector<float> x(n, 1.5f);
        x[place] = odd;
        CHECK(all_nan(line_of(false, x)));
        CHECK(all_nan(line_of(true, x)));
      }
    CHECK(all_nan(line_of(false, std::vector<float>(n, -infinity))));
    CHECK(all_nan(line_of(true, std::vector<float>(n, -infinity))));
    std::vector<float> x(n, 0.25f);
    x[1] = -infinity;
    const std::vector<float> p = line_of(false, x), log_p = line_of(true, x);
    CHECK(p[1] == 0);
    CHECK(log_p[1] == -infinity);
    CHECK(p[0] == 1 / static_cast<float>(n - 1));
  }
  CHECK(line_of(false, {1e30f, 1e30f}) == std::vector<float>{0.5f, 0.5f});
  CHECK(line_of(false, {-1e30f, 1e30f}) == std::vector<float>{0, 1});
  CHECK(line_of(true, {-1e30f, 1e30f}) == std::vector<float>{-2e30f, 0});
  CHECK(line_of(false, {}).empty());
}

TEST_CASE("the exponential of a number that is not positive is that of any number") {
  const auto below = [](float x) { return x > 0 ? 1.0f : detail::exp_below(x); };
  CHECK(test::worst(below, [](double x) { return x > 0 ? 1.0 : std::exp(x); }) <= 2);
  Index others = 0;
  for (double x = -750; x <= 0; x += 0.01237) {
    const double fast = detail::exp_below(x);
    others += fast != detail::exp_of(x) && fast > std::numeric_limits<double>::min();
    CHECK(std::abs(fast - std::exp(x)) <= 4e-16 * std::exp(x) + 5e-324);
  }
  CHECK(others == 0);
  CHECK(std::isnan(detail::exp_below(std::numeric_limits<double>::quiet_NaN())));
  CHECK(detail::exp_below(-std::numeric_limits<double>::infinity()) == 0);
  CHECK(detail::exp_below(-infinity) == 0);
}
