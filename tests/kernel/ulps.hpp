// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Errors of float functions, in units in the last place.
///
///     worst(fn::Exp{}, [](double x) { return std::exp(x); }) <= 2
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "support/larger.hpp"

namespace test {

/// Returns how many units in the last place of the float nearest to `exact` lie between; zeros of
/// another sign are wrong.
inline double ulps(float value, double exact) {
  const float nearest = static_cast<float>(exact);
  if (std::isnan(value) || std::isnan(nearest))
    return std::isnan(value) == std::isnan(nearest) ? 0 : 1e9;
  if (std::isinf(value) || std::isinf(nearest)) return value == nearest ? 0 : 1e9;
  if (value == 0 && exact == 0 && std::signbit(value) != std::signbit(nearest)) return 1e9;
  int exponent = 0;
  std::frexp(nearest, &exponent);
  return std::abs(static_cast<double>(value) - exact) /
         std::ldexp(1.0, std::max(exponent, -125) - 24);
}

/// The largest error over every 1009th float, or every 8009th, of all signs and exponents,
/// infinities and NaN among them.
template <class F, class G> double worst(F f, G g, std::uint64_t step = 1009) {
  double most = 0;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += step) {
    const std::uint32_t narrow = static_cast<std::uint32_t>(bits);
    float x;
    std::memcpy(&x, &narrow, sizeof x);
    most = support::larger(most, ulps(f(x), g(static_cast<double>(x))));
  }
  return most;
}

}  // namespace test
