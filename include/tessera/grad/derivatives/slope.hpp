// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What derivatives of several functions have in common.
///
///     struct OneMinusSquare : detail::OfValues<OneMinusSquare> {
///       template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T y) { return T(1) - y * y; }
///     };
///
/// Laws: half types are computed in float.
#include <tessera/kernel/functions/derivative.hpp>

namespace tessera {
namespace detail {
/// A derivative of values of one type: Self::of.
template <class Self> struct OfValues {
  template <class First, class... Rest>
  KOKKOS_FORCEINLINE_FUNCTION First operator()(const First& x, const Rest&... rest) const {
    using C = ComputeType<First>;
    return static_cast<First>(Self::of(static_cast<C>(x), static_cast<C>(rest)...));
  }
};
}  // namespace detail

namespace fn {
/// A number, whatever the values are.
template <class T> struct Constant {
  T value;
  KOKKOS_FORCEINLINE_FUNCTION T operator()() const { return value; }
};
}  // namespace fn

template <> struct Derivative<fn::Same, 0> : UnitSlope {};

namespace detail {
/// The base of derivatives that are a whole number.
template <int Value> struct WholeSlope {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{};
  template <class F> KOKKOS_FORCEINLINE_FUNCTION static fn::Constant<double> of(const F&) {
    return fn::Constant<double>{Value};
  }
};
}  // namespace detail

}  // namespace tessera
