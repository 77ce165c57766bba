// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Circular and hyperbolic functions, of radians. On the host sin, cos and tan use
/// detail/float_trigonometry.hpp and double_trigonometry.hpp, sinh, cosh and tanh
/// float_exponential.hpp, float_math.hpp, double_exponential.hpp and double_math.hpp; these files
/// state the errors. asin, acos and atan use double_inverse_trigonometry.hpp, of floats too; where
/// products and sums are not fused (TESSERA_FUSED), atan is libm's, as atan2, asinh, acosh and
/// atanh are everywhere.
///
///     fn::Sin{}(0.5f);   fn::Atan2{}(1.0, -1.0)      // 3 pi / 4
#include <tessera/kernel/functions/detail/double_inverse_trigonometry.hpp>
#include <tessera/kernel/functions/detail/double_trigonometry.hpp>
#include <tessera/kernel/functions/exponential.hpp>

namespace tessera {
namespace detail {

KOKKOS_FORCEINLINE_FUNCTION double tanh_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_tanh(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::tanh(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double sinh_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_sinh(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::sinh(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double cosh_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_cosh(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::cosh(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float tanh_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_tanh(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::tanh(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float sinh_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_sinh(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::sinh(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float cosh_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_cosh(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::cosh(x);))
}
template <class T> KOKKOS_FORCEINLINE_FUNCTION T asin_of(T x) {
  KOKKOS_IF_ON_HOST((return static_cast<T>(fast_asin(static_cast<double>(x)));))
  KOKKOS_IF_ON_DEVICE((return Kokkos::asin(x);))
}
template <class T> KOKKOS_FORCEINLINE_FUNCTION T acos_of(T x) {
  KOKKOS_IF_ON_HOST((return static_cast<T>(fast_acos(static_cast<double>(x)));))
  KOKKOS_IF_ON_DEVICE((return Kokkos::acos(x);))
}
template <class T> KOKKOS_FORCEINLINE_FUNCTION T atan_of(T x) {
#if defined(TESSERA_FUSED)
  KOKKOS_IF_ON_HOST((return static_cast<T>(fast_atan(static_cast<double>(x)));))
  KOKKOS_IF_ON_DEVICE((return Kokkos::atan(x);))
#else
  return Kokkos::atan(x);
#endif
}
KOKKOS_FORCEINLINE_FUNCTION bool is_common_angle(float x) {
  const auto bits = static_cast<std::int32_t>(bits_of(x) & 0x7fffffffu);  // false for NaN
  return bits <= static_cast<std::int32_t>(bits_of(common_angle));
}
KOKKOS_FORCEINLINE_FUNCTION bool is_common_angle(double x) {
  const double bound = static_cast<double>(common_angle);
  return (x <= bound) & (x >= -bound);  // false for NaN
}

}  // namespace detail

namespace fn {

struct Sin : detail::OfReal<Sin> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    KOKKOS_IF_ON_HOST((if (detail::is_common_angle(x)) return detail::fast_sin(x);))
    return Kokkos::sin(x);
  }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short(float x) {
    KOKKOS_IF_ON_HOST((if (detail::is_common_angle(x)) return of_short_common(x);))
    return Kokkos::sin(x);
  }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short_common(float x) { return detail::short_sin(x); }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::is_common_angle(static_cast<ComputeType<T>>(x));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x) const {
    return detail::fast_sin(static_cast<ComputeType<T>>(x));
  }
};
struct Cos : detail::OfReal<Cos> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    KOKKOS_IF_ON_HOST((if (detail::is_common_angle(x)) return detail::fast_cos(x);))
    return Kokkos::cos(x);
  }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short(float x) {
    KOKKOS_IF_ON_HOST((if (detail::is_common_angle(x)) return of_short_common(x);))
    return Kokkos::cos(x);
  }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short_common(float x) { return detail::short_cos(x); }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::is_common_angle(static_cast<ComputeType<T>>(x));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x) const {
    return detail::fast_cos(static_cast<ComputeType<T>>(x));
  }
};
struct Tan : detail::OfReal<Tan> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    KOKKOS_IF_ON_HOST((if (detail::is_common_angle(x)) return detail::fast_tan(x);))
    return Kokkos::tan(x);
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::is_common_angle(static_cast<ComputeType<T>>(x));
  }
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> by(CommonWay, T x) const {
    return detail::fast_tan(static_cast<ComputeType<T>>(x));
  }
};
struct Asin : detail::OfReal<Asin> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::asin_of(x); }
};
struct Acos : detail::OfReal<Acos> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::acos_of(x); }
};
struct Atan : detail::OfReal<Atan> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::atan_of(x); }
};
/// The angle of the point (x, y), in (-pi, pi]; y comes first, as in C.
struct Atan2 {
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T y, T x) const {
    using W = ComputeType<T>;
    return static_cast<T>(Kokkos::atan2(static_cast<W>(y), static_cast<W>(x)));
  }
};
struct Sinh : detail::OfReal<Sinh> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::sinh_of(x); }
};
struct Cosh : detail::OfReal<Cosh> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::cosh_of(x); }
};
struct Tanh : detail::OfReal<Tanh> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::tanh_of(x); }
};
struct Asinh : detail::OfReal<Asinh> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return Kokkos::asinh(x); }
};
/// NaN below 1
struct Acosh : detail::OfReal<Acosh> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return Kokkos::acosh(x); }
};
/// NaN beyond -1 and 1
struct Atanh : detail::OfReal<Atanh> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return Kokkos::atanh(x); }
};

}  // namespace fn
}  // namespace tessera
