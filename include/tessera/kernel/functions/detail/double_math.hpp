// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// exp, tanh and log of doubles without branches or calls, so that loops over them become vector
/// instructions; as float_math.hpp does it for floats. The polynomial of exp interpolates at
/// Chebyshev's nodes (made for this file; its own error is 3e-19); the logarithm is Sun's
/// (fdlibm, e_log.c, 1993).
///
///     fast_exp(1.0) == 2.718281828459045
///
/// Laws (a test sweeps them against libm's long double): at most 1.5 ulp for exp, 1 for log, 3 for
/// tanh; infinities, NaN, -0 and denormal results as libm's.
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

}  // namespace tessera::detail
