// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The functions of layer norm and RMS norm, forward and back, of elements x, the inverse of their
/// row's deviation, and its mean, which RMS norm has not; half types are computed in float.
///
///     // (x - mean) inverse scale + bias
///
/// Laws: each is a polynomial, whose derivatives it brings, so that norms have second derivatives.
#include <string_view>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera::fn {

struct Normalized {
  static constexpr std::string_view name = "normalized";
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, ComputeType<T> mean, ComputeType<T> inverse,
                                           T scale, T bias) const {
    return static_cast<T>((C(x) - mean) * inverse * C(scale) + C(bias));
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T x, ComputeType<T> mean, ComputeType<T> inverse,
                                           T scale, T) const {
    if constexpr (I == 0) return inverse * C(scale);
    if constexpr (I == 1) return -inverse * C(scale);
    if constexpr (I == 2) return (C(x) - mean) * C(scale);
    if constexpr (I == 3) return (C(x) - mean) * inverse;
    return C(1);
  }
};
/// dy (x - mean) inverse: of which the gradient of the scale is the sum.
struct ScaleGradient {
  static constexpr std::string_view name = "gradient of a scale";
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C operator()(T dy, T x, ComputeType<T> inverse,
                                           ComputeType<T> mean = {}) const {
    return C(dy) * (C(x) - mean) * inverse;
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T dy, T x, ComputeType<T> inverse,
                                           ComputeType<T> mean = {}) const {
    if constexpr (I == 0) return (C(x) - mean) * inverse;
    if constexpr (I == 1) return C(dy) * inverse;
    if constexpr (I == 2) return C(dy) * (C(x) - mean);
    return -C(dy) * inverse;
  }
};
/// The gradient of x, where b is the row's sum of dy scale (x - mean) inverse, and a, which RMS
/// norm has not, its sum of dy scale: inverse (dy scale - a / n - (x - mean) inverse b / n).
struct NormGradient {
  static constexpr std::string_view name = "gradient of a norm";
  double over_n;
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T dy, T x, ComputeType<T> inverse, T scale,
                                           ComputeType<T> b, ComputeType<T> mean = {},
                                           ComputeType<T> a = {}) const {
    const C n = static_cast<C>(over_n), h = (C(x) - mean) * inverse;
    return static_cast<T>(inverse * (C(dy) * C(scale) - n * (a + h * b)));
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T dy, T x, ComputeType<T> inverse, T scale,
                                           ComputeType<T> b, ComputeType<T> mean = {},
                                           ComputeType<T> a = {}) const {
    const C n = static_cast<C>(over_n), h = (C(x) - mean) * inverse;
    if constexpr (I == 0) return inverse * C(scale);
    if constexpr (I == 1) return -inverse * inverse * n * b;
    if constexpr (I == 2) return C(dy) * C(scale) - n * (a + C(2) * h * b);
    if constexpr (I == 3) return inverse * C(dy);
    if constexpr (I == 4) return -inverse * n * h;
    if constexpr (I == 5) return inverse * inverse * n * b;
    return -inverse * n;
  }
};

}  // namespace tessera::fn
