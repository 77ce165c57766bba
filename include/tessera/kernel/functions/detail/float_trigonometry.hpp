// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// sin, cos and tan of floats without branches or calls, for |x| up to common_angle: the multiple
/// of pi/2 is subtracted in parts (as in Cody and Waite, Software Manual for the Elementary
/// Functions, 1980), by fused operations or in double, the rest is a polynomial. libm computes
/// larger angles.
///
///     fast_sin(1.0f) == 0.84147098f
///
/// Laws (a test sweeps them against double libm): at most 1.5 ulp for sin and cos, 3.5 for tan; -0
/// and denormals as libm's. Measured: 1.49, 1.49 and 3.20 ulp.
#include <tessera/kernel/functions/detail/float_math.hpp>
#include <tessera/kernel/functions/detail/sum_of_two.hpp>

namespace tessera::detail {

inline constexpr float common_angle = 524288.0f;

/// x = n pi/2 + r with |r| <= pi/4, the last bits of n, and r's sine and cosine.
struct AngleParts {
  std::uint32_t n;
  float sine, cosine;
};

/// Returns x - n pi/2.
KOKKOS_FORCEINLINE_FUNCTION FloatSum less_quarter_turns(float x, float n) {
#if defined(TESSERA_FUSED)
  // The first difference is exact: n has 19 bits, and the first part of pi/2 is a float.
  const float near = fused(n, -1.57079625f, x);
  return {fused(n, -7.54978942e-08f, near), n * -5.39030253e-15f};
#else
  // The first part of pi/2 has 33 bits: n times it is exact.
  const double wide = static_cast<double>(x), turns = static_cast<double>(n);
  return {static_cast<float>((wide - turns * 1.57079632673412561417) -
                             turns * 6.077100506506192601475e-11),
          -0.0f};
#endif
}

KOKKOS_FORCEINLINE_FUNCTION AngleParts angle_parts(float x) {
  const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = fused(x, 0.636619772f, rounder);
  const FloatSum r = less_quarter_turns(x, shifted - rounder);
  const float z = r.most * r.most;
  float s = fused(z, 2.7243812e-6f, -0.000198400391130f);
  s = fused(z, s, 0.00833333168567f);
  s = fused(z, s, -0.16666666663624f);
  float c = fused(z, -2.72958563e-7f, 2.48005606e-5f);
  c = fused(z, c, -0.00138888875977f);
  c = fused(z, c, 0.0416666666641f);
  c = fused(z, c, -0.5f);
  const float sine = fused(r.most * z, s, r.rest) + r.most;
  return {bits_of(shifted), with_sign(sine, r.most), fused(z, c, 1.0f)};
}

/// The sine of n pi/2 + r: the sine or the cosine of r, with a sign.
KOKKOS_FORCEINLINE_FUNCTION float turned(std::uint32_t n, float sine, float cosine) {
  return float_of(bits_of(choose((n & 1u) != 0, cosine, sine)) ^ ((n & 2u) << 30));
}

KOKKOS_FORCEINLINE_FUNCTION float fast_sin(float x) {
  const AngleParts a = angle_parts(x);
  return turned(a.n, a.sine, a.cosine);
}
KOKKOS_FORCEINLINE_FUNCTION float fast_cos(float x) {
  const AngleParts a = angle_parts(x);
  return turned(a.n + 1, a.sine, a.cosine);
}
KOKKOS_FORCEINLINE_FUNCTION float fast_tan(float x) {
  const AngleParts a = angle_parts(x);
  const bool odd = (a.n & 1u) != 0;
  return choose(odd, -a.cosine, a.sine) / choose(odd, a.sine, a.cosine);
}

}  // namespace tessera::detail
