// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A function with one argument fixed to a number, which is part of the functor: scalars as
/// operands beside tensors.
///
///     fn::Fixed<fn::Subtract, 0, float>{{}, 1.0f}(x)        // 1 - x
///
/// Laws: Fixed<F, P, T>{f, v}(a...) is f with v put in front of argument P.
#include <string_view>

#include <tessera/base/text/type_name.hpp>
#include <tessera/kernel/detail/simd.hpp>
#include <tessera/kernel/functions/derivative.hpp>
#include <tessera/kernel/not_finite.hpp>

namespace tessera::detail {

/// The claim of F for arguments of types T: the claim it states for these types, or for all, or
/// none.
template <class F, class... T> constexpr Linearity stated_linearity() {
  if constexpr (requires { F::template linearity_on<T...>(); })
    return F::template linearity_on<T...>();
  else if constexpr (requires { F::linearity; })
    return F::linearity;
  else
    return Linearity::pointwise;
}

/// The claim that remains of a claim about two operands when one is a number: products and
/// quotients are linear in the other operand; the larger and the smaller of x and a number are
/// monotone in x, and so are or and and.
constexpr Linearity fixed_linearity(Linearity of_both, int position) {
  if (has(of_both, Linearity::bilinear) ||
      (has(of_both, Linearity::linear_in_first) && position == 1))
    return Linearity::linear;
  for (const Linearity lattice :
       {Linearity::maximum, Linearity::minimum, Linearity::disjunction, Linearity::conjunction})
    if (has(of_both, lattice)) return Linearity::monotone;
  return Linearity::pointwise;  // for example, x + 1 is not linear, and 2 x is not multiplicative
}

/// The name of a functor in plans: its own `name`, or its type's name.
template <class F> constexpr std::string_view function_name() {
  if constexpr (requires { std::string_view(F::name); })
    return F::name;
  else
    return type_name<F>();
}

/// Which operand of F operand I of Fixed<F, position, T> is.
constexpr int beside(int position, int operand) {
  return operand < position ? operand : operand + 1;
}

/// F has the way W (kernel/functions/number.hpp) of a number of type T, its argument `position`,
/// and one of type A.
template <class F, int position, class T, class W, class A>
concept HasWayBeside = (position == 0 && HasWay<F, W, T, A>) ||
                       (position == 1 && HasWay<F, W, A, T>);
template <class F, int position, class T, class W, class A>
concept HasBoundsBeside = (position == 0 && HasBounds<F, W, T, A>) ||
                          (position == 1 && HasBounds<F, W, A, T>);

}  // namespace tessera::detail

namespace tessera::fn {

template <class F, int Position, class T> struct Fixed {
  static constexpr std::string_view name = detail::function_name<F>();
  F f;
  T value;

  template <class Told> void numbers(Told& told) const { told.add(value); }
  template <class A> static constexpr Linearity linearity_on() {
    return detail::fixed_linearity(detail::stated_linearity<F, A, A>(), Position);
  }
  template <class... V>
    requires(Position == 0 && std::is_invocable_v<const F&, const T&, const V&...>)
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(const V&... v) const { return f(value, v...); }
  template <class A, class... V>
    requires(Position == 1 && std::is_invocable_v<const F&, const A&, const T&, const V&...>)
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(const A& a, const V&... v) const {
    return f(a, value, v...);
  }
  template <class A, class B, class... V>
    requires(Position == 2 &&
             std::is_invocable_v<const F&, const A&, const B&, const T&, const V&...>)
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(const A& a, const B& b, const V&... v) const {
    return f(a, b, value, v...);
  }
  template <class A, class B, class C, class... V>
    requires(Position == 3 &&
             std::is_invocable_v<const F&, const A&, const B&, const C&, const T&, const V&...>)
  KOKKOS_FORCEINLINE_FUNCTION auto operator()(const A& a, const B& b, const C& c,
                                              const V&... v) const {
    return f(a, b, c, value, v...);
  }

  /// Whether the number that the caller gave is infinite, as in where(mask, x, -infinity).
  bool given_infinity() const {
    return detail::first_not_finite(dtype_of<T>, &value, 1).infinite >= 0;
  }
  /// The function with its number in the type in which half types are computed.
  auto widened() const requires(!std::is_same_v<T, ComputeType<T>>) {
    return Fixed<F, Position, ComputeType<T>>{f, static_cast<ComputeType<T>>(value)};
  }

  /// The derivative by operand I, where f brings its own (kernel/functions/derivative.hpp).
  template <int I, class... V>
    requires(std::is_invocable_v<
             const Fixed<OwnDerivative<F, tessera::detail::beside(Position, I)>, Position, T>&,
             const V&...>)
  KOKKOS_FORCEINLINE_FUNCTION auto derivative(const V&... v) const {
    using Own = OwnDerivative<F, tessera::detail::beside(Position, I)>;
    return Fixed<Own, Position, T>{Own{f}, value}(v...);
  }

  // The ways of f (kernel/functions/number.hpp), where its other argument is one.
  template <class W, class A>
    requires(detail::HasWayBeside<F, Position, T, W, A>)
  KOKKOS_FORCEINLINE_FUNCTION bool fits(W way, const A& a) const {
    if constexpr (Position == 0)
      return f.fits(way, value, a);
    else
      return f.fits(way, a, value);
  }
  template <class W, class A>
    requires(detail::HasWayBeside<F, Position, T, W, A>)
  KOKKOS_FORCEINLINE_FUNCTION auto by(W way, const A& a) const {
    if constexpr (Position == 0)
      return f.by(way, value, a);
    else
      return f.by(way, a, value);
  }
  template <class W, class A>
    requires(detail::HasBoundsBeside<F, Position, T, W, A>)
  TESSERA_INLINE auto bounds(W way, Index n, const A* a) const {
    if constexpr (Position == 0)
      return f.bounds(way, n, detail::Alike<T>{value}, a);
    else
      return f.bounds(way, n, a, detail::Alike<T>{value});
  }
};

}  // namespace tessera::fn
