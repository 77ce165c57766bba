// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether positive_power (float_power.hpp, double_power.hpp) holds for a whole row, by its largest
/// exponent and by the base farthest from 1: half the work of a look at each pair. A row is an
/// array, or one number again and again.
///
///     power_bounds<float>(256, x, Alike<float>{2.5f}) == Fit::all
///
/// Laws: where it is Fit::all, positive_power(x[i], y[i]) for all i.
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <tessera/base/math.hpp>
#include <tessera/kernel/detail/simd.hpp>
#include <tessera/kernel/functions/detail/double_math.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera::detail {

/// The bits of a positive number are, nearly, its logarithm; their distance from those of 1, as a
/// whole number. (The last bit is set so that -1 is no number without a magnitude.)
template <std::floating_point T> KOKKOS_FORCEINLINE_FUNCTION auto distance_from_one(T x) {
  using Bits = decltype(bits_of(x));
  using Whole = std::make_signed_t<Bits>;
  const auto above = static_cast<Whole>((bits_of(x) - bits_of(T(1))) | Bits{1});
  return above < 0 ? -above : above;
}

/// For n > 0.
template <std::floating_point T, class X, class Y>
TESSERA_INLINE inline Fit power_bounds(Index n, const X x, const Y y) {
  using Whole = decltype(distance_from_one(T{}));
  constexpr int digits = std::numeric_limits<T>::digits - 1;
  constexpr Whole last = std::numeric_limits<T>::max_exponent - 1, unit = Whole{1} << digits;
  const auto no_sign = static_cast<decltype(bits_of(T{}))>(std::numeric_limits<Whole>::max());
  Whole farthest = distance_from_one(x[0]), largest = static_cast<Whole>(bits_of(y[0]) & no_sign);
  TESSERA_SIMD_MOST(farthest, largest)
  for (Index i = 0; i < n; ++i) {
    if constexpr (!std::same_as<X, Alike<T>>) {
      const Whole distance = distance_from_one(x[i]);
      farthest = distance > farthest ? distance : farthest;
    }
    if constexpr (!std::same_as<Y, Alike<T>>) {
      const Whole size = static_cast<Whole>(bits_of(y[i]) & no_sign);
      largest = size > largest ? size : largest;
    }
  }
  // A base is negative, 0, denormal, infinite or NaN, or nearly infinite.
  if (farthest > (last - 1) * unit) return Fit::not_all;
  // A base 2^k (1 + f) has the distance |k + f|, and |k + 1/2| is at most 1/2 more.
  const T middle = static_cast<T>(farthest) / static_cast<T>(unit) + T(0.5);
  const T most = static_cast<T>(last / 2 - 2);  // a little less than positive_power's 63 and 510
  return Kokkos::bit_cast<T>(largest) * middle < most ? Fit::all : Fit::unsure;
}

}  // namespace tessera::detail
