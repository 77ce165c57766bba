// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The four operations and functions built from them. Integers wrap instead of overflowing;
/// division by zero gives 0 (and the least integer divided by -1 gives itself).
///
///     fn::Add{}(1.5, 2.0) == 3.5
///     fn::Remainder{}(-7, 3) == 2
#include <tessera/kernel/functions/detail/complex_size.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera::fn {

/// a + b
struct Add {
  static constexpr Linearity linearity = Linearity::linear;
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using W = detail::Wrapping<T>;
    return detail::wrap<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
/// a - b
struct Subtract {
  static constexpr Linearity linearity = Linearity::linear;
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using W = detail::Wrapping<T>;
    return detail::wrap<T>(static_cast<W>(a) - static_cast<W>(b));
  }
};
/// a b
struct Multiply {
  static constexpr Linearity linearity = Linearity::bilinear | Linearity::multiplicative;
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using W = detail::Wrapping<T>;
    return detail::wrap<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
/// a / b; integers are truncated, and a / 0 is 0
struct Divide {
  /// Quotients of integers are truncated, so they are not linear.
  template <class A, class> static constexpr Linearity linearity_on() {
    return IntegerElement<A> ? Linearity::pointwise
                             : Linearity::linear_in_first | Linearity::multiplicative;
  }
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    if constexpr (!IntegerElement<T>) {
      return a / b;
    } else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return Subtract{}(T{}, a);
      return static_cast<T>(a / b);
    }
  }
};
/// a - floor(a / b) b: it has the sign of b (as NumPy's remainder; std::fmod's has the sign of a).
/// For floats as exact as fmod, NaN for b = 0 and for infinite a; integers over 0 give 0.
struct Remainder {
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T a, T b) const {
    if constexpr (RealElement<T>) {
      using W = ComputeType<T>;
      const W over = static_cast<W>(b);
      const W rest = Kokkos::fmod(static_cast<W>(a), over);
      if (rest == W{}) return static_cast<T>(Kokkos::copysign(W{}, over));
      return static_cast<T>((rest < W{}) != (over < W{}) ? rest + over : rest);
    } else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return 0;
        const T rest = static_cast<T>(a % b);
        return static_cast<T>(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
      } else {
        return static_cast<T>(a % b);
      }
    }
  }
};
/// The larger; NaN if either is (as NumPy's maximum), and +0 of two zeros unless both are -0.
struct Maximum {
  static constexpr Linearity linearity = Linearity::maximum;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using C = ComputeType<T>;
    return static_cast<T>(
        detail::Fold<Reduction::max, C>::join(static_cast<C>(a), static_cast<C>(b)));
  }
};
/// The smaller; NaN if either is, and -0 of two zeros unless both are +0.
struct Minimum {
  static constexpr Linearity linearity = Linearity::minimum;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using C = ComputeType<T>;
    return static_cast<T>(
        detail::Fold<Reduction::min, C>::join(static_cast<C>(a), static_cast<C>(b)));
  }
};
/// -x
struct Negate {
  static constexpr Linearity linearity = Linearity::linear;
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    if constexpr (IntegerElement<T>)
      return Subtract{}(T{}, x);
    else
      return -x;
  }
};
/// |x|; the least integer gives itself, a complex number gives a real one
struct Abs {
  template <class T> static constexpr bool computes_much = ComplexElement<T>;
  /// For integers that wrap the sign is lost.
  template <class A> static constexpr Linearity linearity_on() {
    return IntegerElement<A> ? Linearity::pointwise : Linearity::multiplicative;
  }
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    if constexpr (RealElement<T>)
      return static_cast<T>(Kokkos::fabs(static_cast<ComputeType<T>>(x)));
    else
      return x < T{} ? Negate{}(x) : x;
  }
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(complex<T> x) const {
    KOKKOS_IF_ON_HOST((return detail::fast_size(x.re, x.im);))
    KOKKOS_IF_ON_DEVICE((return Kokkos::hypot(x.re, x.im);))
  }
};
/// x^2
struct Square {
  static constexpr Linearity linearity = Linearity::multiplicative;
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return Multiply{}(x, x);
  }
};
/// 1 / x
struct Reciprocal {
  template <class A> static constexpr Linearity linearity_on() {
    return IntegerElement<A> ? Linearity::pointwise : Linearity::multiplicative;
  }
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return Divide{}(T(1), x);
  }
};
/// factor x; exact for integers and a whole factor (wrapping); with another factor integers are
/// multiplied in double, truncated and saturated
struct Scale {
  double factor = 1;
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    if constexpr (!IntegerElement<T>) {
      using C = ComputeType<T>;
      return static_cast<T>(static_cast<C>(x) * detail::from_double<C>(factor));
    } else {
      const T whole = detail::from_double<T>(factor);
      if (factor < detail::beyond<T> && static_cast<double>(whole) == factor)
        return Multiply{}(x, whole);
      return detail::from_double<T>(static_cast<double>(x) * factor);
    }
  }
};
/// x + offset; integers as in Scale, and exact and saturated where a whole offset below 0 is added
/// to unsigned ones
struct Shift {
  double offset = 0;
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    if constexpr (!IntegerElement<T>) {
      using C = ComputeType<T>;
      return static_cast<T>(static_cast<C>(x) + detail::from_double<C>(offset));
    } else {
      if constexpr (std::is_unsigned_v<T>)
        if (offset < 0 && -offset < detail::beyond<T>) {
          const T less = detail::from_double<T>(-offset);
          if (static_cast<double>(less) == -offset)
            return x > less ? static_cast<T>(x - less) : T{};
        }
      const T whole = detail::from_double<T>(offset);
      if (offset < detail::beyond<T> && static_cast<double>(whole) == offset)
        return Add{}(x, whole);
      return detail::from_double<T>(static_cast<double>(x) + offset);
    }
  }
};

}  // namespace tessera::fn
