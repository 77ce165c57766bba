// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Integer arithmetic that holds at compile time and at run time: sizes, and costs that saturate.
///
///     ceil_div(7, 2) == 4;   detail::saturating_mul(huge, 2) == max_int64
#include <cstdint>

namespace tessera {

using Index = std::int64_t;

inline constexpr std::int64_t max_int64 = 0x7fff'ffff'ffff'ffff;

namespace detail {
/// Returns n / d rounded towards zero; d > 0, n >= 0. Where both have 32 bits, in a fraction of the
/// cycles that a division of 64 takes.
constexpr Index quotient(Index n, Index d) {
  if ((n | d) >> 32 != 0) return n / d;
  return static_cast<std::uint32_t>(n) / static_cast<std::uint32_t>(d);
}
}  // namespace detail

/// Returns n / d rounded up; d > 0, n >= 0.
constexpr Index ceil_div(Index n, Index d) {
  const Index whole = detail::quotient(n, d);
  return whole + (whole * d != n ? 1 : 0);
}

/// Return the lesser and the greater; usable in device code.
constexpr Index min_of(Index a, Index b) { return a < b ? a : b; }
constexpr Index max_of(Index a, Index b) { return a < b ? b : a; }

namespace detail {
/// Returns whether n is a multiple of d; d > 0, n >= 0.
constexpr bool divides(Index d, Index n) { return quotient(n, d) * d == n; }

/// Returns n rounded up to a multiple of unit, or the largest multiple below the limit of Index.
constexpr Index round_up(Index n, Index unit) {
  const Index units = ceil_div(n, unit);
  return (units > max_int64 / unit ? max_int64 / unit : units) * unit;
}

/// Sums and products of non-negative numbers that stop at max_int64 instead of overflowing.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a > max_int64 - b ? max_int64 : a + b;
}
/// Returns whether a number has stopped at the limit, so that it means "at least this"; rounding it
/// down to a unit does not hide that.
constexpr bool saturated(std::int64_t n) { return n > max_int64 - (std::int64_t{1} << 16); }
/// Returns a - b, except that a sum or product at the limit stays there; a >= b >= 0.
constexpr std::int64_t saturating_sub(std::int64_t a, std::int64_t b) {
  return saturated(a) ? max_int64 : a - b;
}
constexpr std::int64_t saturating_mul(std::int64_t a, std::int64_t b) {
#if defined(__CUDACC__)  // has no constexpr builtin for it
  if ((a | b) >> 31 == 0) return a * b;
  if (a == 0 || b == 0) return 0;
  return a > max_int64 / b ? max_int64 : a * b;
#else
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? max_int64 : product;
#endif
}
}  // namespace detail

}  // namespace tessera
