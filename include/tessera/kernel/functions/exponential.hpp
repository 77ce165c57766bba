// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Exponentials, logarithms, roots and powers. On the host floats use the fast functions of
/// detail/float_math.hpp, float_exponential.hpp and float_power.hpp, which state their errors; on a
/// device the device's own; of half types those of detail/short_math.hpp. Doubles use
/// detail/double_math.hpp, double_exponential.hpp for log2 and log10, and double_power.hpp for pow;
/// cbrt of both uses double_root.hpp, and libm where nothing is fused (TESSERA_FUSED).
///
///     fn::Exp{}(0.0) == 1
///     fn::Pow{}(3, 4) == 81
#include <concepts>

#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/kernel/functions/detail/double_exponential.hpp>
#include <tessera/kernel/functions/detail/double_power.hpp>
#include <tessera/kernel/functions/detail/double_root.hpp>
#include <tessera/kernel/functions/detail/float_power.hpp>
#include <tessera/kernel/functions/detail/power_bounds.hpp>
#include <tessera/kernel/functions/detail/short_math.hpp>

namespace tessera {
namespace detail {

KOKKOS_FORCEINLINE_FUNCTION double exp_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_exp(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp(x);))
}
/// e^x for x <= 0 or NaN.
template <class T> KOKKOS_FORCEINLINE_FUNCTION T exp_below(T x) {
  KOKKOS_IF_ON_HOST((return fast_exp_below(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double exp2_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_exp2(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp2(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double expm1_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_expm1(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::expm1(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double log_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_log(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::log(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double log2_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_log2(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::log2(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double log10_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_log10(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::log10(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double log1p_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_log1p(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::log1p(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float exp_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_exp(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float exp2_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_exp2(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp2(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float expm1_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_expm1(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::expm1(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float log_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_log(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::log(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float log2_of(float x) {
  KOKKOS_IF_ON_HOST((if (common_logarithm(x)) return log2_of_common(x);))
  return Kokkos::log2(x);
}
KOKKOS_FORCEINLINE_FUNCTION float log10_of(float x) {
  KOKKOS_IF_ON_HOST((if (common_logarithm(x)) return log10_of_common(x);))
  return Kokkos::log10(x);
}
KOKKOS_FORCEINLINE_FUNCTION float log1p_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_log1p(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::log1p(x);))
}

template <class T> KOKKOS_FORCEINLINE_FUNCTION T cbrt_of(T x) {
#if defined(TESSERA_FUSED)
  KOKKOS_IF_ON_HOST((return static_cast<T>(fast_cbrt(static_cast<double>(x)));))
  KOKKOS_IF_ON_DEVICE((return Kokkos::cbrt(x);))
#else
  return Kokkos::cbrt(x);
#endif
}

/// Types that have a fast_pow: double only where a product and a sum can be fused.
#if defined(TESSERA_FUSED)
template <class T>
concept HasFastPow = RealElement<T>;
#else
template <class T>
concept HasFastPow = FloatElement<T>;
#endif

/// x to the n for integers, wrapping.
template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T integer_power(T x, T n) {
  if constexpr (std::is_signed_v<T>)
    if (n < 0) {  // 1 / x^-n, truncated
      if (x == 1) return 1;
      if (x == -1) return n % 2 == 0 ? T(1) : T(-1);
      return 0;
    }
  T result = 1;
  for (; n != 0; n = static_cast<T>(n / 2)) {
    if (n % 2 != 0) result = fn::Multiply{}(result, x);
    x = fn::Multiply{}(x, x);
  }
  return result;
}

}  // namespace detail

namespace fn {

/// e^x
struct Exp : detail::OfReal<Exp> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::exp_of(x); }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short(float x) {
    KOKKOS_IF_ON_HOST((return detail::short_exp(x);))
    KOKKOS_IF_ON_DEVICE((return of(x);))
  }
  template <std::floating_point T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::common_exponent(x);
  }
  template <std::floating_point T> KOKKOS_FORCEINLINE_FUNCTION T by(CommonWay, T x) const {
    return detail::power_of_common(detail::exp_parts(x));
  }
};
/// 2^x
struct Exp2 : detail::OfReal<Exp2> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::exp2_of(x); }
  template <std::floating_point T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::common_exponent(x);
  }
  template <std::floating_point T> KOKKOS_FORCEINLINE_FUNCTION T by(CommonWay, T x) const {
    return detail::power_of_common(detail::exp2_parts(x));
  }
};
/// e^x - 1, exact near 0
struct Expm1 : detail::OfReal<Expm1> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::expm1_of(x); }
};
/// The natural logarithm; NaN below 0, so it is not monotone on all numbers.
struct Log : detail::OfReal<Log> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::log_of(x); }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::common_logarithm(static_cast<ComputeType<T>>(x));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x) const {
    return detail::log_of_normal(static_cast<ComputeType<T>>(x));
  }
};
/// log(1 + x), exact near 0
struct Log1p : detail::OfReal<Log1p> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::log1p_of(x); }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::common_log1p(static_cast<ComputeType<T>>(x));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x) const {
    return detail::log1p_of_common(static_cast<ComputeType<T>>(x));
  }
};
/// The logarithm to base 2.
struct Log2 : detail::OfReal<Log2> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::log2_of(x); }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::common_logarithm(static_cast<ComputeType<T>>(x));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x) const {
    return detail::log2_of_common(static_cast<ComputeType<T>>(x));
  }
};
/// The logarithm to base 10.
struct Log10 : detail::OfReal<Log10> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::log10_of(x); }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::common_logarithm(static_cast<ComputeType<T>>(x));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x) const {
    return detail::log10_of_common(static_cast<ComputeType<T>>(x));
  }
};
/// The square root; NaN below 0.
struct Sqrt : detail::OfReal<Sqrt> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return Kokkos::sqrt(x); }
};
/// 1 / sqrt(x), rounded twice
struct Rsqrt : detail::OfReal<Rsqrt> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return T(1) / Kokkos::sqrt(x); }
};
/// The cube root.
struct Cbrt : detail::OfReal<Cbrt> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::cbrt_of(x); }
};
/// x^y. Floats: C's pow in the special cases. Integers wrap; a negative exponent gives 1 over the
/// power, truncated, with 1 / 0 taken as 0.
struct Pow {
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T y) const {
    if constexpr (IntegerElement<T>)
      return detail::integer_power(x, y);
    else
      return static_cast<T>(of(static_cast<ComputeType<T>>(x), static_cast<ComputeType<T>>(y)));
  }
  template <detail::HasFastPow T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x, T y) const {
    return detail::common_power(static_cast<ComputeType<T>>(x), static_cast<ComputeType<T>>(y));
  }
  template <detail::HasFastPow T>
  KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x, T y) const {
    return detail::fast_pow(static_cast<ComputeType<T>>(x), static_cast<ComputeType<T>>(y));
  }
