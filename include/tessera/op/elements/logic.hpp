// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Logic on tensors of bool, and on the bits of integers; a number (or truth value) may stand on
/// either side.
///
///     auto both = logical_and(x > 0.0f, logical_not(isnan(y)));
///
/// Laws: each equals map(fn::Name{}, ...). Each returns a tensor of the broadcast extents.
/// Communication: operands whose sharding differs from the result's are resharded. Collective over
/// the mesh. Throws ShapeError when extents disagree.
#include <tessera/kernel/functions/logic.hpp>
#include <tessera/op/elements/named_function.hpp>

namespace tessera {

/// Return a and b, a or b, exactly one of them (xor), elementwise; bitwise: on the bits of
/// integers. One of them may be a scalar.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto logical_and(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::LogicalAnd{}, call, a, b);
}
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto logical_or(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::LogicalOr{}, call, a, b);
}
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto logical_xor(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::LogicalXor{}, call, a, b);
}
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto bitwise_and(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::BitwiseAnd{}, call, a, b);
}
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto bitwise_or(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::BitwiseOr{}, call, a, b);
}
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto bitwise_xor(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::BitwiseXor{}, call, a, b);
}
/// a times 2^b, wrapping; 0 where b is negative or as large as the element has bits.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto bitwise_left_shift(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::ShiftLeft{}, call, a, b);
}
/// floor(a / 2^b); where b is negative or as large as the element has bits: 0, or -1 for negative
/// a.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto bitwise_right_shift(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::ShiftRight{}, call, a, b);
}
/// Whether an element, a bool, is false.
template <detail::AnyTensor A>
auto logical_not(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::LogicalNot{}, call, x);
}
/// The bits of integers, each the other way round.
template <detail::AnyTensor A>
auto bitwise_not(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::BitwiseNot{}, call, x);
}

}  // namespace tessera
