// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How two values become one, for each reduction and element type, and the type in which a long sum
/// is kept.
///
///     Fold<Reduction::max, float>::join(1.0f, 2.0f) == 2.0f
///
/// Laws: join is associative up to rounding, and start() is its identity; max and min do not depend
/// on the order of their arguments: NaN wins, as in NumPy, and -0 is below +0.
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/reduction.hpp>

namespace tessera::detail {

/// The type whose arithmetic wraps where arithmetic on an integer T overflows (short integers would
/// become int, whose products overflow); floating and complex types themselves.
template <class T> struct WrappingType {
  using type =
      std::conditional_t<std::is_integral_v<T>,
                         std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>, T>;
};
template <class T> using Wrapping = typename WrappingType<T>::type;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

/// The greater of two floats; a NaN wins, and +0 wins over -0. Equal floats have equal bits except
/// the signs of zeros, so `and` and `or` decide those: b's bits, and a's where a is equal. Masks in
/// place of branches, so that loops become vector instructions.
template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T greater_float(T a, T b) {
  using Bits = BitsOf<T>;
  const Bits x = Kokkos::bit_cast<Bits>(a), y = Kokkos::bit_cast<Bits>(b);
  const auto wins = static_cast<Bits>((Bits{0} - Bits{a > b}) | (Bits{0} - Bits{a != a}));
  const auto rest = static_cast<Bits>(y & (x | ~(Bits{0} - Bits{a == b})));
  return Kokkos::bit_cast<T>(static_cast<Bits>((x & wins) | (rest & ~wins)));
}
/// The lesser; -0 wins over +0.
template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T lesser_float(T a, T b) {
  using Bits = BitsOf<T>;
  const Bits x = Kokkos::bit_cast<Bits>(a), y = Kokkos::bit_cast<Bits>(b);
  const auto wins = static_cast<Bits>((Bits{0} - Bits{a < b}) | (Bits{0} - Bits{a != a}));
  const auto rest = static_cast<Bits>(y | (x & (Bits{0} - Bits{a == b})));
  return Kokkos::bit_cast<T>(static_cast<Bits>((x & wins) | (rest & ~wins)));
}

template <Reduction R, class T> struct Fold;

template <class T> struct Fold<Reduction::sum, T> {
  /// Long float sums are kept in double, block by block.
  using Total = TotalType<T>;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T start() { return T{}; }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T join(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

template <class T> struct Fold<Reduction::product, T> {
  using Total = TotalType<T>;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T start() { return T{1}; }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T join(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

template <class T> struct Fold<Reduction::max, T> {
  using Total = ComputeType<T>;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T start() {
    if constexpr (std::is_integral_v<T>)
      return std::numeric_limits<T>::lowest();
    else
      return -std::numeric_limits<T>::infinity();
  }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T join(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return a < b ? b : a;
    else
      return greater_float(a, b);
  }
};

template <class T> struct Fold<Reduction::min, T> {
  using Total = ComputeType<T>;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T start() {
    if constexpr (std::is_integral_v<T>)
      return std::numeric_limits<T>::max();
    else
      return std::numeric_limits<T>::infinity();
  }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr T join(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return b < a ? b : a;
    else
      return lesser_float(a, b);
  }
};

// Bools are reduced as the bytes that store them.
template <> struct Fold<Reduction::any, std::uint8_t> {
  using Total = std::uint8_t;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr Total start() { return 0; }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr Total join(Total a, Total b) {
    return static_cast<Total>(a | b);
  }
};
template <> struct Fold<Reduction::all, std::uint8_t> {
  using Total = std::uint8_t;
  KOKKOS_FORCEINLINE_FUNCTION static constexpr Total start() { return 1; }
  KOKKOS_FORCEINLINE_FUNCTION static constexpr Total join(Total a, Total b) {
    return static_cast<Total>(a & b);
  }
};

/// The types in which elements T are reduced when results are of type Out: one for parts of a few
/// hundred elements, and one for the whole. Narrow integers that must not wrap are widened at once;
/// a 32-bit part has room for 2^15 elements of 16 bits.
template <Reduction R, class T, class Out> struct Accumulator {
  using Part = ComputeType<T>;
  using Total = typename Fold<R, T>::Total;
};
template <Reduction R, class T, class Out>
  requires(std::is_integral_v<T> && sizeof(T) < 8 && std::is_integral_v<Out> && sizeof(Out) == 8)
struct Accumulator<R, T, Out> {
  using Part =
      std::conditional_t<R == Reduction::sum && sizeof(T) <= 2,
                         std::conditional_t<std::is_signed_v<Out>, std::int32_t, std::uint32_t>,
                         Out>;
  using Total = Out;
};

/// factor c; a complex number's parts by themselves, since an infinite one times a factor's part 0
/// would be NaN.
template <class C, class R> KOKKOS_FORCEINLINE_FUNCTION constexpr C times(C c, R factor) {
  if constexpr (ComplexElement<C>)
    return {c.re * factor, c.im * factor};
  else
    return c * factor;
}
/// Returns total times scale in the element type; integers are multiplied in double and truncated.
template <class T, class Total> KOKKOS_FUNCTION constexpr T scaled(Total total, double scale) {
  if constexpr (ComplexElement<T>)
    return static_cast<T>(times(total, static_cast<typename Total::value_type>(scale)));
  else
    return scale == 1.0 ? static_cast<T>(total)
                        : static_cast<T>(static_cast<double>(total) * scale);
}

/// The type as which an element is reduced.
template <class T> using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// Calls f with the reduction as a compile-time constant: one that is defined on elements T.
template <class T, class F> decltype(auto) with_reduction(Reduction reduction, F&& f) {
  if constexpr (std::is_same_v<T, bool>) {
    if (reduction == Reduction::any) return f(std::integral_constant<Reduction, Reduction::any>{});
    if (reduction == Reduction::all) return f(std::integral_constant<Reduction, Reduction::all>{});
  } else {
    if (reduction == Reduction::sum) return f(std::integral_constant<Reduction, Reduction::sum>{});
    if (reduction == Reduction::product)
      return f(std::integral_constant<Reduction, Reduction::product>{});
    if constexpr (OrderedElement<T>) {
      if (reduction == Reduction::max)
        return f(std::integral_constant<Reduction, Reduction::max>{});
      if (reduction == Reduction::min)
        return f(std::integral_constant<Reduction, Reduction::min>{});
    }
  }
  throw UsageError("elements of " + std::string(name_of(dtype_of<T>)) + " have no reduction " +
                   std::string(name_of(reduction)) +
                   "; numbers have sum and product, ordered ones max and min, bool any and all");
}
/// This overload takes a reduction that may have wider results: bools have sums and products, as
/// integers.
template <class T, class F> decltype(auto) with_reduction(Reduction reduction, bool wide, F&& f) {
  if constexpr (std::is_same_v<T, bool>)
    if (wide)
      return reduction == Reduction::sum
                 ? f(std::integral_constant<Reduction, Reduction::sum>{})
                 : f(std::integral_constant<Reduction, Reduction::product>{});
  return with_reduction<T>(reduction, f);
}

}  // namespace tessera::detail
