// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of kernel/functions/arithmetic.hpp.
///
///     Derivative<fn::Divide, 0>::of(f)(y)     // of x / y by x: 1 / y
///
/// Laws: where the larger of two is asked for and both are equal, each counts one half, as in JAX.
#include <tessera/grad/derivatives/slope.hpp>
#include <tessera/kernel/functions/rounding.hpp>
#include <tessera/op/elements/pull_backs.hpp>

namespace tessera {
namespace fn {
/// -r / y
struct NegativeQuotient : detail::OfValues<NegativeQuotient> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T r, T y) { return -(r / y); }
};
/// -1 / y
struct NegativeReciprocal : detail::OfValues<NegativeReciprocal> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T y) { return -(T(1) / y); }
};
/// -x^2
struct NegativeSquare : detail::OfValues<NegativeSquare> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return -(x * x); }
};
/// Factor x, for a small whole factor.
template <int Factor> struct Multiple : detail::OfValues<Multiple<Factor>> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x) { return T(Factor) * x; }
};
/// 1 where x is above y (Above) or below it, 1/2 where they are equal.
template <bool Above> struct Chosen {
  template <class X, class Y> KOKKOS_FORCEINLINE_FUNCTION Share operator()(X x, Y y) const {
    const auto a = static_cast<ComputeType<X>>(x), b = static_cast<ComputeType<X>>(y);
    if (a == b) return {0.5F};
    return {(Above ? a > b : a < b) ? 1.0F : 0.0F};
  }
};
/// -floor(x / y), from x, y and the remainder r: a rounded quotient could lie on the wrong side of
/// a whole number.
struct NegativeFloor : detail::OfValues<NegativeFloor> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T x, T y, T r) {
    return Kokkos::rint((r - x) / y);
  }
};
}  // namespace fn

template <> struct Derivative<fn::Add, 0> : UnitSlope {};
template <> struct Derivative<fn::Add, 1> : UnitSlope {};
template <class R, int I> struct Derivative<fn::AddAs<R>, I> : UnitSlope {};
template <> struct Derivative<fn::Subtract, 0> : UnitSlope {};
template <> struct Derivative<fn::Subtract, 1> : MinusSlope {};
template <> struct Derivative<fn::Negate, 0> : MinusSlope {};
template <> struct Derivative<fn::Multiply, 0> : SlopeBy<fn::Same, 1> {};
template <> struct Derivative<fn::Multiply, 1> : SlopeBy<fn::Same, 0> {};
template <> struct Derivative<fn::Divide, 0> : SlopeBy<fn::Reciprocal, 1> {};
template <> struct Derivative<fn::Divide, 1> : SlopeBy<fn::NegativeQuotient, reads_result, 1> {};
template <> struct Derivative<fn::NegativeQuotient, 0> : SlopeBy<fn::NegativeReciprocal, 1> {};
template <>
struct Derivative<fn::NegativeQuotient, 1> : SlopeBy<fn::NegativeQuotient, reads_result, 1> {};
template <> struct Derivative<fn::Reciprocal, 0> : SlopeBy<fn::NegativeSquare, reads_result> {};
template <> struct Derivative<fn::NegativeReciprocal, 0> : SlopeBy<fn::Square, reads_result> {};
template <> struct Derivative<fn::NegativeSquare, 0> : SlopeBy<fn::Multiple<-2>, 0> {};
template <> struct Derivative<fn::Square, 0> : SlopeBy<fn::Multiple<2>, 0> {};
template <int Factor> struct Derivative<fn::Multiple<Factor>, 0> : detail::WholeSlope<Factor> {};
template <> struct Derivative<fn::Scale, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{};
  KOKKOS_FORCEINLINE_FUNCTION static fn::Constant<double> of(const fn::Scale& f) {
    return fn::Constant<double>{f.factor};
  }
};
template <> struct Derivative<fn::Shift, 0> : UnitSlope {};
template <> struct Derivative<fn::Abs, 0> : SlopeBy<fn::Sign, 0> {};
template <> struct Derivative<fn::Maximum, 0> : SlopeBy<fn::Chosen<true>, 0, 1> {};
template <> struct Derivative<fn::Maximum, 1> : SlopeBy<fn::Chosen<true>, 1, 0> {};
template <> struct Derivative<fn::Minimum, 0> : SlopeBy<fn::Chosen<false>, 0, 1> {};
template <> struct Derivative<fn::Minimum, 1> : SlopeBy<fn::Chosen<false>, 1, 0> {};
template <bool Above, int I> struct Derivative<fn::Chosen<Above>, I> : ZeroSlope {};
template <> struct Derivative<fn::Remainder, 0> : UnitSlope {};
template <> struct Derivative<fn::Remainder, 1> : SlopeBy<fn::NegativeFloor, 0, 1, reads_result> {};
template <int I> struct Derivative<fn::NegativeFloor, I> : ZeroSlope {};

}  // namespace tessera
