// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The arithmetic operators on tensors, and numbers on either side: each is one map. Elements are
/// not converted: operands of two element types do not compile; cast one (op/elements/cast.hpp).
///
///     auto y = relu(x + bias) * 0.5f;
///     DynamicTensor d = maximum(DynamicTensor(x) - 1, 0);
///
/// Laws: each equals map(fn::Name{}, ...), dynamic where an operand is; + and - of two sums that
/// are unfinished alike stay unfinished, and so does an unfinished sum times a number or divided by
/// a number. Errors of operators carry the place of the call where a tensor is dynamic or both are
/// of one type; of other typed operands they cannot, and name the function. Communication: none,
/// but where an operand is split otherwise than the result, as map's. Collective over the mesh.
/// Throw ShapeError when extents disagree.
#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/op/elements/named_function.hpp>

namespace tessera {

/// Elementwise, with NumPy's broadcasting; one operand may be a scalar. Communication: as map's.
/// Throws UsageError where a whole number beside integers is no element of their type.
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator+(const A& a, const B& b) { return detail::apply_two(fn::Add{}, Where{}, a, b); }
template <TypedTensor A> auto operator+(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::Add{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator+(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::Add{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator+(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::Add{}, b.where, a, b.tensor);
}
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator-(const A& a, const B& b) { return detail::apply_two(fn::Subtract{}, Where{}, a, b); }
template <TypedTensor A> auto operator-(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::Subtract{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator-(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::Subtract{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator-(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::Subtract{}, b.where, a, b.tensor);
}
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator*(const A& a, const B& b) { return detail::apply_two(fn::Multiply{}, Where{}, a, b); }
template <TypedTensor A> auto operator*(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::Multiply{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator*(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::Multiply{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator*(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::Multiply{}, b.where, a, b.tensor);
}
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator/(const A& a, const B& b) { return detail::apply_two(fn::Divide{}, Where{}, a, b); }
template <TypedTensor A> auto operator/(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::Divide{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator/(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::Divide{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator/(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::Divide{}, b.where, a, b.tensor);
}
template <TypedTensor A> auto operator-(const A& a) {
  return detail::apply(fn::Negate{}, Where{}, a);
}
/// A template, so that it is compiled where it is called.
template <class F = fn::Negate> DynamicTensor operator-(const detail::PlacedTensor& a) {
  return detail::apply(F{}, a.where, a.tensor);
}

// Functions of one or two tensors, or of a tensor and a number. Each returns a tensor of the
// broadcast extents. Communication: operands whose sharding differs from the result's are
// resharded. Collective over the mesh. Throws ShapeError when extents disagree.

/// The larger of two; NaN if either is. Beside integers a number may lie below all that their type
/// holds: maximum(x, -1) of uint8 is x. Throws UsageError where it lies above, so that the result
/// would be no element.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto maximum(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Maximum{}, call, a, b);
}
/// The smaller of two; NaN if either is. A number may lie above all that the type of integers
/// holds.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto minimum(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Minimum{}, call, a, b);
}
/// a - floor(a / b) b, with the sign of b.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto remainder(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Remainder{}, call, a, b);
}
/// a to the b.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto pow(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Pow{}, call, a, b);
}
/// The absolute value; of the least integer itself, of complex elements the size, which is real.
template <detail::AnyTensor A> auto abs(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Abs{}, call, x);
}
/// x times x
template <detail::AnyTensor A> auto square(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Square{}, call, x);
}
/// 1 / x
template <detail::AnyTensor A>
auto reciprocal(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Reciprocal{}, call, x);
}

}  // namespace tessera
