// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// log2, log10, sinh and cosh of doubles without branches or calls, so that loops over them become
/// vector instructions; exp, expm1 and log are in double_math.hpp. The logarithms take Sun's series
/// (fdlibm, e_log.c, 1993) as a sum of two doubles, so that the factor of another base loses
/// nothing (after FreeBSD's e_log2.c and e_log10.c); sinh near 0 is a minimax fit made for this
/// file, whose own error is 9e-20.
///
///     fast_log2(8.0) == 3;   fast_log10(1000.0) == 3;   fast_cosh(0.0) == 1
///
/// Laws (a test sweeps them against libm's long double): at most 1 ulp for log2 and log10, exact
/// for powers of 2 and of 10, 1.5 for sinh and cosh; infinities, NaN, -0 and denormal results as
/// libm's. Measured: log2 0.83, log10 0.75, sinh 1.28, cosh 1.25 ulp.
#include <tessera/kernel/functions/detail/double_math.hpp>
#include <tessera/kernel/functions/detail/sum_of_two.hpp>

namespace tessera::detail {

/// log x = n log 2 + most + rest; most has no more than 21 digits, so that its product with a
/// number of 32 is exact.
struct DoubleLogParts {
  double n, most, rest;
};

/// Returns the parts of log(x 2^-scale) of a positive normal x.
KOKKOS_FORCEINLINE_FUNCTION DoubleLogParts log_parts(double x, double scale) {
  const DoubleLogSeries l = log_series(x, scale);
  const double most = double_of(bits_of(l.f - l.half) & 0xffffffff00000000u);
  return {l.n, most, fused(l.s, l.series, (l.f - most) - l.half)};
}

/// Returns log2(x 2^-scale) of a positive normal x.
KOKKOS_FORCEINLINE_FUNCTION double log2_of_common(double x, double scale = 0.0) {
  const DoubleLogParts p = log_parts(x, scale);
  const double upper = 0x1.71547652p+0, lower = 0x1.705fc2eefa2p-33;  // of 1 / log 2
  const DoubleSum sum = exact_sum(p.n, p.most * upper);
  return sum.most + (sum.rest + fused(p.most + p.rest, lower, p.rest * upper));
}
KOKKOS_FORCEINLINE_FUNCTION double fast_log2(double x) {
  const ScaledDouble normal = normal_number(x);
  return logarithm_of_any(x, log2_of_common(normal.x, normal.scale));
}

/// Returns log10(x 2^-scale) of a positive normal x.
KOKKOS_FORCEINLINE_FUNCTION double log10_of_common(double x, double scale = 0.0) {
  const DoubleLogParts p = log_parts(x, scale);
  const double upper = 0x1.bcb7b152p-2, lower = 0x1.b9438ca9aadd5p-36;  // of 1 / log 10
  const DoubleSum sum = exact_sum(p.n * 0x1.34413509f6p-2, p.most * upper);
  const double lost = fused(p.n, 0x1.9fef311f12b36p-42, p.rest * upper);  // log10 2's lower part
  return sum.most + (sum.rest + fused(p.most + p.rest, lower, lost));
}
KOKKOS_FORCEINLINE_FUNCTION double fast_log10(double x) {
  const ScaledDouble normal = normal_number(x);
  return logarithm_of_any(x, log10_of_common(normal.x, normal.scale));
}

/// e^x / 2 = 4 (scale + scale expm1_r) and e^-x / 2 = 4 inverse, where 4 scale may be infinite.
struct HyperbolicParts {
  double scale, expm1_r, inverse;
};

/// For x >= 0.
KOKKOS_FORCEINLINE_FUNCTION HyperbolicParts hyperbolic_parts(double x) {
  const DoubleExpParts e = exp_parts(choose(x > 711.0, 711.0, x));  // a NaN passes
  const double scale = double_power_of_two(e.n - 3u);
  return {scale, e.expm1_r, 0.015625 / fused(scale, e.expm1_r, scale)};
}
KOKKOS_FORCEINLINE_FUNCTION double fast_cosh(double x) {
  const HyperbolicParts h = hyperbolic_parts(double_of(bits_of(x) & ~(std::uint64_t{1} << 63)));
  return 4.0 * (h.scale + fused(h.scale, h.expm1_r, h.inverse));
}
KOKKOS_FORCEINLINE_FUNCTION double fast_sinh(double x) {
  const double in = double_of(bits_of(x) & ~(std::uint64_t{1} << 63));
  const HyperbolicParts h = hyperbolic_parts(in);
  const double far = 4.0 * (h.scale + fused(h.scale, h.expm1_r, -h.inverse));
  // Below 1: sinh x / x - 1 is a polynomial in x^2.
  const double z = in * in;
  double q = fused(z, 7.759312246516312e-13, 1.6057240339548334e-10);
  q = fused(z, q, 2.505212339858334e-08);
  q = fused(z, q, 2.7557319155336625e-06);
  q = fused(z, q, 0.0001984126984143768);
  q = fused(z, q, 0.008333333333333139);
  q = fused(z, q, 0.16666666666666669);
  return with_sign(choose(in < 1.0, fused(in * z, q, in), far), x);
}

}  // namespace tessera::detail
