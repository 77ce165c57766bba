// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of kernel/functions/exponential.hpp.
///
///     Derivative<fn::Exp, 0>::reads[0] == reads_result     // e^x itself
///
/// Laws: the power's are JAX's at zero: by x 0 where y is 0, by y 0 where x is 0.
#include <tessera/grad/derivatives/arithmetic.hpp>
#include <tessera/kernel/functions/activation.hpp>

namespace tessera {
namespace detail {
inline constexpr double log_2 = 0.69314718055994530942;
inline constexpr double log_10 = 2.30258509299404568402;
template <class T> KOKKOS_FORCEINLINE_FUNCTION T power(T x, T y) { return fn::Pow{}(x, y); }
}  // namespace detail

namespace fn {
/// r log 2
struct TimesLog2 : detail::OfValues<TimesLog2> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return r * T(detail::log_2); }
};
/// r + 1
struct PlusOne : detail::OfValues<PlusOne> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return r + T(1); }
};
/// 1 / (1 + x)
struct ReciprocalOfNext : detail::OfValues<ReciprocalOfNext> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return T(1) / (T(1) + x); }
};
/// 1 / (x log b)
template <int Base> struct ReciprocalLog : detail::OfValues<ReciprocalLog<Base>> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(1) / (x * T(Base == 2 ? detail::log_2 : detail::log_10));
  }
};
/// 1 / (2 r)
struct HalfReciprocal : detail::OfValues<HalfReciprocal> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return T(0.5) / r; }
};
/// -r^3 / 2, and its derivative
struct NegativeHalfCube : detail::OfValues<NegativeHalfCube> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return T(-0.5) * r * r * r; }
};
struct NegativeHalfCubeSlope : detail::OfValues<NegativeHalfCubeSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return T(-1.5) * r * r; }
};
/// 1 / (3 r^2), and its derivative from it and r
struct ThirdOfSquare : detail::OfValues<ThirdOfSquare> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return T(1) / (T(3) * r * r); }
};
struct ThirdOfSquareSlope : detail::OfValues<ThirdOfSquareSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T d, T r) { return T(-2) * d / r; }
};
/// y x^(y - 1), and its derivatives
struct PowerSlope : detail::OfValues<PowerSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T y) {
    return y == T(0) ? T(0) : y * detail::power(x, y - T(1));
  }
};
struct PowerCurvature : detail::OfValues<PowerCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T y) {
    const T factor = y * (y - T(1));
    return factor == T(0) ? T(0) : factor * detail::power(x, y - T(2));
  }
};
struct PowerSlopeByPower : detail::OfValues<PowerSlopeByPower> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T y) {
    const T log = x == T(0) ? T(0) : detail::log_of(x);
    return detail::power(x, y - T(1)) * (T(1) + y * log);
  }
};
/// log(x) r, and its derivatives
struct PowerLog : detail::OfValues<PowerLog> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r, T x) {
    return x == T(0) ? T(0) : detail::log_of(x) * r;
  }
};
struct LogOrZero : detail::OfValues<LogOrZero> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return x == T(0) ? T(0) : detail::log_of(x);
  }
};
struct QuotientOrZero : detail::OfValues<QuotientOrZero> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r, T x) {
    return x == T(0) ? T(0) : r / x;
  }
};
/// Is 1 / (1 + e^(y - x)), and 1/2 where x and y are equal, infinite ones too. It reads the
/// operands, since the result may be rounded far more coarsely than their difference.
struct SigmoidOfDifference : detail::OfValues<SigmoidOfDifference> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T y) {
    return x == y ? T(0.5) : detail::sigmoid_of(x - y);
  }
};
/// Factor r (1 - r), of a sigmoid r
template <int Factor> struct SigmoidSlope : detail::OfValues<SigmoidSlope<Factor>> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) {
    return T(Factor) * r * (T(1) - r);
  }
};
/// Factor (1 - 2 r)
template <int Factor> struct SigmoidCurvature : detail::OfValues<SigmoidCurvature<Factor>> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) {
    return T(Factor) * (T(1) - T(2) * r);
  }
};
}  // namespace fn

