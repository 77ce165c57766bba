// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// exp, expm1, tanh, erf, log and log1p of doubles without branches or calls, so that loops over
/// them become vector instructions; as float_math.hpp does it for floats. The polynomials
/// interpolate at Chebyshev's nodes (made for this file; their own errors are 3e-19 for exp and
/// 1e-19 and 3e-17 for erf); the logarithm is Sun's (fdlibm, e_log.c, 1993).
///
///     fast_exp(1.0) == 2.718281828459045
///
/// Laws (a test sweeps them against libm's long double): at most 1.5 ulp for exp, 1 for log, 2 for
/// erf and log1p, 3 for expm1 and tanh; infinities, NaN, -0 and denormal results as libm's.
#include <tessera/kernel/functions/detail/float_power.hpp>

namespace tessera::detail {

KOKKOS_FORCEINLINE_FUNCTION std::uint64_t bits_of(double x) {
  return Kokkos::bit_cast<std::uint64_t>(x);
}
KOKKOS_FORCEINLINE_FUNCTION double double_of(std::uint64_t bits) {
  return Kokkos::bit_cast<double>(bits);
}

/// As ExpParts, of a double.
struct DoubleExpParts {
  std::uint64_t n;
  double expm1_r;
};

KOKKOS_FORCEINLINE_FUNCTION DoubleExpParts exp_parts(double x) {
  const double rounder = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = x * 1.4426950408889634074 + rounder;
  const double n = shifted - rounder;
  const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  const double low = 0.5 + r * (0.1666666666666667 + r * 0.04166666666666667);
  const double middle =
      0.008333333333326136 + r * (0.0013888888888883748 + r * 0.00019841269874820627);
  const double high =
      2.4801587325547743e-05 + r * (2.7557255400206422e-06 + r * 2.75572736431103e-07);
  const double top = 2.5105217004720745e-08 + r * 2.0914686968086876e-09;
  const double cube = r * r * r;
  const double q = low + cube * (middle + cube * (high + cube * top));
  return {bits_of(shifted) - bits_of(rounder), r + r * r * q};
}

/// Returns 2^n for -1022 <= n <= 1023.
KOKKOS_FORCEINLINE_FUNCTION double double_power_of_two(std::uint64_t n) {
  return double_of((n + 1023u) << 52);
}

KOKKOS_FORCEINLINE_FUNCTION double fast_exp(double x) {
  const double low = choose(x < -746.0, -746.0, x);  // a NaN passes both
  const double in = choose(low > 710.0, 710.0, low);
  const DoubleExpParts e = exp_parts(in);
  // Multiplies by two factors, for results that are infinite or denormal.
  const std::uint64_t half = (e.n + 4096u) / 2u - 2048u;
  return (1.0 + e.expm1_r) * double_power_of_two(half) * double_power_of_two(e.n - half);
}

/// As for floats: fast_exp(x) for x <= 0 or NaN.
KOKKOS_FORCEINLINE_FUNCTION double fast_exp_below(double x) {
  const DoubleExpParts e = exp_parts(choose(x < -746.0, -746.0, x));
  return (1.0 + e.expm1_r) * double_power_of_two(e.n + 512u) * 0x1p-512;
}

KOKKOS_FORCEINLINE_FUNCTION double fast_tanh(double x) {
  const std::uint64_t sign = std::uint64_t{1} << 63;
  const double magnitude = double_of(bits_of(x) & ~sign);
  const double in = choose(magnitude > 20.0, 20.0, magnitude);
  const DoubleExpParts e = exp_parts(2.0 * in);
  const double scale = double_power_of_two(e.n);
  const double expm1 = scale * e.expm1_r + (scale - 1.0);
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
  return with_sign(2.0 * (half * e.expm1_r + (half - 0.5)), x);
}

KOKKOS_FORCEINLINE_FUNCTION double fast_erf(double x) {
  const double magnitude = double_of(bits_of(x) & ~(std::uint64_t{1} << 63));
  const double in = choose(magnitude > 6.0, 6.0, magnitude);
  // Below 1: erf x / x - 1, by x^2.
  const double s = in * in, s2 = s * s, s4 = s2 * s2;
  const double a = (0.12837916709551257 + s * -0.37612638903183748) +
                   s2 * (0.11283791670954879 + s * -0.026866170645076793);
  const double b = (0.0052239776248180145 + s * -0.00085483269808337899) +
                   s2 * (0.00012055331111642711 + s * -1.4925595266831182e-5);
  const double c = (1.6461000484121368e-6 + s * -1.6350312701054695e-7) +
                   s2 * (1.4659775274047436e-8 + s * -1.1372848856791674e-9);
  const double small = a + s4 * (b + s4 * (c + s4 * 5.9571761477489114e-11));
  // From 1 on: (1 + 2x) e^(x^2) erfc x, by (x - 3.5) / (x + 3.5).
  const double above = in + 3.5, line = 1.0 + 2.0 * in, inverse = 1.0 / (above * line);
  const double t = (in - 3.5) * line * inverse, t2 = t * t, t4 = t2 * t2;
  const double d = (1.2423492448711544 + t * -0.14000918013761902) +
                   t2 * (-0.010555596332234843 + t * 0.09751909515313316);
  const double e = (-0.11508959815794027 + t * 0.087983153838181281) +
                   t2 * (-0.048823325932912503 + t * 0.019099330289807541);
  const double f = (-0.0042150180855109903 + t * -0.00030225221964562117) +
                   t2 * (0.00056438314993596788 + t * -0.00012168383110055402);
  const double g = (-4.3056116014776009e-5 + t * 2.4803824944957511e-5) +
                   t2 * (4.3584383502034148e-6 + t * -1.9115045824510443e-6);
  const DoubleExpParts parts = exp_parts(-s);
  const double decay = (1.0 + parts.expm1_r) * double_power_of_two(parts.n);
  const double far = 1.0 - decay * (d + t4 * (e + t4 * (f + t4 * g))) * above * inverse;
  return with_sign(choose(in < 1.0, in + in * small, far), x);
}

KOKKOS_FORCEINLINE_FUNCTION double fast_log(double x) {
  // Brings denormals into range first.
  const bool tiny = x < 2.2250738585072014e-308;
  const std::uint64_t bits = bits_of(x * choose(tiny, 0x1p54, 1.0));
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)); n is an integer in the low bits of a double first.
  const std::uint64_t above = bits + (0x3ff0000000000000u - 0x3fe6a09e00000000u);
  const double n = double_of((above >> 52) | 0x4330000000000000u) -
                   choose(tiny, 4503599627370496.0 + 1077.0, 4503599627370496.0 + 1023.0);
  const double f = double_of((above & 0x000fffffffffffffu) + 0x3fe6a09e00000000u) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s, w = z * z;
  const double even =
      w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332));
  const double odd =
      z * (0.6666666666666735130 +
           w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591)));
  const double half = 0.5 * f * f;
  const double result = n * 6.93147180369123816490e-01 -
                        ((half - (s * (half + (odd + even)) + n * 1.90821492927058770002e-10)) - f);
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double positive = choose(x < infinity, result, x);  // infinity and NaN stay
  const double defined = choose(x < 0.0, nan, positive);
  return choose(x == 0.0, -infinity, defined);
}

/// log u for u = 1 + x, rounded, and what the rounding took away.
KOKKOS_FORCEINLINE_FUNCTION double fast_log1p(double x) {
  const double u = 1.0 + x;
  const double lost = (x - (u - 1.0)) / u;
  const double usual = u - u;  // 0 but for infinity and NaN
  const double log = fast_log(u);
  return with_sign(choose((usual == 0.0) & (u > 0.0), log + lost, log), x);
}

}  // namespace tessera::detail
