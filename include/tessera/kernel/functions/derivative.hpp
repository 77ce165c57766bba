// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of functions of elements, by which gradients pass through map
/// (grad/adjoint/map.hpp). grad/derivatives/ has those of the functions in kernel/functions/; a
/// functor of your own brings its own:
///
///     struct Softplus {
///       template <class T> KOKKOS_FUNCTION T operator()(T x) const { return fn::Log1p{}(fn::Exp{}(x)); }
///       template <class T> KOKKOS_FUNCTION T derivative(T x) const { return fn::Sigmoid{}(x); }
///     };
///     struct Mix {                                              // of several operands: by operand I
///       template <class T> KOKKOS_FUNCTION T operator()(T x, T y) const { return x * y * y; }
///       template <int I, class T> KOKKOS_FUNCTION T derivative(T x, T y) const {
///         return I == 0 ? y * y : T(2) * x * y;
///       }
///     };
///     struct WeighedSum {                     // reading some values only; SlopeBy names a functor of them
///       template <int I> using slope_by = SlopeBy<fn::Same, I % 2 == 0 ? I + 1 : I - 1>;
///       template <class T> KOKKOS_FUNCTION T operator()(T u, T a, T v, T b) const { return u * a + v * b; }
///     };
///
/// Laws: f(..., x + h, ...) - f(..., x, ...) == h Derivative<F, I>::of(f)(values...) + O(h^2); a
/// function that is constant almost everywhere has the derivative zero, as in JAX.
#include <type_traits>

#include <tessera/base/box.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera {

/// Which values a derivative is computed from, in this order: operands by their numbers.
using Reads = FixedVector<int, max_dims + 1>;
/// In Reads: the function's result.
inline constexpr int reads_result = -1;

enum class Slope : std::uint8_t { zero, one, minus_one, function };

/// The derivative of functor F by its operand I: `slope`; where that is Slope::function also
/// `reads` and of(f), a functor of these values. Specialise it for a functor whose type you cannot
/// change. Not defined: F has no derivative.
template <class F, int I> struct Derivative;

/// In place of a derivative, where the function's values are not of its operand's kind: `reads`,
/// and of(f), a functor of the gradient and these values that returns operand I's.
template <class F, int I> struct Pulled;

/// The bases of specialisations: derivatives that are constant.
struct ZeroSlope {
  static constexpr Slope slope = Slope::zero;
};
struct UnitSlope {
  static constexpr Slope slope = Slope::one;
};
struct MinusSlope {
  static constexpr Slope slope = Slope::minus_one;
};
/// D of the values that are named: SlopeBy<fn::Cos, 0>, SlopeBy<Same, reads_result>.
template <class D, int... Values> struct SlopeBy {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{Values...};
  template <class F> KOKKOS_FORCEINLINE_FUNCTION static D of(const F&) { return {}; }
};

namespace detail {
template <class F, int I>
concept HasDerivative = requires {
  Derivative<F, I>::slope;
};
template <class F, int I, class... T>
concept OwnByOperand = requires(const F& f, const T&... x) {
  f.template derivative<I>(x...);
};
template <class F, class... T>
concept OwnOfOne = requires(const F& f, const T&... x) {
  f.derivative(x...);
};
}  // namespace detail

/// By operand I, where a functor states it: a type like Derivative.
template <class F, int I>
  requires requires { typename F::template slope_by<I>; }
struct Derivative<F, I> : F::template slope_by<I> {};

namespace fn {
/// The value itself. A derivative that is a truth value selects: 1 where it is true.
struct Same {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x) const { return x; }
};
/// The derivative by operand I that a functor brings.
template <class F, int I> struct OwnDerivative {
  F f;
  template <class... T>
    requires(detail::OwnByOperand<F, I, T...> || detail::OwnOfOne<F, T...>)
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(const T&... x) const {
    if constexpr (detail::OwnByOperand<F, I, T...>)
      return f.template derivative<I>(x...);
    else
      return f.derivative(x...);
  }
};
}  // namespace fn

namespace detail {
/// F has a derivative of its own, for elements T.
template <class F, class... T>
concept BringsDerivative = detail::OwnByOperand<F, 0, T...> || detail::OwnOfOne<F, T...>;
/// F states its derivatives, and which values each reads.
template <class F>
concept StatesSlopes = requires {
  typename F::template slope_by<0>;
};
/// F says that no gradient passes: `static constexpr Slope slope = Slope::zero`.
template <class F>
concept StopsGradients = requires {
  requires F::slope == Slope::zero;
};
}  // namespace detail

}  // namespace tessera
