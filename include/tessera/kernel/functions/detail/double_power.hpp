// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// pow of doubles without branches or calls, so that loops over it become vector instructions: e to
/// the y log x, with log x as a sum of two doubles (sum_of_two.hpp). The logarithm is the series in
/// f / (2 + f), x = 1 + f, as fdlibm's (e_log.c, 1993). The polynomials are minimax fits made for
/// this file; their own errors are 2^-66 for log and 2^-57 for exp.
///
///     fast_pow(2.0, 0.5) == 1.4142135623730951
///
/// Laws (a test sweeps it against libm's long double): at most 1 ulp where common_power holds;
/// elsewhere, and where products are rounded before they are added (TESSERA_FUSED), libm computes
/// it; zeros, NaN, and infinite and denormal results, as libm's. Measured: 0.81 ulp, and 0.86 of
/// denormal results.
#include <tessera/kernel/functions/detail/double_math.hpp>
#include <tessera/kernel/functions/detail/sum_of_two.hpp>

#if defined(TESSERA_FUSED)
namespace tessera::detail {

/// Returns log x of the positive normal number with these bits, with an error below 2^-65 of it.
KOKKOS_FORCEINLINE_FUNCTION DoubleSum log_in_two(std::uint64_t bits) {
  // x = 2^n m with m in [sqrt(1/2), sqrt(2)). That n is an int makes g++ compute two vectors in
  // turns, which hides that their steps wait for each other.
  const std::uint64_t above = bits + (0x3ff0000000000000u - 0x3fe6a09e00000000u);
  const double n = static_cast<double>(static_cast<std::int32_t>(above >> 52) - 1023);
  const double halved = double_of((above & 0x000fffffffffffffu) + 0x3fd6a09e00000000u);
  // log m = s + s z v(z) for s = 2 f / (2 + f), f = m - 1, z = s^2. What the rounding of s has lost
  // counts times the slope 1 / (1 - z/4), of which a line is near enough.
  const double half = halved - 0.5, f = half + half;
  const double inverse = 1.0 / (halved + 0.5);
  const double s = f * inverse;
  const double lost = fused(-s, half, f - s) * inverse;
  const double z = s * s;
  const double z_rest = fused(s, s, -z);
  const double w = z * z;
  double odd = fused(w, 4.045658527619507766e-6, 0.000088778243961014160119);
  double even = fused(w, 1.0068026502923525161e-6, 0.000018782662968679355397);
  even = fused(w, even, 0.0004340277835931594235);
  odd = fused(w, odd, 0.0022321428570390075622);
  even = fused(w, even, 0.012500000000000705205);
  const double q = fused(z, odd, even);
  const double twelfth = 0.083333333333333333333;  // and its own rest
  const double v = fused(z, q, twelfth);
  const double v_rest = fused(z, q, twelfth - v) + 4.625929269271485e-18;
  const double g = z * v;
  const double g_rest = fused(z, v_rest, fused(z_rest, v, fused(z, v, -g)));
  const double c = s * g;
  const double c_rest = fused(s, g_rest, fused(s, g, -c));
  const double slope = fused(z, 0.2575825214724777, 0.9998867221832625);
  // n times the first 41 bits of log 2 is exact.
  const DoubleSum log_m = exact_sum(s, c);
  const DoubleSum all = exact_sum(n * 0x1.62e42fefa3p-1, log_m.most);
  const double rest = fused(lost, slope, fused(n, 2.8235290563031577e-13, c_rest));
  return {all.most, all.rest + (log_m.rest + rest)};
}

/// e^(most + rest) = 2^n power, with n - less in the low bits.
struct PowerParts {
  std::uint64_t n;
  double power;
};

/// For |t.most| < 2^40 and |t.rest| < 2^-4.
KOKKOS_FORCEINLINE_FUNCTION PowerParts power_parts(DoubleSum t, double less) {
  // most = n log 2 + r, exactly but for what log 2's rest brings.
  const double rounder = 6755399441055744.0 - less;  // 1.5 * 2^52
  const double shifted = fused(t.most, 1.4426950408889634074, rounder);
  const double n = shifted - rounder;
  const double r = fused(n, -0.6931471805599453, t.most);
  const double rest = fused(n, -2.3190468138462996e-17, t.rest);
  const double w = r * r;
  double even = fused(w, 2.7630915697016657152e-7, 0.000024801491105131274744);
  double odd = fused(w, 2.5117629943503748008e-8, 2.7557217137594135899e-6);
  even = fused(w, even, 0.0013888888945711347033);
  odd = fused(w, odd, 0.00019841269916289673849);
  even = fused(w, even, 0.041666666666521384949);
  odd = fused(w, odd, 0.0083333333333078102835);
  even = fused(w, even, 0.50000000000000118371);
  odd = fused(w, odd, 0.1666666666666669789);
  const DoubleSum line = exact_sum(1.0, r);
  const double curve = fused(w, fused(r, odd, even), line.rest);
  return {bits_of(shifted), line.most + fused(rest, line.most + curve, curve)};
}

/// Returns e^(t.most + t.rest), also where it is infinite or denormal.
KOKKOS_FORCEINLINE_FUNCTION double exp_in_range(DoubleSum t) {
  // Clamped by their bits, the fastest way: numbers below 0 have the greatest ones, as
  // std::uint64_t, and the least, as std::int64_t.
  const std::uint64_t lowest = bits_of(-746.0);
  const std::uint64_t above = bits_of(t.most) < lowest ? bits_of(t.most) : lowest;
  const std::int64_t highest = Kokkos::bit_cast<std::int64_t>(711.0);
  const std::int64_t whole = static_cast<std::int64_t>(above);
  const std::int64_t in = whole < highest ? whole : highest;
  // As in power_of_parts: by one factor with an exponent nearer to 0, and another.
  const PowerParts e = power_parts(DoubleSum{Kokkos::bit_cast<double>(in), t.rest}, 512.0);
  const std::uint64_t below = (static_cast<std::uint64_t>(in) & (std::uint64_t{1} << 63)) >> 1;
  const double near = double_of(bits_of(e.power) + (e.n << 52) + below);
  return near * double_of((std::uint64_t{1023 + 512} << 52) - below);
}

/// Whether fast_pow holds: for bases of either sign, or 0, that are neither denormal nor infinite,
/// and exponents below 2^26.
KOKKOS_FORCEINLINE_FUNCTION bool common_power(double x, double y) {
  const std::uint64_t no_sign = ~(std::uint64_t{1} << 63);
  const std::uint64_t base = bits_of(x) & no_sign, exponent = bits_of(y) & no_sign;
  const std::uint64_t least = std::uint64_t{1} << 52, infinity = std::uint64_t{2047} << 52;
  const std::uint64_t large = std::uint64_t{1023 + 26} << 52;
  // Comparisons by the first bits of differences
  const std::uint64_t denormal = (base - least) & (std::uint64_t{0} - base);
  const std::uint64_t rare = denormal | (infinity - 1u - base) | (large - 1u - exponent);
  return static_cast<std::int64_t>(rare) >= 0;
}
KOKKOS_FORCEINLINE_FUNCTION double fast_pow(double x, double y) {
  const std::uint64_t sign = std::uint64_t{1} << 63;
  const std::uint64_t base = bits_of(x) & ~sign;
  const DoubleSum t = product_in_two(y, log_in_two(base));
  // The logarithm of a base 0 is so low that the least exponents overflow it.
  const double size =
      exp_in_range(DoubleSum{choose(base == 0, y * -1e300 * 1e300, t.most), t.rest});
  // As for floats.
  const double rounder = 6755399441055744.0;  // 1.5 * 2^52
  const double shifted = y + rounder;
  const bool whole = shifted - rounder == y;
  const std::uint64_t odd =
      (std::uint64_t{0} - static_cast<std::uint64_t>(whole)) & (bits_of(shifted) << 63);
  const double signed_size = double_of(bits_of(size) | (bits_of(x) & odd));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return choose((x < 0.0) & !whole, nan, signed_size);
}

/// Whether pow_of_positive holds: for positive normal bases whose powers are normal for sure, since
/// |log2 x| is at most 2 |k + 1/2| for the exponent k of x. (k becomes a double as twice the halves
/// that it is above 2^51.)
KOKKOS_FORCEINLINE_FUNCTION bool positive_power(double x, double y) {
  const std::uint64_t least = std::uint64_t{1} << 52, infinity = std::uint64_t{2047} << 52;
  const std::uint64_t doubled = (bits_of(x) >> 51) & ~std::uint64_t{1};
  const double middle = double_of(doubled | 0x4320000000000000u) - (2251799813685248.0 + 1022.5);
  const double bound = double_of(bits_of(y * middle) & ~(std::uint64_t{1} << 63));
  return (bits_of(x) - least < infinity - least) & (bound < 510.0);
}
/// Returns fast_pow(x, y) in fewer steps.
KOKKOS_FORCEINLINE_FUNCTION double pow_of_positive(double x, double y) {
  const PowerParts e = power_parts(product_in_two(y, log_in_two(bits_of(x))), 0.0);
  return double_of(bits_of(e.power) + (e.n << 52));
}

}  // namespace tessera::detail
#endif
