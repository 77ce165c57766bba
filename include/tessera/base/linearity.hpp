// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a function of elements treats values that are not reduced yet: which kinds of unfinished
/// values it may act on. A functor states it beside its definition; the planner's check_map decides
/// by it.
///
///     struct Halve {
///       static constexpr Linearity linearity = Linearity::linear;      // pointwise if left out
///       template <class T> KOKKOS_FUNCTION T operator()(T x) const { return x / 2; }
///     };
///
/// Laws (tests enumerate them, with NaN and infinities among the values): a linear function obeys
/// f(x + y) == f(x) + f(y), to rounding for floats and exactly for integers, which wrap; a monotone
/// one obeys f(max(x, y)) == max(f(x), f(y)), and likewise for min. Monotone functions do not
/// decrease, and give NaN for NaN only. A multiplicative function obeys f(x y) == f(x) f(y), for
/// floats to rounding and unless something overflows, for integers exactly.
#include <cstdint>

namespace tessera {

enum class Linearity : std::uint16_t {
  pointwise = 0,         ///< needs finished values
  linear = 1,            ///< f(sum x) = sum f(x): may act on Unreduced<Sum>
  bilinear = 2,          ///< a product: linear in one operand while the others are finished
  linear_in_first = 4,   ///< a quotient: linear in its first operand while the others are finished
  monotone = 8,          ///< f(max x) = max f(x): may act on Unreduced<Max>, <Min>, <Any> and <All>
  linear_monotone = 9,   ///< a conversion between real types: both of these
  maximum = 16,          ///< the larger of two: may act on two Unreduced<Max>
  minimum = 32,          ///< the smaller of two: may act on two Unreduced<Min>
  selection = 64,        ///< selects an operand by the first one, which is finished: any kind
  multiplicative = 128,  ///< f(x y) = f(x) f(y): may act on Unreduced<Product>, all operands alike
  disjunction = 256,     ///< or: may act on two Unreduced<Any>
  conjunction = 512,     ///< and: may act on two Unreduced<All>
};

/// Several claims at once: a product is bilinear and multiplicative.
constexpr Linearity operator|(Linearity a, Linearity b) {
  return static_cast<Linearity>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// Returns whether `claims` includes all of `claim`.
constexpr bool has(Linearity claims, Linearity claim) {
  return (static_cast<unsigned>(claims) & static_cast<unsigned>(claim)) ==
         static_cast<unsigned>(claim);
}

}  // namespace tessera