template <> struct Derivative<fn::Exp, 0> : SlopeBy<fn::Same, reads_result> {};
template <> struct Derivative<fn::Exp2, 0> : SlopeBy<fn::TimesLog2, reads_result> {};
template <> struct Derivative<fn::TimesLog2, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{};
  KOKKOS_FORCEINLINE_FUNCTION static fn::Constant<double> of(const fn::TimesLog2&) {
    return fn::Constant<double>{detail::log_2};
  }
};
template <> struct Derivative<fn::Expm1, 0> : SlopeBy<fn::PlusOne, reads_result> {};
template <> struct Derivative<fn::PlusOne, 0> : UnitSlope {};
template <> struct Derivative<fn::Log, 0> : SlopeBy<fn::Reciprocal, 0> {};
template <> struct Derivative<fn::Log1p, 0> : SlopeBy<fn::ReciprocalOfNext, 0> {};
template <>
struct Derivative<fn::ReciprocalOfNext, 0> : SlopeBy<fn::NegativeSquare, reads_result> {};
template <> struct Derivative<fn::Log2, 0> : SlopeBy<fn::ReciprocalLog<2>, 0> {};
template <> struct Derivative<fn::Log10, 0> : SlopeBy<fn::ReciprocalLog<10>, 0> {};
template <int Base>
struct Derivative<fn::ReciprocalLog<Base>, 0> : SlopeBy<fn::NegativeQuotient, reads_result, 0> {};
template <> struct Derivative<fn::Sqrt, 0> : SlopeBy<fn::HalfReciprocal, reads_result> {};
template <>
struct Derivative<fn::HalfReciprocal, 0> : SlopeBy<fn::NegativeQuotient, reads_result, 0> {};
template <> struct Derivative<fn::Rsqrt, 0> : SlopeBy<fn::NegativeHalfCube, reads_result> {};
template <> struct Derivative<fn::NegativeHalfCube, 0> : SlopeBy<fn::NegativeHalfCubeSlope, 0> {};
template <> struct Derivative<fn::Cbrt, 0> : SlopeBy<fn::ThirdOfSquare, reads_result> {};
template <>
struct Derivative<fn::ThirdOfSquare, 0> : SlopeBy<fn::ThirdOfSquareSlope, reads_result, 0> {};
template <> struct Derivative<fn::Pow, 0> : SlopeBy<fn::PowerSlope, 0, 1> {};
template <> struct Derivative<fn::Pow, 1> : SlopeBy<fn::PowerLog, reads_result, 0> {};
template <> struct Derivative<fn::PowerSlope, 0> : SlopeBy<fn::PowerCurvature, 0, 1> {};
template <> struct Derivative<fn::PowerSlope, 1> : SlopeBy<fn::PowerSlopeByPower, 0, 1> {};
template <> struct Derivative<fn::PowerLog, 0> : SlopeBy<fn::LogOrZero, 1> {};
template <> struct Derivative<fn::PowerLog, 1> : SlopeBy<fn::QuotientOrZero, 0, 1> {};
template <> struct Derivative<fn::LogAddExp, 0> : SlopeBy<fn::SigmoidOfDifference, 0, 1> {};
template <> struct Derivative<fn::LogAddExp, 1> : SlopeBy<fn::SigmoidOfDifference, 1, 0> {};
template <>
struct Derivative<fn::SigmoidOfDifference, 0> : SlopeBy<fn::SigmoidSlope<1>, reads_result> {};
template <>
struct Derivative<fn::SigmoidOfDifference, 1> : SlopeBy<fn::SigmoidSlope<-1>, reads_result> {};
template <int Factor>
struct Derivative<fn::SigmoidSlope<Factor>, 0> : SlopeBy<fn::SigmoidCurvature<Factor>, 0> {};
template <int Factor>
struct Derivative<fn::SigmoidCurvature<Factor>, 0> : detail::WholeSlope<-2 * Factor> {};

}  // namespace tessera
