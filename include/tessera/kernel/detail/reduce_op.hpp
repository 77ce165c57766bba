// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How two values become one, for each reduction and element type, and in what type a long sum is
/// kept.
///
///     Fold<Reduction::max, float>::join(1.0f, 2.0f) == 2.0f
///
/// Laws: join is associative up to rounding, and start() is its identity; NaN wins in max and min,
/// as in NumPy.
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/reduction.hpp>

namespace tessera::detail {

/// The unsigned type in which integers wrap instead of overflowing; floating types themselves.
template <class T, bool Integer = std::is_integral_v<T>> struct WrappingType { using type = T; };
template <class T> struct WrappingType<T, true> { using type = std::make_unsigned_t<T>; };
template <class T> using Wrapping = typename WrappingType<T>::type;

template <Reduction R, class T> struct Fold;

template <class T> struct Fold<Reduction::sum, T> {
  /// Long float sums are kept in double, block by block.
  using Total = std::conditional_t<std::is_same_v<T, float>, double, T>;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T start() { return T{}; }
  template <class U> KOKKOS_FORCEINLINE_FUNCTION static constexpr U join(U a, U b) {
    return static_cast<U>(static_cast<Wrapping<U>>(a) + static_cast<Wrapping<U>>(b));
  }
};

template <class T> struct Fold<Reduction::max, T> {
  using Total = T;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T start() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::lowest()
                                 : -std::numeric_limits<T>::infinity();
  }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T join(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return a < b ? b : a;
    else
      return ((a > b) | (a != a)) ? a : b;
  }
};

template <class T> struct Fold<Reduction::min, T> {
  using Total = T;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T start() {
    return std::is_integral_v<T> ? std::numeric_limits<T>::max()
                                 : std::numeric_limits<T>::infinity();
  }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T join(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return b < a ? b : a;
    else
      return ((a < b) | (a != a)) ? a : b;
  }
};

/// Returns total times scale in the element type; integers are multiplied in double and truncated.
template <class T, class Total> KOKKOS_FUNCTION constexpr T scaled(Total total, double scale) {
  return scale == 1.0 ? static_cast<T>(total) : static_cast<T>(static_cast<double>(total) * scale);
}

}  // namespace tessera::detail
