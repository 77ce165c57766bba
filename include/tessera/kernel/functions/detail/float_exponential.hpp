// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Powers of e and 2, logarithms to other bases and functions of exp and log that stay exact near
/// 0, for floats, without branches or calls: log2 uses double inside; the others use the parts of
/// float_math.hpp.
///
///     log2_of_common(8.0f) == 3.0f;   fast_expm1(1e-10f) == 1e-10f
///
/// Laws (a test sweeps them against double libm): at most 1 ulp for log2 and log10 where
/// common_logarithm holds (elsewhere libm computes them), 2 for exp2, cosh and log1p, 3 for expm1,
/// sinh and sigmoid; infinities, NaN, -0 and denormal results as libm's. Measured: log2 0.50, log10
/// 0.51, exp2 1.04, cosh 1.46, log1p 1.44, expm1 1.65, sinh 2.12, sigmoid 2.23 ulp.
#include <tessera/kernel/functions/detail/float_math.hpp>

namespace tessera::detail {

/// As choose(bool, float, float).
KOKKOS_FORCEINLINE_FUNCTION double choose(bool c, double a, double b) {
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(c);
  return Kokkos::bit_cast<double>((Kokkos::bit_cast<std::uint64_t>(a) & mask) |
                                  (Kokkos::bit_cast<std::uint64_t>(b) & ~mask));
}

/// log2 x = n + 2 atanh(s) / log 2
struct Log2Parts {
  double n, s;
};

/// For a positive normal float.
KOKKOS_FORCEINLINE_FUNCTION Log2Parts log2_parts(float x) {
  // x = 2^n m with m in [sqrt(1/2), sqrt(2))
  const std::uint32_t above = bits_of(x) - 0x3f3504f3u;
  const double n = static_cast<double>(static_cast<std::int32_t>(above) >> 23);
  const double m = static_cast<double>(float_of((above & 0x007fffffu) + 0x3f3504f3u));
  return {n, (m - 1.0) / (m + 1.0)};
}

/// Returns the base-2 logarithm of a positive normal float, with an error below 2^-45 of it.
KOKKOS_FORCEINLINE_FUNCTION double log2_of_normal(float x) {
  const auto [n, s] = log2_parts(x);
  const double z = s * s;
  double q = fused(z, 0.28310105034388615949, 0.31989243436159815935);
  q = fused(z, q, 0.41220955440822382824);
  q = fused(z, q, 0.57707793960968767599);
  q = fused(z, q, 0.96179669412191989259);
  q = fused(z, q, 2.8853900817778458726);
  return fused(s, q, n);
}

/// Returns the logarithm with an error below 2^-30.
KOKKOS_FORCEINLINE_FUNCTION double short_log2_of_normal(float x) {
  const auto [n, s] = log2_parts(x);
  const double z = s * s;
  double q = fused(z, 0.43173587920703854, 0.5767143839624679);
  q = fused(z, q, 0.961798847641743);
  q = fused(z, q, 2.8853900797889267);
  return fused(s, q, n);
}

/// Whether log_of_normal, log2_of_common and log10_of_common hold: positive, normal and finite.
KOKKOS_FORCEINLINE_FUNCTION bool common_logarithm(float x) {
  const auto bits = static_cast<std::int32_t>(bits_of(x));  // whole numbers compare faster
  return (bits >= 0x00800000) & (bits < 0x7f800000);
}
KOKKOS_FORCEINLINE_FUNCTION float log2_of_common(float x) {
  return static_cast<float>(short_log2_of_normal(x));
}
KOKKOS_FORCEINLINE_FUNCTION float log10_of_common(float x) {
  return static_cast<float>(short_log2_of_normal(x) * 0.30102999566398119521);
}

/// 2^x = 2^n e^r
KOKKOS_FORCEINLINE_FUNCTION ExpParts exp2_parts(float x) {
  const float rounder = 12582912.0f;
  const float shifted = x + rounder;
  return {bits_of(shifted), expm1_near_0((x - (shifted - rounder)) * 0.693147182f)};
}
KOKKOS_FORCEINLINE_FUNCTION float fast_exp2(float x) {
  const float low = choose(x < -152.0f, -152.0f, x);  // a NaN passes both
  return power_of_parts(exp2_parts(choose(low > 130.0f, 130.0f, low)), x < 0.0f);
}

KOKKOS_FORCEINLINE_FUNCTION float fast_expm1(float x) {
  const float low = choose(x < -20.0f, -20.0f, x);
  const ExpParts e = exp_parts(choose(low > 40.0f, 40.0f, low));
  const float scale = power_of_two(e.n);
  const float small = fused(scale, e.expm1_r, scale - 1.0f);
  const float result = choose(x > 40.0f, fast_exp(x), small);
  return choose(x == 0.0f, x, result);
}

/// log u for u = 1 + x, rounded, and to first order what the rounding took away. After W. Kahan.
KOKKOS_FORCEINLINE_FUNCTION float log1p_by(float logarithm, float x, float u) {
  const float lost = (x - (u - 1.0f)) / u;
  const float result = logarithm + choose((u > 0.0f) & (u < 16777216.0f), lost, 0.0f);
  return choose(x == 0.0f, x, result);
}
KOKKOS_FORCEINLINE_FUNCTION float fast_log1p(float x) {
  return log1p_by(fast_log(1.0f + x), x, 1.0f + x);
}
/// Where 1 + x is a positive number.
KOKKOS_FORCEINLINE_FUNCTION bool common_log1p(float x) {
  return (x > -1.0f) & (x < std::numeric_limits<float>::infinity());
}
KOKKOS_FORCEINLINE_FUNCTION float log1p_of_common(float x) {
  return log1p_by(log_of_normal(1.0f + x), x, 1.0f + x);
}

/// Half of e^x, also where e^x is beyond the floats.
KOKKOS_FORCEINLINE_FUNCTION float half_exp(float x) {
  const ExpParts e = exp_parts(choose(x > 91.0f, 91.0f, x));
  return power_of_parts(ExpParts{e.n - 1u, e.expm1_r}, false);
}
KOKKOS_FORCEINLINE_FUNCTION float fast_sinh(float x) {
  const float in = magnitude_of(x);
  const float m = fast_expm1(choose(in > 20.0f, 20.0f, in));
  const float small = 0.5f * (m + m / (m + 1.0f));
  return with_sign(choose(in > 10.0f, half_exp(in), small), x);
}
KOKKOS_FORCEINLINE_FUNCTION float fast_cosh(float x) {
  const float h = half_exp(magnitude_of(x));
  return h + 0.25f / h;
}

/// 1 / (1 + e^-x), with exp only of numbers that are not positive: nothing overflows, small results
/// keep their digits.
KOKKOS_FORCEINLINE_FUNCTION float fast_sigmoid(float x) {
  const float e = fast_exp_below(-magnitude_of(x));
  return choose(x < 0.0f, e, 1.0f) / (1.0f + e);
}

}  // namespace tessera::detail
