// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of functions with one argument fixed to a number (kernel/functions/fixed.hpp): those
/// of the function itself, with the number where they read this argument.
///
///     using Half = fn::Fixed<fn::Multiply, 1, double>;
///     Derivative<Half, 0>::of(Half{{}, 0.5})();      // 0.5: of x y by x it is y, which is no operand
///
/// Laws: the number lies in the derivative's functor, a Fixed too, so that it has the derivatives
/// that the function's has. What a functor brings of its own is in fixed.hpp itself.
#include <tessera/kernel/functions/derivative.hpp>
#include <tessera/kernel/functions/fixed.hpp>

namespace tessera {
namespace detail {

/// What a derivative of F reads, as operands of Fixed<F, position, T>.
constexpr Reads reads_beside(const Reads& of_all, int position) {
  Reads reads;
  for (const int read : of_all)
    if (read != position) reads.push_back(read > position ? read - 1 : read);
  return reads;
}

/// The derivative by operand I of F with argument P fixed, if F has it.
template <class F, int P, class T, int I> struct DerivativeBeside {};
template <class F, int P, class T, int I>
  requires HasDerivative<F, beside(P, I)>
struct DerivativeBeside<F, P, T, I> : Derivative<F, beside(P, I)> {
};
template <class F, int P, class T, int I>
  requires(HasDerivative<F, beside(P, I)>&& Derivative<F, beside(P, I)>::slope == Slope::function)
struct DerivativeBeside<F, P, T, I> {
  using Inner = Derivative<F, beside(P, I)>;
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads = reads_beside(Inner::reads, P);
  template <class Fixing> KOKKOS_FORCEINLINE_FUNCTION static auto of(const Fixing& fixed) {
    constexpr int place = Inner::reads.find(P);
    if constexpr (place < 0) {
      return Inner::of(fixed.f);
    } else {
      using D = decltype(Inner::of(fixed.f));
      return fn::Fixed<D, place, T>{Inner::of(fixed.f), fixed.value};
    }
  }
};

}  // namespace detail

template <class F, int P, class T, int I>
struct Derivative<fn::Fixed<F, P, T>, I> : detail::DerivativeBeside<F, P, T, I> {};

}  // namespace tessera
