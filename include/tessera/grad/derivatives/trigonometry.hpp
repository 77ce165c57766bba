// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of kernel/functions/trigonometry.hpp.
///
///     Derivative<fn::Tanh, 0>::of(f)(y)     // 1 - y^2 of the result
#include <tessera/grad/derivatives/exponential.hpp>
#include <tessera/kernel/functions/activation.hpp>
#include <tessera/kernel/functions/trigonometry.hpp>

namespace tessera {
namespace detail {
/// x, or the largest number where it is infinite; NaN stays.
template <class T> KOKKOS_FORCEINLINE_FUNCTION T finite(T x) {
  return within(x, Kokkos::Experimental::finite_max_v<T>);
}
/// Returns w / (w^2 + h^2) without squaring either, whose square could overflow or vanish.
template <class T> KOKKOS_FORCEINLINE_FUNCTION T over_squares(T w, T h) {
  const bool wide = Kokkos::fabs(w) >= Kokkos::fabs(h);
  const T larger = wide ? w : h, ratio = wide ? h / w : w / h;
  return (wide ? T(1) : ratio) / (larger * (T(1) + ratio * ratio));
}
}  // namespace detail

namespace fn {
struct NegativeSine : detail::OfValues<NegativeSine> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return -Sin::of(x); }
};
struct NegativeCosine : detail::OfValues<NegativeCosine> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return -Cos::of(x); }
};
/// 1 + r^2 and 1 - r^2
struct OnePlusSquare : detail::OfValues<OnePlusSquare> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return T(1) + r * r; }
};
struct OneMinusSquare : detail::OfValues<OneMinusSquare> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) {
    return (T(1) - r) * (T(1) + r);
  }
};
/// 1 / sqrt(1 - x^2), its negative, 1 / sqrt(x^2 + 1), and 1 / sqrt(x^2 - 1) of two roots, which
/// are NaN below 1
struct AsinSlope : detail::OfValues<AsinSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(1) / Kokkos::sqrt((T(1) - x) * (T(1) + x));
  }
};
struct AcosSlope : detail::OfValues<AcosSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return -AsinSlope::of(x); }
};
struct AsinhSlope : detail::OfValues<AsinhSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(1) / Kokkos::hypot(x, T(1));
  }
};
struct AcoshSlope : detail::OfValues<AcoshSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(1) / (Kokkos::sqrt(x - T(1)) * Kokkos::sqrt(x + T(1)));
  }
};
/// x d^3 and its negative, of one of these and x. At infinity, where d is 0, so are they.
struct TimesCube : detail::OfValues<TimesCube> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T d, T x) {
    return detail::finite(x) * d * d * d;
  }
};
struct NegativeTimesCube : detail::OfValues<NegativeTimesCube> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T d, T x) {
    return -TimesCube::of(d, x);
  }
};
/// 1 / (1 + x^2), 1 / (1 - x^2), and their derivatives from them and x
struct AtanSlope : detail::OfValues<AtanSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return T(1) / (T(1) + x * x); }
};
struct AtanhSlope : detail::OfValues<AtanhSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(1) / ((T(1) - x) * (T(1) + x));
  }
};
template <int Factor> struct TimesSquare : detail::OfValues<TimesSquare<Factor>> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T d, T x) {
    return T(Factor) * (detail::finite(x) * d) * d;
  }
};
/// The derivatives of the angle of (x, y), y first, are x / h and -y / h where h = x^2 + y^2; those
/// of these are AngleProduct and AngleDifference.
struct AngleByHeight : detail::OfValues<AngleByHeight> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T y, T x) {
    return detail::over_squares(x, y);
  }
};
struct AngleByWidth : detail::OfValues<AngleByWidth> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T y, T x) {
    return -detail::over_squares(y, x);
  }
};
template <int Sign> struct AngleProduct : detail::OfValues<AngleProduct<Sign>> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T y, T x) {
    return T(2 * Sign) * detail::over_squares(x, y) * detail::over_squares(y, x);
  }
};
struct AngleDifference : detail::OfValues<AngleDifference> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T y, T x) {
    const T wide = detail::over_squares(x, y), high = detail::over_squares(y, x);
    return (high - wide) * (high + wide);
  }
};
}  // namespace fn

template <> struct Derivative<fn::Sin, 0> : SlopeBy<fn::Cos, 0> {};
template <> struct Derivative<fn::Cos, 0> : SlopeBy<fn::NegativeSine, 0> {};
template <> struct Derivative<fn::NegativeSine, 0> : SlopeBy<fn::NegativeCosine, 0> {};
template <> struct Derivative<fn::NegativeCosine, 0> : SlopeBy<fn::Sin, 0> {};
template <> struct Derivative<fn::Tan, 0> : SlopeBy<fn::OnePlusSquare, reads_result> {};
template <> struct Derivative<fn::OnePlusSquare, 0> : SlopeBy<fn::Multiple<2>, 0> {};
template <> struct Derivative<fn::Tanh, 0> : SlopeBy<fn::OneMinusSquare, reads_result> {};
template <> struct Derivative<fn::OneMinusSquare, 0> : SlopeBy<fn::Multiple<-2>, 0> {};
template <> struct Derivative<fn::Sinh, 0> : SlopeBy<fn::Cosh, 0> {};
template <> struct Derivative<fn::Cosh, 0> : SlopeBy<fn::Sinh, 0> {};
template <> struct Derivative<fn::Asin, 0> : SlopeBy<fn::AsinSlope, 0> {};
template <> struct Derivative<fn::Acos, 0> : SlopeBy<fn::AcosSlope, 0> {};
template <> struct Derivative<fn::AsinSlope, 0> : SlopeBy<fn::TimesCube, reads_result, 0> {};
template <> struct Derivative<fn::AcosSlope, 0> : SlopeBy<fn::TimesCube, reads_result, 0> {};
template <> struct Derivative<fn::Asinh, 0> : SlopeBy<fn::AsinhSlope, 0> {};
template <> struct Derivative<fn::Acosh, 0> : SlopeBy<fn::AcoshSlope, 0> {};
template <>
struct Derivative<fn::AsinhSlope, 0> : SlopeBy<fn::NegativeTimesCube, reads_result, 0> {};
template <>
struct Derivative<fn::AcoshSlope, 0> : SlopeBy<fn::NegativeTimesCube, reads_result, 0> {};
template <> struct Derivative<fn::Atan, 0> : SlopeBy<fn::AtanSlope, 0> {};
template <> struct Derivative<fn::AtanSlope, 0> : SlopeBy<fn::TimesSquare<-2>, reads_result, 0> {};
template <> struct Derivative<fn::Atanh, 0> : SlopeBy<fn::AtanhSlope, 0> {};
template <> struct Derivative<fn::AtanhSlope, 0> : SlopeBy<fn::TimesSquare<2>, reads_result, 0> {};
template <> struct Derivative<fn::Atan2, 0> : SlopeBy<fn::AngleByHeight, 0, 1> {};
template <> struct Derivative<fn::Atan2, 1> : SlopeBy<fn::AngleByWidth, 0, 1> {};
template <> struct Derivative<fn::AngleByHeight, 0> : SlopeBy<fn::AngleProduct<-1>, 0, 1> {};
template <> struct Derivative<fn::AngleByHeight, 1> : SlopeBy<fn::AngleDifference, 0, 1> {};
template <> struct Derivative<fn::AngleByWidth, 0> : SlopeBy<fn::AngleDifference, 0, 1> {};
template <> struct Derivative<fn::AngleByWidth, 1> : SlopeBy<fn::AngleProduct<1>, 0, 1> {};

}  // namespace tessera
