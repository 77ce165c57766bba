// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// sin, cos and tan of floats without branches or calls, for |x| up to common_angle: the multiple
/// of pi/2 is subtracted in double (in two parts, as in Cody and Waite, Software Manual for the
/// Elementary Functions, 1980), the rest is a polynomial. libm computes larger angles.
///
///     fast_sin(1.0f) == 0.84147098f
///
/// Laws (a test sweeps them against double libm): at most 1.5 ulp for sin and cos, 3.5 for tan; -0
/// and denormals as libm's. Measured: 1.44, 1.41 and 3.01 ulp.
#include <tessera/kernel/functions/detail/float_math.hpp>

namespace tessera::detail {

inline constexpr float common_angle = 524288.0f;

/// x = n pi/2 + r with |r| <= pi/4, and r's sine and cosine.
struct AngleParts {
  std::uint32_t n;
  float sine, cosine;
};

KOKKOS_FORCEINLINE_FUNCTION AngleParts angle_parts(float x) {
  const double wide = static_cast<double>(x);
  const double rounder = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double n = (wide * 0.63661977236758134308 + rounder) - rounder;
  // The first part of pi/2 has 33 bits: n times it is exact.
  const float r =
      static_cast<float>((wide - n * 1.57079632673412561417) - n * 6.077100506506192601475e-11);
  const float z = r * r;
  const float s =
      -0.16666666663624f + z * (0.00833333168567f + z * (-0.000198400391130f + z * 2.7243812e-6f));
  const float c =
      0.0416666666641f + z * (-0.00138888875977f + z * (2.48005606e-5f + z * -2.72958563e-7f));
  return {static_cast<std::uint32_t>(static_cast<std::int32_t>(n)), with_sign(r + r * z * s, r),
          1.0f - (0.5f * z - z * z * c)};
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