#if defined(TESSERA_FUSED)
  template <std::floating_point T>
  KOKKOS_FORCEINLINE_FUNCTION bool fits(SimpleWay, T x, T y) const {
    return detail::positive_power(x, y);
  }
  template <std::floating_point T> KOKKOS_FORCEINLINE_FUNCTION T by(SimpleWay, T x, T y) const {
    return detail::pow_of_positive(x, y);
  }
  /// x and y are arrays, or detail::Alike.
  template <class X, class Y>
  TESSERA_INLINE detail::Fit bounds(SimpleWay, Index n, const X x, const Y y)
      const requires std::floating_point<std::remove_cvref_t<decltype(x[0])>> {
    return detail::power_bounds<std::remove_cvref_t<decltype(x[0])>>(n, x, y);
  }
  template <std::same_as<float> T>
  KOKKOS_FORCEINLINE_FUNCTION bool fits(ModerateWay, T x, T y) const {
    return detail::moderate_power(x, y);
  }
  template <std::same_as<float> T> KOKKOS_FORCEINLINE_FUNCTION T by(ModerateWay, T x, T y) const {
    return detail::pow_of_moderate(x, y);
  }
#endif

 private:
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T y) {
    KOKKOS_IF_ON_HOST((
        if constexpr (detail::HasFastPow<T>) {
          if (detail::common_power(x, y)) return detail::fast_pow(x, y);
        } if constexpr (std::is_same_v<T, float>) {
          if (detail::moderate_power(x, y)) return detail::pow_in_double(x, y);
        }))
    return Kokkos::pow(x, y);
  }
};

/// log(e^x + e^y), without overflow: NumPy's logaddexp, for infinities and NaN too. -infinity is
/// its identity.
struct LogAddExp {
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T y) const {
    return static_cast<T>(of(static_cast<ComputeType<T>>(x), static_cast<ComputeType<T>>(y)));
  }

 private:
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T y) {
    if (x == y) return x + static_cast<T>(0.69314718055994530942);  // log 2; equal infinities too
    const T way = x - y;
    if (way > 0) return x + detail::log1p_of(detail::exp_of(-way));
    return way < 0 ? y + detail::log1p_of(detail::exp_of(way)) : way;  // NaN
  }
};

}  // namespace fn
}  // namespace tessera
