// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// sqrt(x^2 + y^2) without branches or calls, and without overflow or underflow of the squares.
///
///     fast_size(3.0f, 4.0f) == 5.0f
///
/// Laws (a test sweeps them against libm's hypot): at most 0.6 ulp for floats, 1.5 for doubles;
/// infinite where x or y is, else NaN where one of them is; denormal results as libm's. Measured:
/// 0.50 and 1.16 ulp.
#include <tessera/kernel/functions/detail/double_math.hpp>

namespace tessera::detail {

KOKKOS_FORCEINLINE_FUNCTION float fast_size(float x, float y) {
  const double a = static_cast<double>(x), b = static_cast<double>(y);  // squares are exact
  const float size = static_cast<float>(Kokkos::sqrt(fused(a, a, b * b)));
  const float infinity = std::numeric_limits<float>::infinity();
  const bool left = magnitude_of(x) == infinity, right = magnitude_of(y) == infinity;
  return choose(left | right, infinity, size);
}

KOKKOS_FORCEINLINE_FUNCTION double fast_size(double x, double y) {
  const std::uint64_t no_sign = ~(std::uint64_t{1} << 63);
  const std::uint64_t left = bits_of(x) & no_sign, right = bits_of(y) & no_sign;
  // The greater one's power of two, but for denormal and the largest numbers.
  const std::uint64_t greater = (left > right ? left : right) >> 52;
  const std::uint64_t least = greater < 1u ? 1u : greater;
  const std::uint64_t power = least > 2045u ? 2045u : least;
  const double down = double_of((2046u - power) << 52);
  const double a = x * down, b = y * down;
  const double size = Kokkos::sqrt(fused(a, a, b * b)) * double_of(power << 52);
  const std::uint64_t infinite = std::uint64_t{2047} << 52;
  return choose((left == infinite) | (right == infinite), std::numeric_limits<double>::infinity(),
                size);
}

}  // namespace tessera::detail
