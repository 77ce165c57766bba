// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of kernel/functions/activation.hpp.
///
///     Derivative<fn::Gelu, 0>::of(f)(x)     // fn::GeluGradient
#include <tessera/grad/derivatives/exponential.hpp>
#include <tessera/kernel/functions/activation.hpp>

namespace tessera {
namespace detail {
/// What gelu with tanh, x s for s = sigmoid(2 u), is made of: s, s (1 - s) and u's derivatives.
/// Beyond 24 s (1 - s) is 0 in double, and x there counts as 24.
template <class T> struct GeluTanhParts {
  T x, s, rest, slope, curvature;
  KOKKOS_FORCEINLINE_FUNCTION explicit GeluTanhParts(T value) : x(within(value, T(24))) {
    const T c = T(0.79788456080286535588), a = T(0.044715);
    s = sigmoid_of(T(2) * c * (x + a * x * x * x));
    rest = s * (T(1) - s);
    slope = c * (T(1) + T(3) * a * x * x);
    curvature = T(6) * c * a * x;
  }
};
}  // namespace detail

namespace fn {
/// Whether x > 0.
struct IsPositive {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION bool operator()(T x) const { return x > T{}; }
};
/// 2 / sqrt(pi) e^(-x^2), and its derivative from it and x. Beyond 40 both are 0 in double.
struct ErfSlope : detail::OfValues<ErfSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(1.12837916709551257390) * detail::exp_of(-x * x);
  }
};
struct ErfCurvature : detail::OfValues<ErfCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T d, T x) {
    return T(-2) * detail::within(x, T(40)) * d;
  }
};
/// The derivative of GeluGradient, e^(-x^2/2) / sqrt(2 pi) (2 - x^2), and its own. Beyond 40 both
/// are 0 in double.
struct GeluCurvature : detail::OfValues<GeluCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T value) {
    const T x = detail::within(value, T(40));
    return T(0.39894228040143267794) * detail::exp_of(T(-0.5) * x * x) * (T(2) - x * x);
  }
};
struct GeluCurvatureSlope : detail::OfValues<GeluCurvatureSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T value) {
    const T x = detail::within(value, T(40));
    return T(0.39894228040143267794) * detail::exp_of(T(-0.5) * x * x) * x * (x * x - T(4));
  }
};
/// s + 2 x s (1 - s) u' of GeluTanh, x s with s = (1 + tanh u) / 2 = sigmoid(2 u)
struct GeluTanhSlope : detail::OfValues<GeluTanhSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    const detail::GeluTanhParts<T> at(x);
    return at.s + T(2) * at.x * at.rest * at.slope;
  }
};
/// 4 s (1 - s) (u' + x (u'' / 2 - (2 s - 1) u'^2))
struct GeluTanhCurvature : detail::OfValues<GeluTanhCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    const detail::GeluTanhParts<T> at(x);
    const T bend = T(0.5) * at.curvature - (T(2) * at.s - T(1)) * at.slope * at.slope;
    return T(4) * at.rest * (at.slope + at.x * bend);
  }
};
/// s (1 + x (1 - s)) for s = sigmoid(x), and its derivative s (1 - s) (2 + x (1 - 2 s))
struct SiluSlope : detail::OfValues<SiluSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T value) {
    const T x = detail::within(value, T(1000)), s = detail::sigmoid_of(x);
    return s * (T(1) + x * (T(1) - s));
  }
};
struct SiluCurvature : detail::OfValues<SiluCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T value) {
    const T x = detail::within(value, T(1000)), s = detail::sigmoid_of(x);
    return s * (T(1) - s) * (T(2) + x * (T(1) - T(2) * s));
  }
};
}  // namespace fn

template <> struct Derivative<fn::Erf, 0> : SlopeBy<fn::ErfSlope, 0> {};
template <> struct Derivative<fn::ErfSlope, 0> : SlopeBy<fn::ErfCurvature, reads_result, 0> {};
template <> struct Derivative<fn::Relu, 0> : SlopeBy<fn::IsPositive, reads_result> {};
template <> struct Derivative<fn::IsPositive, 0> : ZeroSlope {};
template <> struct Derivative<fn::ReluGradient, 0> : ZeroSlope {};
template <> struct Derivative<fn::Gelu, 0> : SlopeBy<fn::GeluGradient, 0> {};
template <> struct Derivative<fn::GeluGradient, 0> : SlopeBy<fn::GeluCurvature, 0> {};
template <> struct Derivative<fn::GeluCurvature, 0> : SlopeBy<fn::GeluCurvatureSlope, 0> {};
template <> struct Derivative<fn::GeluTanh, 0> : SlopeBy<fn::GeluTanhSlope, 0> {};
template <> struct Derivative<fn::GeluTanhSlope, 0> : SlopeBy<fn::GeluTanhCurvature, 0> {};
template <> struct Derivative<fn::Sigmoid, 0> : SlopeBy<fn::SigmoidSlope<1>, reads_result> {};
template <> struct Derivative<fn::Silu, 0> : SlopeBy<fn::SiluSlope, 0> {};
template <> struct Derivative<fn::SiluSlope, 0> : SlopeBy<fn::SiluCurvature, 0> {};

}  // namespace tessera
