// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// exp, exp2, expm1, tanh, erf, gelu, log and log1p of doubles without branches or calls, so that
/// loops over them become vector instructions; as float_math.hpp does it for floats. The
/// polynomials interpolate at Chebyshev's nodes (made for this file; their own errors are 4e-17 for
/// exp and 1e-19 and 3e-17 for erf); the logarithm is Sun's (fdlibm, e_log.c, 1993).
///
///     fast_exp(1.0) == 2.718281828459045
///
/// Laws (a test sweeps them against libm's long double): at most 1.5 ulp for exp and exp2, 1 for
/// log, 2 for erf and log1p, 3 for expm1 and tanh; infinities, NaN, -0 and denormal results as
/// libm's. Gelu: 2 ulp from 0 on and 8 below it (measured: 1.5 and 6.6); -0 at minus infinity.
#include <tessera/kernel/functions/detail/float_exponential.hpp>

namespace tessera::detail {

/// As ExpParts, of a double.
struct DoubleExpParts {
  std::uint64_t n;
  double expm1_r;
};

/// Returns e^r - 1 for |r| <= log(2)/2.
KOKKOS_FORCEINLINE_FUNCTION double expm1_near_0(double r) {
  double q = fused(r, 2.510038549551032e-08, 2.7620088445409746e-07);
  q = fused(r, q, 2.7557268459997064e-06);
  q = fused(r, q, 2.4801521295954376e-05);
  q = fused(r, q, 0.00019841269863053618);
  q = fused(r, q, 0.0013888888917213717);
  q = fused(r, q, 0.0083333333333300615);
  q = fused(r, q, 0.041666666666624129);
  q = fused(r, q, 0.16666666666666669);
  q = fused(r, q, 0.50000000000000011);
  return fused(r * r, q, r);
}

KOKKOS_FORCEINLINE_FUNCTION DoubleExpParts exp_parts(double x) {
  const double rounder = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = fused(x, 1.4426950408889634074, rounder);
  const double n = shifted - rounder;
  const double r = fused(n, -1.90821492927058770002e-10, fused(n, -6.93147180369123816490e-01, x));
  return {bits_of(shifted), expm1_near_0(r)};
}

/// Returns 2^n for -1022 <= n <= 1023.
KOKKOS_FORCEINLINE_FUNCTION double double_power_of_two(std::uint64_t n) {
  return double_of((n + 1023u) << 52);
}

/// As for floats.
KOKKOS_FORCEINLINE_FUNCTION double power_of_parts(DoubleExpParts e, bool below_one) {
  const std::uint64_t by = 512u;
  const double near = double_power_of_two(e.n + (below_one ? by : 0u - by));
  return fused(near, e.expm1_r, near) * (below_one ? 0x1p-512 : 0x1p512);
}

KOKKOS_FORCEINLINE_FUNCTION double fast_exp(double x) {
  const double low = x < -746.0 ? -746.0 : x;  // a NaN passes both
  return power_of_parts(exp_parts(low > 710.0 ? 710.0 : low), x < 0.0);
}

/// Whether results of e^x and 2^x are normal numbers for sure: then one factor is enough.
KOKKOS_FORCEINLINE_FUNCTION bool common_exponent(double x) { return (x <= 700.0) & (x >= -700.0); }
KOKKOS_FORCEINLINE_FUNCTION double power_of_common(DoubleExpParts e) {
  const double near = double_power_of_two(e.n);
  return fused(near, e.expm1_r, near);
}

/// 2^x = 2^n e^r
KOKKOS_FORCEINLINE_FUNCTION DoubleExpParts exp2_parts(double x) {
  const double rounder = 6755399441055744.0;
  const double shifted = x + rounder;
  return {bits_of(shifted), expm1_near_0((x - (shifted - rounder)) * 0.693147180559945309417)};
}
KOKKOS_FORCEINLINE_FUNCTION double fast_exp2(double x) {
  const double low = choose(x < -1080.0, -1080.0, x);  // a NaN passes both
  return power_of_parts(exp2_parts(choose(low > 1030.0, 1030.0, low)), x < 0.0);
}

/// As for floats: fast_exp(x) for x <= 0 or NaN.
KOKKOS_FORCEINLINE_FUNCTION double fast_exp_below(double x) {
  return power_of_parts(exp_parts(x < -746.0 ? -746.0 : x), true);
}

KOKKOS_FORCEINLINE_FUNCTION double fast_tanh(double x) {
  const std::uint64_t sign = std::uint64_t{1} << 63;
  const double magnitude = double_of(bits_of(x) & ~sign);
  const DoubleExpParts e = exp_parts(2.0 * choose(magnitude > 20.0, 20.0, magnitude));
  const double scale = double_power_of_two(e.n);
  const double expm1 = fused(scale, e.expm1_r, scale - 1.0);
  const double result = expm1 / (expm1 + 2.0);
  return double_of((bits_of(result) & ~sign) | (bits_of(x) & sign));
}

/// |to| with the sign of `from`.
KOKKOS_FORCEINLINE_FUNCTION double with_sign(double to, double from) {
  const std::uint64_t sign = std::uint64_t{1} << 63;
  return double_of((bits_of(to) & ~sign) | (bits_of(from) & sign));
}

KOKKOS_FORCEINLINE_FUNCTION double fast_expm1(double x) {
  const double low = choose(x < -40.0, -40.0, x);  // a NaN passes both
  const DoubleExpParts e = exp_parts(choose(low > 710.0, 710.0, low));
  const double half = double_power_of_two(e.n - 1u);  // of 2^n, which may be infinite
  return with_sign(2.0 * fused(half, e.expm1_r, half - 0.5), x);
}

/// Returns erf x for 0 <= x <= 1: erf x / x - 1 is a polynomial in x^2.
KOKKOS_FORCEINLINE_FUNCTION double erf_below_1(double x) {
  const double s = x * x;
  double small = fused(s, 5.9571761477489114e-11, -1.1372848856791674e-9);
  small = fused(s, small, 1.4659775274047436e-8);
  small = fused(s, small, -1.6350312701054695e-7);
  small = fused(s, small, 1.6461000484121368e-6);
  small = fused(s, small, -1.4925595266831182e-5);
  small = fused(s, small, 0.00012055331111642711);
  small = fused(s, small, -0.00085483269808337899);
  small = fused(s, small, 0.0052239776248180145);
  small = fused(s, small, -0.026866170645076793);
  small = fused(s, small, 0.11283791670954879);
  small = fused(s, small, -0.37612638903183748);
  small = fused(s, small, 0.12837916709551257);
  return fused(x, small, x);
}

KOKKOS_FORCEINLINE_FUNCTION double fast_erf(double x) {
  const double magnitude = double_of(bits_of(x) & ~(std::uint64_t{1} << 63));
  const double in = choose(magnitude > 6.0, 6.0, magnitude);
  // From 1 on: (1 + 2x) e^(x^2) erfc x, by (x - 3.5) / (x + 3.5).
  const double above = in + 3.5, line = fused(2.0, in, 1.0), inverse = 1.0 / (above * line);
  const double t = (in - 3.5) * line * inverse;
  double scaled = fused(t, -1.9115045824510443e-6, 4.3584383502034148e-6);
  scaled = fused(t, scaled, 2.4803824944957511e-5);
  scaled = fused(t, scaled, -4.3056116014776009e-5);
  scaled = fused(t, scaled, -0.00012168383110055402);
  scaled = fused(t, scaled, 0.00056438314993596788);
  scaled = fused(t, scaled, -0.00030225221964562117);
  scaled = fused(t, scaled, -0.0042150180855109903);
  scaled = fused(t, scaled, 0.019099330289807541);
  scaled = fused(t, scaled, -0.048823325932912503);
  scaled = fused(t, scaled, 0.087983153838181281);
  scaled = fused(t, scaled, -0.11508959815794027);
  scaled = fused(t, scaled, 0.09751909515313316);
  scaled = fused(t, scaled, -0.010555596332234843);
  scaled = fused(t, scaled, -0.14000918013761902);
  scaled = fused(t, scaled, 1.2423492448711544);
  const double decay = power_of_common(exp_parts(-in * in));
  const double far = 1.0 - decay * scaled * above * inverse;
  return with_sign(choose(in < 1.0, erf_below_1(in), far), x);
}

/// x (1 + erf(x / sqrt 2)) / 2, and from sqrt 2 on by erfc, so that no digits are lost where x is
/// negative: (1 + 2y) e^(y^2/2) erfc(y / sqrt 2) / 2 is a polynomial in (y - 5) / (y + 5), y = |x|.
KOKKOS_FORCEINLINE_FUNCTION double fast_gelu(double x) {
  const double size = double_of(bits_of(x) & ~(std::uint64_t{1} << 63));
  const double y = choose(size > 38.7, 38.7, size), in = y * 0.70710678118654752440;
  const double above = y + 5.0, line = fused(2.0, y, 1.0), inverse = 1.0 / (above * line);
  const double t = (y - 5.0) * line * inverse;
  double scaled = fused(t, -1.0768598539570837e-07, 3.8211951981777393e-07);
  scaled = fused(t, scaled, 2.7218988089234195e-07);
  scaled = fused(t, scaled, -2.8586048033572393e-06);
  scaled = fused(t, scaled, 4.820326904654554e-07);
  scaled = fused(t, scaled, 1.9402200859444313e-05);
  scaled = fused(t, scaled, -2.6421166789016975e-05);
  scaled = fused(t, scaled, -0.00010818204557580297);
  scaled = fused(t, scaled, 0.00042509316373637995);
  scaled = fused(t, scaled, -0.00011869249403413997);
  scaled = fused(t, scaled, -0.0035716951719493868);
  scaled = fused(t, scaled, 0.015422845564897418);
  scaled = fused(t, scaled, -0.039332201369484926);
  scaled = fused(t, scaled, 0.07248782698234739);
  scaled = fused(t, scaled, -0.1006574382164022);
  scaled = fused(t, scaled, 0.10088858203439899);
  scaled = fused(t, scaled, -0.0540080750340803);
  scaled = fused(t, scaled, -0.03964700840400469);
  scaled = fused(t, scaled, 0.8461123547250693);
  const auto [square, lost] = square_in_two(y);
  const double rest = fused(-0.5 * lost, scaled, scaled) * above * inverse;
  const DoubleExpParts e = exp_parts(-0.5 * square);
  const double near = double_power_of_two(e.n + 512u), power = fused(near, e.expm1_r, near);
  const double below = power * (rest * y) * -0x1p-512;  // where x is negative
  const double far = 0.5 * x * (1.0 + (1.0 - 2.0 * (power * rest * 0x1p-512)));
  const double close = 0.5 * x * (1.0 + with_sign(erf_below_1(choose(in < 1.0, in, 1.0)), x));
  return choose(in < 1.0, close, choose(x < 0.0, below, far));
}

/// log(x 2^-scale) of a positive normal x is n log 2 + f - half + s series, in Sun's series.
struct DoubleLogSeries {
  double n, f, half, s, series;
};
KOKKOS_FORCEINLINE_FUNCTION DoubleLogSeries log_series(double x, double scale) {
  const std::uint64_t bits = bits_of(x);
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)); n is an integer in the low bits of a double first.
  const std::uint64_t above = bits + (0x3ff0000000000000u - 0x3fe6a09e00000000u);
  const double n =
      double_of((above >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023.0 + scale);
  const double f = double_of((above & 0x000fffffffffffffu) + 0x3fe6a09e00000000u) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s, w = z * z;
  double even = fused(w, 0.1531383769920937332, 0.2222219843214978396);
  even = fused(w, even, 0.3999999999940941908);
  double odd = fused(w, 0.1479819860511658591, 0.1818357216161805012);
  odd = fused(w, odd, 0.2857142874366239149);
  odd = fused(w, odd, 0.6666666666666735130);
  const double half = 0.5 * f * f;
  return {n, f, half, s, fused(z, odd, fused(w, even, half))};
}
/// Returns log(x 2^-scale) of a positive normal x.
KOKKOS_FORCEINLINE_FUNCTION double log_of_normal(double x, double scale = 0.0) {
  const DoubleLogSeries l = log_series(x, scale);
  const double low = fused(l.s, l.series, l.n * 1.90821492927058770002e-10);
  return fused(l.n, 6.93147180369123816490e-01, l.f - (l.half - low));
}
/// Returns a logarithm of x where that of positive numbers is `result`: as it is, infinite or NaN.
KOKKOS_FORCEINLINE_FUNCTION double logarithm_of_any(double x, double result) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double positive = choose(x < infinity, result, x);  // infinity and NaN stay
  const double defined = choose(x < 0.0, nan, positive);
  return choose(x == 0.0, -infinity, defined);
}
/// A number x 2^-scale.
struct ScaledDouble {
  double x, scale;
};
/// Returns x, or of a denormal x a normal number with its scale.
KOKKOS_FORCEINLINE_FUNCTION ScaledDouble normal_number(double x) {
  const bool tiny = x < 2.2250738585072014e-308;
  return {x * choose(tiny, 0x1p54, 1.0), choose(tiny, 54.0, 0.0)};
}
KOKKOS_FORCEINLINE_FUNCTION double fast_log(double x) {
  const ScaledDouble normal = normal_number(x);
  return logarithm_of_any(x, log_of_normal(normal.x, normal.scale));
}

