// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Logic on tensors of bool, and the same on the bits of integers; a number (or truth) may stand on
/// either side.
///
///     auto both = logical_and(x > 0.0f, logical_not(isnan(y)));
///
/// Laws: each equals map(fn::Name{}, ...). Each returns a tensor of the broadcast extents.
/// Communication: operands whose sharding differs from the result's are resharded. Collective over
/// the mesh. Throws ShapeError when extents disagree.
#include <tessera/kernel/functions/logic.hpp>
#include <tessera/op/scalar.hpp>

namespace tessera {

/// Return a and b, a or b, exactly one of them, elementwise; bitwise: of the bits of integers. One
/// of them may be a scalar.
template <class A, class B>
  requires TensorAndOther<A, B>
auto logical_and(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::LogicalAnd{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto logical_or(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::LogicalOr{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto logical_xor(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::LogicalXor{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto bitwise_and(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::BitwiseAnd{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto bitwise_or(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::BitwiseOr{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto bitwise_xor(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::BitwiseXor{}, where, a, b);
}
/// a times 2^b, wrapping; 0 where b is negative or as large as the element has bits.
template <class A, class B>
  requires TensorAndOther<A, B>
auto shift_left(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::ShiftLeft{}, where, a, b);
}
/// floor(a / 2^b); where b is negative or as large as the element has bits: 0, or -1 for negative
/// a.
template <class A, class B>
  requires TensorAndOther<A, B>
auto shift_right(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::ShiftRight{}, where, a, b);
}
template <TypedTensor A> auto logical_not(const A& x, Where where = Where::here()) {
  return detail::apply(fn::LogicalNot{}, where, x);
}
template <TypedTensor A> auto bitwise_not(const A& x, Where where = Where::here()) {
  return detail::apply(fn::BitwiseNot{}, where, x);
}

}  // namespace tessera
