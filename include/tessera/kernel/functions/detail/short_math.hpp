// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// exp, erf, gelu, sin and cos of half types: in float, but with as many digits as the result
/// keeps, in half of the steps that float_math.hpp takes. The polynomials are minimax fits made for
/// this file.
///
///     static_cast<half>(short_exp(1.0f)) == fn::Exp{}(half(1.0f))
///
/// Laws (a test compares all arguments with libm): results of half types are within 0.52 ulp, and
/// the nearest ones for 99 of 100 arguments; infinities, NaN, -0 and denormal results as libm's.
/// Measured: 0.513 ulp, and 99.5 of 100.
#include <tessera/kernel/functions/detail/float_trigonometry.hpp>

namespace tessera::detail {

/// The square of 2^y for y = x / log(4), so that one factor is enough for infinite and denormal
/// results.
KOKKOS_FORCEINLINE_FUNCTION float short_exp(float x) {
  const float scaled = x * 0.721347520f;
  const float low = choose(scaled < -69.0f, -69.0f, scaled);  // a NaN passes both
  const float y = choose(low > 64.0f, 64.0f, low);
  const float rounder = 12582912.0f;  // 1.5 * 2^23: the low bits of `shifted` are an integer
  const float shifted = y + rounder;
  const float r = y - (shifted - rounder);
  float power = fused(r, 0.00957010221f, 0.0559178628f);  // 2^r
  power = fused(r, power, 0.240247443f);
  power = fused(r, power, 0.693121791f);
  power = fused(r, power, 0.999999285f);
  const float root = float_of(bits_of(power) + (bits_of(shifted) << 23));
  return root * root;
}

/// From 2.7 on the nearest number of a half type is 1.
KOKKOS_FORCEINLINE_FUNCTION float short_erf(float x) {
  const float size = magnitude_of(x);
  const float in = choose(size > 2.7f, with_sign(2.7f, x), x);  // a NaN passes
  const float s = in * in;
  float p = fused(s, 8.31759698e-8f, -3.29565767e-6f);
  p = fused(s, p, 5.87531235e-5f);
  p = fused(s, p, -0.000633833389f);
  p = fused(s, p, 0.00471990175f);
  p = fused(s, p, -0.0261844603f);
  p = fused(s, p, 0.112356106f);
  p = fused(s, p, -0.375989716f);
  p = fused(s, p, 1.12837243f);
  return in * p;
}

/// relu(x) - |x| erfc(|x| / sqrt 2) / 2: the 16th root of erfc is a polynomial up to 6, and the
/// product one number from there on.
KOKKOS_FORCEINLINE_FUNCTION float short_gelu_of_common(float x) {
  const float half = 0.5f * x;
  const float size = magnitude_of(half);
  const float t = lesser_size(size, 3.0f);
  float root = fused(t, -5.50108825e-06f, 9.3932169e-05f);
  root = fused(t, root, -0.000489441736f);
  root = fused(t, root, -0.000374034076f);
  root = fused(t, root, 0.0101827523f);
  root = fused(t, root, -0.0107727414f);
  root = fused(t, root, -0.0745140016f);
  root = fused(t, root, -0.0997440219f);
  root = fused(t, root, 1.00000012f);
  const float r2 = root * root, r4 = r2 * r2, r8 = r4 * r4;
  const float made = fused(-t, r8 * r8, half + size);
  return float_of(bits_of(made) | (bits_of(x) & 0x80000000u));  // -0 stays
}
KOKKOS_FORCEINLINE_FUNCTION float short_gelu(float x) {
  return choose(common_gelu(x), short_gelu_of_common(x), gelu_far_below(x));
}

/// Returns x - m pi; m is an integer and perhaps a half.
KOKKOS_FORCEINLINE_FUNCTION float less_half_turns(float x, float m) {
  const FloatSum r = less_quarter_turns(x, 2.0f * m);
  return r.most + r.rest;
}

/// The sine of x - m pi, with the other sign if the last bit of n is set.
KOKKOS_FORCEINLINE_FUNCTION float short_sine(float x, float m, std::uint32_t n) {
  const float r = less_half_turns(x, m), z = r * r;
  const float s = fused(z, fused(z, -0.000185389246f, 0.00831417646f), -0.166658476f);
  return float_of(bits_of(r * fused(z, s, 1.0f)) ^ (n << 31));  // -0 stays
}
/// For |x| up to common_angle, as fast_sin.
KOKKOS_FORCEINLINE_FUNCTION float short_sin(float x) {
  const float rounder = 12582912.0f;
  const float shifted = fused(x, 0.318309886f, rounder);
  return short_sine(x, shifted - rounder, bits_of(shifted));
}
KOKKOS_FORCEINLINE_FUNCTION float short_cos(float x) {
  const float rounder = 12582912.0f;
  const float shifted = fused(x, 0.318309886f, -0.5f) + rounder;
  return short_sine(x, (shifted - rounder) + 0.5f, bits_of(shifted) + 1u);
}

}  // namespace tessera::detail
