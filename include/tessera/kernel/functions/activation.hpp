// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Activation functions of layers, and the error function. Floats as in exponential.hpp.
///
///     fn::Sigmoid{}(0.0f) == 0.5f
#include <tessera/kernel/functions/trigonometry.hpp>

namespace tessera {
namespace detail {

KOKKOS_FORCEINLINE_FUNCTION double erf_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_erf(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::erf(x);))
}
KOKKOS_FORCEINLINE_FUNCTION double sigmoid_of(double x) {
  const double e = exp_below(-Kokkos::fabs(x));
  return choose(x < 0.0, e, 1.0) / (1.0 + e);
}
KOKKOS_FORCEINLINE_FUNCTION float erf_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_erf(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::erf(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float sigmoid_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_sigmoid(x);))
  KOKKOS_IF_ON_DEVICE(
      (const float e = Kokkos::exp(-Kokkos::fabs(x)); return (x < 0.0f ? e : 1.0f) / (1.0f + e);))
}

KOKKOS_FORCEINLINE_FUNCTION double gelu_of(double x) {
  KOKKOS_IF_ON_HOST((return fast_gelu(x);))
  KOKKOS_IF_ON_DEVICE((const double y = x < -40.0 ? -40.0 : x;
                       return 0.5 * y * Kokkos::erfc(y * -0.70710678118654752440);))
}
KOKKOS_FORCEINLINE_FUNCTION float gelu_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_gelu(x);))
  KOKKOS_IF_ON_DEVICE((return common_gelu(x) ? gelu_of_common(x) : gelu_far_below(x);))
}

/// x, or the bound that it is beyond; NaN stays. Where a derivative changes no more beyond some
/// bounds this keeps zero times infinity out of its formula.
template <class T> KOKKOS_FORCEINLINE_FUNCTION T within(T x, T bound) {
  return choose(x > bound, bound, choose(x < -bound, -bound, x));
}

}  // namespace detail

namespace fn {

/// The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x.
struct Erf : detail::OfReal<Erf> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::erf_of(x); }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short(float x) {
    KOKKOS_IF_ON_HOST((return detail::short_erf(x);))
    KOKKOS_IF_ON_DEVICE((return of(x);))
  }
};
/// max(x, 0); NaN stays
struct Relu {
  static constexpr Linearity linearity = Linearity::monotone;
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return x < T{} ? T{} : x;
  }
};
/// The derivative of relu: 1 where x > 0, else 0.
struct ReluGradient {
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return x > T{} ? T(1) : T{};
  }
};
/// x (1 + erf(x / sqrt 2)) / 2, Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016); JAX's
/// approximate=False.
struct Gelu : detail::OfReal<Gelu> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::gelu_of(x); }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short(float x) {
    KOKKOS_IF_ON_HOST((return detail::short_gelu(x);))
    KOKKOS_IF_ON_DEVICE((return detail::common_gelu(x) ? detail::short_gelu_of_common(x)
                                                       : detail::gelu_far_below(x);))
  }
  KOKKOS_FORCEINLINE_FUNCTION static float of_short_common(float x) {
    return detail::short_gelu_of_common(x);
  }
  template <detail::FloatElement T> KOKKOS_FORCEINLINE_FUNCTION bool fits(CommonWay, T x) const {
    return detail::common_gelu(static_cast<float>(x));
  }
  template <detail::FloatElement T> KOKKOS_FORCEINLINE_FUNCTION float by(CommonWay, T x) const {
    return detail::gelu_of_common(static_cast<float>(x));
  }
};
/// The derivative of gelu: (1 + erf(x / sqrt 2)) / 2 + x e^(-x^2/2) / sqrt(2 pi). Beyond 40 it
/// changes no more, also in double.
struct GeluGradient : detail::OfReal<GeluGradient> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T value) {
    const T x = detail::within(value, T(40));
    const T density = T(0.39894228040143267794) * detail::exp_of(T(-0.5) * x * x);
    return T(0.5) * (T{1} + detail::erf_of(x * T(0.70710678118654752440))) + x * density;
  }
};
/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, the same paper's approximation; JAX's
/// approximate=True.
struct GeluTanh : detail::OfReal<GeluTanh> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T value) {
    const T x = value < T(-20) ? T(-20) : value;  // from there on -0; a NaN passes
    return T(0.5) * x *
           (T{1} + detail::tanh_of(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
};
/// 1 / (1 + e^-x)
struct Sigmoid : detail::OfReal<Sigmoid> {
  static constexpr Linearity linearity = Linearity::monotone;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return detail::sigmoid_of(x); }
};
/// x / (1 + e^-x), also called swish; -0 at minus infinity, its limit. Source: Elfwing, Uchibe and
/// Doya, "Sigmoid-Weighted Linear Units" (2017).
struct Silu : detail::OfReal<Silu> {
  /// Below -1000 the sigmoid is 0 in double.
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) {
    return detail::choose(x < T(-1000), T(-1000), x) * detail::sigmoid_of(x);
  }
};

}  // namespace fn
}  // namespace tessera
