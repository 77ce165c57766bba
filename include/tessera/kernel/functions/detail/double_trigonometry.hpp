// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// sin, cos and tan of doubles without branches or calls, for |x| up to common_angle: the multiple
/// of pi/2 is subtracted in four parts (as in Cody and Waite, Software Manual for the Elementary
/// Functions, 1980), which leaves the rest as a sum of two doubles; the polynomials are Sun's
/// (fdlibm, k_sin.c and k_cos.c, 1993). tan divides a sine by a cosine, each a sum of two doubles.
/// libm computes larger angles.
///
///     fast_sin(1.0) == 0.8414709848078965
///
/// Laws (a test sweeps them against libm's long double, multiples of pi/2 among them): at most
/// 1 ulp for sin and cos, 1.5 for tan; -0 and denormals as libm's. Measured: 0.77, 0.79 and 0.90
/// ulp; tan 1.36 where products are rounded before they are added (TESSERA_FUSED).
#include <tessera/kernel/functions/detail/double_math.hpp>
#include <tessera/kernel/functions/detail/float_trigonometry.hpp>
#include <tessera/kernel/functions/detail/sum_of_two.hpp>

namespace tessera::detail {

/// As AngleParts, of a double, but r's sine is sine.most + sine.rest, and so is its cosine.
struct DoubleAngleParts {
  std::uint64_t n;
  DoubleSum sine, cosine;
};

KOKKOS_FORCEINLINE_FUNCTION DoubleAngleParts angle_parts(double x) {
  const double rounder = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = fused(x, 0.63661977236758134308, rounder);
  const double n = shifted - rounder;
  // The first three parts of pi/2 have 33 bits: n times each is exact, and so are the differences.
  const double second = n * 6.07710050630396597660e-11, third = n * 2.02226624871116645580e-21;
  const double first = x - n * 1.57079632673412561417;
  const double upper = first - second, upper_lost = (first - upper) - second;
  const double most = upper - third, most_lost = (upper - most) - third;
  const double rest = n * 8.47842766036889956997e-32 - (upper_lost + most_lost);
  const double r = most - rest, low = (most - r) - rest;
  const double z = r * r;
  double s = fused(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
  s = fused(z, s, 2.75573137070700676789e-06);
  s = fused(z, s, -1.98412698298579493134e-04);
  s = fused(z, s, 8.33333333332248946124e-03);
  double c = fused(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
  c = fused(z, c, -2.75573143513906633035e-07);
  c = fused(z, c, 2.48015872894767294178e-05);
  c = fused(z, c, -1.38888888888741095749e-03);
  c = fused(z, c, 4.16666666666666019037e-02);
  const double cube = z * r;
  const double half = 0.5 * z, near = 1.0 - half;
  const double lost = fused(z, fused(-cube, s, 0.5 * low), -low);
  return {bits_of(shifted),
          {r, -fused(cube, 1.66666666666666324348e-01, lost)},
          {near, fused(z * z, c, fused(-r, low, (1.0 - near) - half))}};
}

/// Returns `other` where the bits of `odd` are set, and `one` where none is.
KOKKOS_FORCEINLINE_FUNCTION double either(std::uint64_t odd, double one, double other) {
  return double_of((bits_of(one) & ~odd) | (bits_of(other) & odd));
}

/// The sine of n pi/2 + r: the sine or the cosine of r, with a sign.
KOKKOS_FORCEINLINE_FUNCTION double turned(std::uint64_t n, double sine, double cosine) {
  return double_of(bits_of(either(0u - (n & 1u), sine, cosine)) ^ ((n & 2u) << 62));
}

KOKKOS_FORCEINLINE_FUNCTION double fast_sin(double x) {
  const DoubleAngleParts a = angle_parts(x);
  return turned(a.n, a.sine.most + a.sine.rest, a.cosine.most + a.cosine.rest);
}
KOKKOS_FORCEINLINE_FUNCTION double fast_cos(double x) {
  const DoubleAngleParts a = angle_parts(x);
  return turned(a.n + 1u, a.sine.most + a.sine.rest, a.cosine.most + a.cosine.rest);
}
KOKKOS_FORCEINLINE_FUNCTION double fast_tan(double x) {
  const DoubleAngleParts a = angle_parts(x);
  const DoubleSum s = exact_sum(a.sine.most, a.sine.rest);
  const DoubleSum c = exact_sum(a.cosine.most, a.cosine.rest);
  // s / c, or -c / s.
  const std::uint64_t odd = std::uint64_t{0} - (a.n & 1u);
  const double above = either(odd, s.most, c.most), below = either(odd, c.most, s.most);
  const double inverse = 1.0 / below;
#if defined(TESSERA_FUSED)
  const double quotient = above * inverse, lost = fused(-quotient, below, above);
#else
  const double quotient = above / below, lost = 0.0;
#endif
  // To first order, what the quotient's rounding and the rests bring.
  const double rest =
      fused(-quotient, either(odd, c.rest, s.rest), lost + either(odd, s.rest, c.rest));
  const double size = with_sign(fused(rest, inverse, quotient), quotient);  // -0 stays
  return double_of(bits_of(size) ^ (odd << 63));
}

}  // namespace tessera::detail
