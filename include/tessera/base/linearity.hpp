// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a function of elements treats values that are not reduced yet: which unfinished kinds it may
/// act on. A functor says it beside its definition; the planner's check_map decides by it.
///
///     struct Halve {
///       static constexpr Linearity linearity = Linearity::linear;      // pointwise if left out
///       template <class T> KOKKOS_FUNCTION T operator()(T x) const { return x / 2; }
///     };
///
/// Laws (tests enumerate them, NaN and infinities among the values): what is linear obeys
/// f(x + y) == f(x) + f(y), to rounding for floats and exactly for integers, which wrap; what is
/// monotone obeys f(max(x, y)) == max(f(x), f(y)), and so for min. Monotone functions do not
/// decrease, and give NaN for NaN and for nothing else.
#include <cstdint>

namespace tessera {

enum class Linearity : std::uint8_t {
  pointwise,        ///< needs finished values
  linear,           ///< f(sum x) = sum f(x): may act on Unreduced<Sum>
  bilinear,         ///< a product: linear in one operand while the others are finished
  linear_in_first,  ///< a quotient: linear in its first operand while the others are finished
  monotone,         ///< f(max x) = max f(x): may act on Unreduced<Max> and Unreduced<Min>
  linear_monotone,  ///< a conversion between real types: both of these
  maximum,          ///< the larger of two: may act on two Unreduced<Max>
  minimum,          ///< the smaller of two: may act on two Unreduced<Min>
  selection,        ///< takes one of its operands by the first, which is finished: any kind, alike
};

}  // namespace tessera
