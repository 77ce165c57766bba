// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
// Layer norm and RMS norm against loops in long double: in one step and by moments that are given,
// of many rows, of few long ones, of none, with NaNs and infinities.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <tessera/kernel/rows/normalize.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"
#include "kernel/ulps.hpp"
#include "support/larger.hpp"

using namespace tessera;
using test::Buffer;

namespace {
using Wide = long double;
template <class T> Wide wide(T x) { return static_cast<Wide>(static_cast<ComputeType<T>>(x)); }

template <class T> struct Normed {
  using C = ComputeType<T>;
  std::vector<T> y;
  std::vector<C> inverse, mean;
};
/// The inputs of a norm.
template <class T> struct Given {
  detail::LocalNormalize work;
  std::vector<T> x, scale, bias;
};
/// Calls the kernel; `variance` and `mean`: those that are given, if they are.
template <class T>
Normed<T> normed(const Given<T>& given, const std::vector<ComputeType<T>>* variance = nullptr,
                 const std::vector<ComputeType<T>>* mean = nullptr) {
  using C = ComputeType<T>;
  detail::use_kernels<detail::MomentsKernels, T>();
  detail::use_kernels<detail::NormalizeKernels, T>();
  detail::LocalNormalize work = given.work;
  work.known = variance != nullptr;
  const auto rows = static_cast<std::size_t>(work.rows);
  const Buffer<T> x(given.x), scale(given.scale), bias(given.bias);
  const Buffer<T> y(std::vector<T>(given.x.size(), T(77)));
  const Buffer<C> inverse(std::vector<C>(rows, C(77)));
  const Buffer<C> means(mean != nullptr ? *mean : std::vector<C>(rows, C(77)));
  const Buffer<C> variances(variance != nullptr ? *variance : std::vector<C>(1));
  const double over_n = work.n > 0 ? 1 / static_cast<double>(work.n) : std::nan("");
  detail::normalize(dtype_of<T>, work, over_n,
                    {.x = x.data(),
                     .scale = scale.data(),
                     .bias = work.biased ? bias.data() : nullptr,
                     .known_variance = work.known ? variances.data() : nullptr,
                     .known_mean = work.known ? means.data() : nullptr,
                     .y = y.data(),
                     .inverse = inverse.data(),
                     .mean = work.centred && !work.known ? means.data() : nullptr});
  return {y.values(), inverse.values(), means.values()};
}
/// The variances that the kernel for moments finds, and the means.
template <class T>
std::pair<std::vector<ComputeType<T>>, std::vector<ComputeType<T>>> moments_of(
    const Given<T>& given) {
  using C = ComputeType<T>;
  const auto rows = static_cast<std::size_t>(given.work.rows);
  const Buffer<T> x(given.x);
  const Buffer<C> mean{std::vector<C>(rows)}, variance{std::vector<C>(rows)};
  const Index n = given.work.n;
  detail::moments(dtype_of<T>, {{given.work.rows}, {n}, {n}, {1}}, x.data(), nullptr,
                  1 / static_cast<double>(n), given.work.centred ? mean.data() : nullptr,
                  variance.data(), given.work.centred);
  return {variance.values(), mean.values()};
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Compares with loops in long double, and with the norm by given moments to the bit.
template <class T> void check(const Given<T>& given) {
  using C = ComputeType<T>;
  const detail::LocalNormalize& work = given.work;
  const Normed<T> made = normed(given);
  const Wide eps = std::numeric_limits<C>::epsilon(), round = std::is_same_v<T, C> ? 0 : 0x1p-8;
  const Wide least = std::is_same_v<T, half> ? 0x1p-24L : 1e-30L;  // of its subnormal numbers
  const auto row = static_cast<std::size_t>(work.n);
  for (std::size_t r = 0; r < static_cast<std::size_t>(work.rows); ++r) {
    Wide mean = 0, squares = 0, most = 0;
    for (std::size_t j = 0; j < row; ++j) {
      mean += wide(given.x[r * row + j]) / work.n;
      most = std::max(most, std::abs(wide(given.x[r * row + j])));
    }
    if (!work.centred) mean = 0;
    for (std::size_t j = 0; j < row; ++j)
      squares += std::pow(wide(given.x[r * row + j]) - mean, 2) / work.n;
    const Wide inverse = 1 / std::sqrt(squares + static_cast<Wide>(work.epsilon));
    CHECK(std::abs(wide(made.inverse[r]) - inverse) <=
          inverse * (16 * eps + 16 * std::pow(most * inverse * eps, 2)));
    if (work.centred) CHECK(std::abs(wide(made.mean[r]) - mean) <= 4 * eps * most);
    double worst = 0;
    for (std::size_t j = 0; j < row; ++j) {
      const Wide h = (wide(given.x[r * row + j]) - mean) * inverse * wide(given.scale[j]);
      const Wide plus = work.biased ? wide(given.bias[j]) : 0;
      const Wide allowed = (32 * eps + round) * (std::abs(h) + std::abs(plus)) +
                           8 * eps * most * inverse * std::abs(wide(given.scale[j]));
      const Wide error = std::abs(wide(made.y[r * row + j]) - h - plus);
      worst = support::larger(worst, static_cast<double>(error / (allowed + least)));
    }
    CHECK(worst <= 1);
  }
  if (work.rows >= 8 && work.n < 16) return;  // whose moments are found side by side
  const auto [variance, mean] = moments_of(given);
  const Normed<T> again = normed(given, &variance, &mean);
  CHECK(same_bits(again.y, made.y));
  CHECK(same_bits(again.inverse, made.inverse));
}

template <class T>
Given<T> numbers(test::Random& random, Index rows, Index n, bool centred, bool biased,
                 double centre = 0) {
  std::normal_distribution<double> any(0, 1);
  Given<T> given{{rows, n, 0.01, centred, biased}, {}, {}, {}};
  const auto one = [&](double at) {
    return static_cast<T>(static_cast<ComputeType<T>>(at + any(random)));
  };
  for (Index i = 0; i < rows * n; ++i) given.x.push_back(one(centre));
  for (Index i = 0; i < n; ++i) given.scale.push_back(one(1));
  for (Index i = 0; i < n; ++i) given.bias.push_back(one(0));
  return given;
}
template <class T> void shapes(test::Random& random) {
  for (const bool centred : {true, false})
    for (const bool biased : {true, false}) {
      for (const Index n : {1, 2, 7, 16, 63, 255, 300, 2048, 5000})
        check(numbers<T>(random, 5, n, centred, biased, 10));
      check(numbers<T>(random, 700, 33, centred, biased));
      check(numbers<T>(random, 20, 12, centred, biased, 2));
      check(numbers<T>(random, 2, 150000, centred, biased, 3));  // in pieces
    }
}
}  // namespace

TEST_CASE("norms equal loops in long double, in one step and by given moments") {
  test::Random random(5);
  shapes<float>(random);
  shapes<double>(random);
  shapes<half>(random);
  shapes<bfloat16>(random);
  for (const double centre : {1e4, -3e5})
    check(numbers<float>(random, 3, 3000, true, true, centre));
  check(numbers<double>(random, 3, 3000, true, true, 1e12));
}

TEST_CASE("norms of nothing, of NaN and of infinities") {
  CHECK(normed<float>({{0, 4}, {}, std::vector<float>(4), {}}).y.empty());
  const Normed<double> none = normed<double>({{3, 0}, {}, {}, {}});
  CHECK(none.y.empty());
  CHECK(std::isnan(none.inverse[2]));
  for (const double rare : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Given<double> given{
        {2, 40, 1e-5}, std::vector<double>(80, 2.0), std::vector<double>(40, 1.0), {}};
    given.x[50] = rare;
    const Normed<double> made = normed(given);
    CHECK(made.y[0] == 0);
    for (std::size_t i = 40; i < 80; ++i) CHECK(std::isnan(made.y[i]));
    given.work.centred = false;  // one over infinity: as PyTorch has it
    const Normed<double> squares = normed(given);
    CHECK(std::isnan(squares.y[50]));
    CHECK((std::isnan(rare) ? std::isnan(squares.y[41]) : squares.y[41] == 0));
  }
}
