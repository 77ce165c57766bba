// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The maximum or minimum of elements that follow each other and have no NaN, by plain comparisons;
/// of half types, by comparisons of integers; or with its first place.
///
///     extreme_row(p, n, false, found)              // false: too few, or a NaN is among them
///     extreme_place(p, n, false, found, place)     // of float and double
///
/// Laws: the bits are those of Fold's joins.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <tessera/base/math.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

/// Returns the extreme value of n elements with the sign of the zero that wins.
template <class C> TESSERA_INLINE inline C sign_zero(const C* p, Index n, bool least, C found) {
  using Bits = BitsOf<C>;
  if (found != 0) return found;
  Bits wins = 0;
  const C zero = least ? -C(0) : C(0);  // which wins over the other one
  TESSERA_SIMD_OR(wins)
  for (Index j = 0; j < n; ++j)
    wins |= Bits{Kokkos::bit_cast<Bits>(p[j]) == Kokkos::bit_cast<Bits>(zero)};
  return wins != 0 ? zero : -zero;
}

/// Writes the maximum of n elements, or the `least` one, to `found`, unless there is a NaN.
template <class C>
TESSERA_INLINE inline bool extreme_row(const C* p, Index n, bool least, C& found) {
  // One vector, which stays in a register, and joins four at a time: in the order of memory, as
  // line_chunk reads it.
  constexpr Index lanes = 32 / sizeof(C), step = 4 * lanes;
  using Bits = BitsOf<C>;
  if (n < step) return false;
  const auto extreme = [least](C a, C b) TESSERA_INLINE { return (least ? a < b : a > b) ? a : b; };
  const auto unordered = [](C a, C b)
                             TESSERA_INLINE { return std::isunordered(a, b) ? ~Bits{0} : Bits{0}; };
  C best[lanes];
  Bits nans[lanes], any = 0;
  TESSERA_SIMD
  for (Index j = 0; j < lanes; ++j) {
    best[j] = p[j];
    nans[j] = 0;
  }
  for (Index i = 0; i < n; i += step) {
    const C* const x = p + min_of(i, n - step);  // the last ones once more
    TESSERA_SIMD
    for (Index j = 0; j < lanes; ++j) {
      const C a = x[j], b = x[lanes + j], c = x[2 * lanes + j], d = x[3 * lanes + j];
      best[j] = extreme(best[j], extreme(extreme(a, b), extreme(c, d)));
      nans[j] |= unordered(a, b) | unordered(c, d);
    }
  }
  for (Index j = 0; j < lanes; ++j) any |= nans[j];
  if (any != 0) return false;
  for (Index half = lanes / 2; half > 0; half /= 2)
    for (Index j = 0; j < half; ++j) best[j] = extreme(best[half + j], best[j]);
  found = best[0];
  found = sign_zero(p, n, least, found);
  return true;
}

/// Finds the extreme value of a row and its first place. Each lane keeps the group in which its
/// value came first; the least group of those that have the extreme value is searched.
template <class C>
TESSERA_INLINE inline bool extreme_place(const C* p, Index n, bool least, C& found, Index& place) {
  constexpr Index lanes = 32 / sizeof(C), step = 4 * lanes;
  using Bits = BitsOf<C>;
  if (n < step) return false;
  const auto extreme = [least](C a, C b) TESSERA_INLINE { return (least ? a < b : a > b) ? a : b; };
  const auto unordered = [](C a, C b)
                             TESSERA_INLINE { return std::isunordered(a, b) ? ~Bits{0} : Bits{0}; };
  C best[lanes];
  Bits nans[lanes], group[lanes], any = 0;
  TESSERA_SIMD
  for (Index j = 0; j < lanes; ++j) {
    best[j] = p[j];
    nans[j] = group[j] = 0;
  }
  for (Index i = 0; i < n; i += step) {
    const Index start = min_of(i, n - step);  // the last ones once more
    const C* const x = p + start;
    const Bits here = static_cast<Bits>(start);
    TESSERA_SIMD
    for (Index j = 0; j < lanes; ++j) {
      const C a = x[j], b = x[lanes + j], c = x[2 * lanes + j], d = x[3 * lanes + j];
      const C one = extreme(extreme(a, b), extreme(c, d));
      // A mask: a choice becomes a branch and a store.
      const auto more = static_cast<Bits>(Bits{0} - Bits{least ? one < best[j] : one > best[j]});
      group[j] = (here & more) | (group[j] & ~more);
      best[j] = extreme(one, best[j]);
      nans[j] |= unordered(a, b) | unordered(c, d);
    }
  }
  for (Index j = 0; j < lanes; ++j) any |= nans[j];
  if (any != 0) return false;
  C value[lanes];
  for (Index j = 0; j < lanes; ++j) value[j] = best[j];
  for (Index half = lanes / 2; half > 0; half /= 2)
    for (Index j = 0; j < half; ++j) value[j] = extreme(value[half + j], value[j]);
  found = value[0];
  Bits first = ~Bits{0}, within = ~Bits{0};
  [[maybe_unused]] Bits most = 0;
  TESSERA_SIMD_BOUNDS(first, most)
  for (Index j = 0; j < lanes; ++j) first = std::min(first, best[j] == found ? group[j] : ~Bits{0});
  const C* const x = p + first;
  TESSERA_SIMD_BOUNDS(within, most)
  for (Index j = 0; j < step; ++j)
    within = std::min(within, x[j] == found ? static_cast<Bits>(j) : ~Bits{0});
  place = static_cast<Index>(first + within);
  found = sign_zero(p, n, least, found);
  return true;
}

/// The bits of a half type as an integer of the same order, -0 below +0 and NaN at both ends; and
/// back.
TESSERA_INLINE inline std::int16_t ordered_bits(std::int16_t bits) {
  return static_cast<std::int16_t>(bits ^ (bits >> 15 & 0x7fff));
}

/// Finds the extreme value of a row of a half type.
template <class Format>
TESSERA_INLINE inline bool extreme_row(const ShortFloat<Format>* p, Index n, bool least,
                                       float& found) {
  constexpr int infinity = (2 * Format::max_exponent - 1) << (Format::digits - 1);
  if (n < 16) return false;
  const auto* const bits = reinterpret_cast<const std::int16_t*>(p);
  std::int16_t low = ordered_bits(bits[0]), high = low;
  TESSERA_SIMD_BOUNDS(low, high)
  for (Index j = 0; j < n; ++j) {
    const std::int16_t key = ordered_bits(bits[j]);
    low = std::min(low, key);
    high = std::max(high, key);
  }
  if (high > infinity || low < ~infinity) return false;
  found = Format::widen(static_cast<std::uint16_t>(ordered_bits(least ? low : high)));
  return true;
}

}  // namespace tessera::detail
