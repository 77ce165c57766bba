// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of kernel/functions/activation.hpp.
///
///     Derivative<fn::Gelu, 0>::of(f)(x)     // fn::GeluGradient
#include <tessera/grad/derivatives/trigonometry.hpp>
#include <tessera/kernel/functions/activation.hpp>

namespace tessera {
namespace fn {
/// 2 / sqrt(pi) e^(-x^2), and its derivative from it and x
struct ErfSlope : detail::OfValues<ErfSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(1.12837916709551257390) * detail::exp_of(-x * x);
  }
};
struct ErfCurvature : detail::OfValues<ErfCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T d, T x) { return T(-2) * x * d; }
};
/// The second derivative of gelu: e^(-x^2/2) / sqrt(2 pi) (2 - x^2)
struct GeluCurvature : detail::OfValues<GeluCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return T(0.39894228040143267794) * detail::exp_of(T(-0.5) * x * x) * (T(2) - x * x);
  }
};
/// The derivatives of gelu by the tanh.
struct GeluTanhSlope : detail::OfValues<GeluTanhSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    const T c = T(0.79788456080286535588), a = T(0.044715);
    const T t = detail::tanh_of(c * (x + a * x * x * x));
    return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * c * (T(1) + T(3) * a * x * x);
  }
};
struct GeluTanhCurvature : detail::OfValues<GeluTanhCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    const T c = T(0.79788456080286535588), a = T(0.044715);
    const T t = detail::tanh_of(c * (x + a * x * x * x));
    const T slope = c * (T(1) + T(3) * a * x * x), bend = T(6) * c * a * x;
    return (T(1) - t * t) * (slope + T(0.5) * x * (bend - T(2) * t * slope * slope));
  }
};
/// r (1 - r) of sigmoid's result, and its derivative
struct SigmoidSlope : detail::OfValues<SigmoidSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return r * (T(1) - r); }
};
struct OneMinusTwice : detail::OfValues<OneMinusTwice> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r) { return T(1) - T(2) * r; }
};
/// The derivatives of silu.
struct SiluSlope : detail::OfValues<SiluSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    const T s = detail::sigmoid_of(x);
    return s * (T(1) + x * (T(1) - s));
  }
};
struct SiluCurvature : detail::OfValues<SiluCurvature> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    const T s = detail::sigmoid_of(x);
    return s * (T(1) - s) * (T(2) + x * (T(1) - T(2) * s));
  }
};
}  // namespace fn

template <> struct Derivative<fn::Erf, 0> : SlopeBy<fn::ErfSlope, 0> {};
template <> struct Derivative<fn::ErfSlope, 0> : SlopeBy<fn::ErfCurvature, reads_result, 0> {};
template <> struct Derivative<fn::Relu, 0> : SlopeBy<fn::ReluGradient, reads_result> {};
template <> struct Derivative<fn::ReluGradient, 0> : ZeroSlope {};
template <> struct Derivative<fn::Gelu, 0> : SlopeBy<fn::GeluGradient, 0> {};
template <> struct Derivative<fn::GeluGradient, 0> : SlopeBy<fn::GeluCurvature, 0> {};
template <> struct Derivative<fn::GeluTanh, 0> : SlopeBy<fn::GeluTanhSlope, 0> {};
template <> struct Derivative<fn::GeluTanhSlope, 0> : SlopeBy<fn::GeluTanhCurvature, 0> {};
template <> struct Derivative<fn::Sigmoid, 0> : SlopeBy<fn::SigmoidSlope, reads_result> {};
template <> struct Derivative<fn::SigmoidSlope, 0> : SlopeBy<fn::OneMinusTwice, 0> {};
template <> struct Derivative<fn::OneMinusTwice, 0> : WholeSlope<-2> {};
template <> struct Derivative<fn::Silu, 0> : SlopeBy<fn::SiluSlope, 0> {};
template <> struct Derivative<fn::SiluSlope, 0> : SlopeBy<fn::SiluCurvature, 0> {};

}  // namespace tessera
