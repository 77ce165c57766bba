// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Rounding, signs and limits.
///
///     fn::Round{}(2.5) == 2.0                     // halves go to the even neighbour
///     fn::ClampTo<int>{0, 9}(12) == 9
#include <concepts>

#include <tessera/kernel/functions/arithmetic.hpp>

namespace tessera {
namespace detail {
// Uses rint, which is one instruction with AVX2: g++ 12 calls libm for the others.
template <class T> KOKKOS_FORCEINLINE_FUNCTION T floor_of(T x) {
  const T near = Kokkos::rint(x);
  return near > x ? near - T(1) : near;
}
template <class T> KOKKOS_FORCEINLINE_FUNCTION T ceil_of(T x) { return -floor_of(-x); }
}  // namespace detail

namespace fn {

/// The largest whole number that is not above x. Integers are their own.
struct Floor {
  static constexpr Linearity linearity = Linearity::monotone;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    if constexpr (RealElement<T>)
      return static_cast<T>(detail::floor_of(static_cast<ComputeType<T>>(x)));
    else
      return x;
  }
};
/// The smallest whole number that is not below x.
struct Ceil {
  static constexpr Linearity linearity = Linearity::monotone;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    if constexpr (RealElement<T>)
      return static_cast<T>(detail::ceil_of(static_cast<ComputeType<T>>(x)));
    else
      return x;
  }
};
/// The nearest whole number; halves go to the even one (as NumPy's round).
struct Round {
  static constexpr Linearity linearity = Linearity::monotone;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    if constexpr (RealElement<T>)
      return static_cast<T>(Kokkos::rint(static_cast<ComputeType<T>>(x)));
    else
      return x;
  }
};
/// x without its fraction.
struct Trunc {
  static constexpr Linearity linearity = Linearity::monotone;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    if constexpr (RealElement<T>) {
      using W = ComputeType<T>;
      const W wide = static_cast<W>(x);
      return static_cast<T>(Kokkos::copysign(detail::floor_of(Kokkos::fabs(wide)), wide));
    } else {
      return x;
    }
  }
};
/// -1, 0 or 1; zeros keep their sign and NaN stays.
struct Sign {
  static constexpr Linearity linearity = Linearity::monotone;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    if (x > T{}) return T(1);
    if constexpr (RealElement<T> || std::is_signed_v<T>)
      if (x < T{}) return T(-1);
    return x;
  }
};
/// min(max(x, low), high): NaN if any of the three is, high where low > high.
struct Clamp {
  template <OrderedElement T>
  KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x, T low, T high) const {
    return Minimum{}(Maximum{}(x, low), high);
  }
};
/// Clamps between two numbers.
template <class T> struct ClampTo {
  static constexpr Linearity linearity = Linearity::monotone;
  T low, high;
  template <std::same_as<T> A>
  requires std::is_invocable_v<const Clamp&, A, A, A> KOKKOS_FORCEINLINE_FUNCTION constexpr T
  operator()(A x) const {
    return Clamp{}(x, low, high);
  }
};

}  // namespace fn
}  // namespace tessera
