// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The arithmetic operators on tensors, and numbers on either side: each is one map. Elements are
/// not converted: operands of two element types do not compile, cast one (op/cast.hpp).
///
///     auto y = relu(x + bias) * 0.5f;
///
/// Laws: each equals map(fn::Name{}, ...); + and - of two alike unfinished sums stay unfinished,
/// and so does an unfinished sum times or over a number. Operators cannot carry the place of their
/// call; their errors name the function.
#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/op/scalar.hpp>

namespace tessera {

/// Elementwise, with NumPy's broadcasting; one operand may be a scalar. Communication: as map's.
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator+(const A& a, const B& b) { return detail::apply_two(fn::Add{}, {}, a, b); }
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator-(const A& a, const B& b) { return detail::apply_two(fn::Subtract{}, {}, a, b); }
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator*(const A& a, const B& b) { return detail::apply_two(fn::Multiply{}, {}, a, b); }
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator/(const A& a, const B& b) { return detail::apply_two(fn::Divide{}, {}, a, b); }
template <TypedTensor A> auto operator-(const A& a) { return detail::apply(fn::Negate{}, {}, a); }

// Of one or two tensors, or a tensor and a number. Each returns a tensor of the broadcast extents.
// Communication: operands whose sharding differs from the result's are resharded. Collective over
// the mesh. Throws ShapeError when extents disagree.

/// The larger of two; NaN if either is.
template <class A, class B>
  requires TensorAndOther<A, B>
auto maximum(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::Maximum{}, where, a, b);
}
/// The smaller of two; NaN if either is.
template <class A, class B>
  requires TensorAndOther<A, B>
auto minimum(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::Minimum{}, where, a, b);
}
/// a - floor(a / b) b, with the sign of b.
template <class A, class B>
  requires TensorAndOther<A, B>
auto remainder(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::Remainder{}, where, a, b);
}
/// a to the b.
template <class A, class B>
  requires TensorAndOther<A, B>
auto pow(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::Pow{}, where, a, b);
}
template <TypedTensor A> auto abs(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Abs{}, where, x);
}
template <TypedTensor A> auto square(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Square{}, where, x);
}
/// 1 / x
template <TypedTensor A> auto reciprocal(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Reciprocal{}, where, x);
}

}  // namespace tessera
