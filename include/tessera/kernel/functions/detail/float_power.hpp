// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// pow of floats without branches or calls: where products and sums can be fused, as
/// double_power.hpp's of doubles, by a logarithm that is a sum of two floats; elsewhere, and of
/// large exponents, in double.
///
///     fast_pow(2.0f, 0.5f) == 1.41421354f
///
/// Laws (a test sweeps them against double libm): at most 1 ulp where common_power or
/// moderate_power holds (elsewhere libm computes it); zeros, NaN, and infinite and denormal
/// results, as libm's. Measured: 0.84 ulp, and 0.70 of exponents up to 40; 0.51 in double.
#include <tessera/kernel/functions/detail/float_exponential.hpp>
#include <tessera/kernel/functions/detail/sum_of_two.hpp>

namespace tessera::detail {

/// Returns 2^t as a float; t beyond the exponents of floats gives infinity or 0.
KOKKOS_FORCEINLINE_FUNCTION float exp2_to_float(double t) {
  const double low = choose(t < -200.0, -200.0, t);
  const double in = choose(low > 200.0, 200.0, low);
  const double rounder = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = in + rounder;
  const double f = in - (shifted - rounder);
  double p = fused(f, 1.5303700711365693939e-5, 0.00015469729214118297093);
  p = fused(f, p, 0.0013333478473685415281);
  p = fused(f, p, 0.0096180256133180342494);
  p = fused(f, p, 0.055504109063258666119);
  p = fused(f, p, 0.24022651213498092661);
  p = fused(f, p, 0.69314718055683241353);
  p = fused(f, p, 0.99999999995956175074);
  const std::uint64_t power = (Kokkos::bit_cast<std::uint64_t>(shifted) + 1023u) << 52;
  return static_cast<float>(p * Kokkos::bit_cast<double>(power));
}

/// Whether pow_in_double holds: for bases of either sign, or 0, that are neither denormal nor
/// infinite, and moderate exponents.
KOKKOS_FORCEINLINE_FUNCTION bool moderate_power(float x, float y) {
  const auto base = static_cast<std::int32_t>(bits_of(x) & 0x7fffffffu);
  const auto exponent = static_cast<std::int32_t>(bits_of(y) & 0x7fffffffu);
  return ((base >= 0x00800000) | (base == 0)) & (base < 0x7f800000) & (exponent < 0x4a800000);
}
KOKKOS_FORCEINLINE_FUNCTION float pow_in_double(float x, float y) {
  const float base = magnitude_of(x);
  const bool zero = base == 0.0f;
  const double logarithm = choose(zero, -1e300, log2_of_normal(choose(zero, 1.0f, base)));
  const float size = exp2_to_float(static_cast<double>(y) * logarithm);
  // For a negative base odd exponents keep the sign, and fractions give NaN.
  const float rounder = 12582912.0f;  // 1.5 * 2^23
  const float shifted = y + rounder;
  const bool whole = shifted - rounder == y;
  const std::uint32_t odd = static_cast<std::uint32_t>(whole) & bits_of(shifted);
  const float signed_size = float_of(bits_of(size) | (bits_of(x) & (odd << 31)));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return choose((x < 0.0f) & !whole, nan, signed_size);
}

#if defined(TESSERA_FUSED)
/// Returns log x of the positive normal number with these bits.
KOKKOS_FORCEINLINE_FUNCTION FloatSum log_in_two(std::uint32_t bits) {
  // x = 2^n m with m in [sqrt(2/3), sqrt(8/3)), and from sqrt(3/2) on 3/4 m takes the place of m.
  // That n is a short makes g++ compute two vectors in turns, as for doubles.
  const std::uint32_t above = bits - 0x3f5105ecu;
  const float n =
      static_cast<float>(static_cast<std::int16_t>(static_cast<std::int32_t>(above) >> 23));
  const std::uint32_t m = (above & 0x007fffffu) + 0x3f5105ecu;
  const bool large = static_cast<std::int32_t>(m) >= 0x3f9cc471;
  // log m = 2 s + 2 s (2 s)^2 v for s = f / (2 + f), f = m - 1; the other names as for doubles.
  const float half = fused(float_of(m), choose(large, 0.375f, 0.5f), -0.5f);  // f / 2, exactly
  const float inverse = 2.0f / (1.0f + half);
  const float s = half * inverse;
  const float lost = fused(-s, half, fused(2.0f, half, -s)) * inverse;
  const float z = s * s;
  const float v = fused(z, fused(z, 0.00226659535f, 0.0124991809f), 0.0833333389f);
  const float power = fused(n, 0.693145752f, choose(large, 0.28768158f, 0.0f));
  const float power_rest = fused(n, 1.42860682e-6f, choose(large, 4.92861937e-7f, 0.0f));
  const FloatSum all = exact_sum(power, s);
  const float rest = fused(lost, fused(z, 0.125f, 0.5f), power_rest);
  return {all.most, all.rest + fused(s, z * v, rest)};
}

/// e^(t.most + t.rest) = 2^n power, with n - less in the low bits.
struct FloatPowerParts {
  std::uint32_t n;
  float power;
};
KOKKOS_FORCEINLINE_FUNCTION FloatPowerParts power_parts(FloatSum t, float less) {
  const float rounder = 12582912.0f - less;  // 1.5 * 2^23
  const float shifted = fused(t.most + t.rest, 1.44269504f, rounder);
  const float n = shifted - rounder;
  const float near = fused(n, -0.693147182f, t.most);  // exactly
  const float rest = fused(n, 1.90465430e-9f, t.rest);
  const float r = near + rest;
  float q = fused(r, 0.00139503761f, 0.00836885039f);
  q = fused(r, q, 0.0416662084f);
  q = fused(r, q, 0.166665193f);
  q = fused(r, q, 0.5f);
  const FloatSum line = exact_sum(1.0f, near);
  return {bits_of(shifted), line.most + fused(r * r, q, line.rest + rest)};
}

/// Returns e^(t.most + t.rest), also where it is infinite or denormal.
KOKKOS_FORCEINLINE_FUNCTION float exp_in_range(FloatSum t) {
  const std::uint32_t lowest = bits_of(-106.0f);
  const std::uint32_t above = bits_of(t.most) < lowest ? bits_of(t.most) : lowest;
  const std::int32_t highest = Kokkos::bit_cast<std::int32_t>(91.0f);
  const std::int32_t whole = static_cast<std::int32_t>(above);
  const std::int32_t in = whole < highest ? whole : highest;
  const FloatPowerParts e = power_parts(FloatSum{Kokkos::bit_cast<float>(in), t.rest}, 64.0f);
  const std::uint32_t below = (static_cast<std::uint32_t>(in) & (1u << 31)) >> 1;
  const float near = float_of(bits_of(e.power) + (e.n << 23) + below);
  return near * float_of(((127u + 64u) << 23) - below);
}

/// Whether fast_pow holds: for bases of either sign, or 0, that are neither denormal nor infinite,
/// and exponents below 2^7.
KOKKOS_FORCEINLINE_FUNCTION bool common_power(float x, float y) {
  const std::uint32_t base = bits_of(x) & 0x7fffffffu, exponent = bits_of(y) & 0x7fffffffu;
  const std::uint32_t denormal = (base - 0x00800000u) & (0u - base);
  const std::uint32_t rare = denormal | (0x7f7fffffu - base) | (0x42ffffffu - exponent);
  return static_cast<std::int32_t>(rare) >= 0;
}
KOKKOS_FORCEINLINE_FUNCTION float fast_pow(float x, float y) {
  const std::uint32_t base = bits_of(x) & 0x7fffffffu;
  const FloatSum t = product_in_two(y, log_in_two(base));
  const float size = exp_in_range(FloatSum{choose(base == 0, y * -1e38f * 1e38f, t.most), t.rest});
  // For a negative base odd exponents keep the sign, and fractions give NaN.
  const float rounder = 12582912.0f;  // 1.5 * 2^23
  const float shifted = y + rounder;
  const bool whole = shifted - rounder == y;
  const std::uint32_t odd = (0u - static_cast<std::uint32_t>(whole)) & (bits_of(shifted) << 31);
  const float signed_size = float_of(bits_of(size) | (bits_of(x) & odd));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return choose((x < 0.0f) & !whole, nan, signed_size);
}

/// As for doubles: for positive normal bases whose powers are normal for sure.
KOKKOS_FORCEINLINE_FUNCTION bool positive_power(float x, float y) {
  const std::uint32_t doubled = (bits_of(x) >> 22) & ~1u;
  const float middle = float_of(doubled | 0x4a800000u) - (4194304.0f + 126.5f);
  const float bound = magnitude_of(y * middle);
  return (bits_of(x) - 0x00800000u < 0x7f000000u) & (bound < 63.0f);
}
KOKKOS_FORCEINLINE_FUNCTION float pow_of_positive(float x, float y) {
  const FloatPowerParts e = power_parts(product_in_two(y, log_in_two(bits_of(x))), 0.0f);
  return float_of(bits_of(e.power) + (e.n << 23));
}

/// Returns fast_pow(x, y) or, of larger exponents, pow_in_double(x, y), where moderate_power holds.
KOKKOS_FORCEINLINE_FUNCTION float pow_of_moderate(float x, float y) {
  return choose(common_power(x, y), fast_pow(x, y), pow_in_double(x, y));
}
#else
KOKKOS_FORCEINLINE_FUNCTION bool common_power(float x, float y) { return moderate_power(x, y); }
KOKKOS_FORCEINLINE_FUNCTION float fast_pow(float x, float y) { return pow_in_double(x, y); }
#endif

}  // namespace tessera::detail