/// As for floats: whether log_of_normal holds.
KOKKOS_FORCEINLINE_FUNCTION bool common_logarithm(double x) {
  const auto bits = static_cast<std::int64_t>(bits_of(x));
  return (bits >= std::int64_t{1} << 52) & (bits < std::int64_t{2047} << 52);
}

/// log(1 + x) - log u for u = 1 + x, rounded; to first order, as for floats.
KOKKOS_FORCEINLINE_FUNCTION double lost_of_log1p(double x, double u) { return (x - (u - 1.0)) / u; }
KOKKOS_FORCEINLINE_FUNCTION double fast_log1p(double x) {
  const double u = 1.0 + x, logarithm = fast_log(u);
  const double usual = u - u;  // 0 but for infinity and NaN
  const double right = logarithm + lost_of_log1p(x, u);
  return with_sign(choose((usual == 0.0) & (u > 0.0), right, logarithm), x);
}
KOKKOS_FORCEINLINE_FUNCTION bool common_log1p(double x) {
  return (x > -1.0) & (x < std::numeric_limits<double>::infinity());
}
KOKKOS_FORCEINLINE_FUNCTION double log1p_of_common(double x) {
  const double u = 1.0 + x;
  return with_sign(log_of_normal(u) + lost_of_log1p(x, u), x);
}

}  // namespace tessera::detail
