// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Comparisons of tensors, and of a tensor with a number, which give tensors of bool; and the
/// choice by such a tensor. == and != are deleted (they would read as a question about two
/// handles): equal and not_equal are functions.
///
///     auto kept = where(x > 0.5f, x, 0);
///     auto all = n < 1e18;                          // n of int32: true everywhere
///     auto same = equal(a, b);
///     DynamicTensor d = where(DynamicTensor(same), a, 1.0f);
///
/// Laws: each equals map(fn::Name{}, ...), dynamic where an operand is; integers compare exactly
/// with any real number, whether their type holds it or not (real elements, with the nearest of
/// their type); where(c, a, b) of two values that are unfinished alike stays unfinished. Each
/// returns a tensor of the broadcast extents. Communication: operands whose sharding differs from
/// the result's are resharded. Collective over the mesh. Throws ShapeError when extents disagree.
#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/op/elements/named_function.hpp>

namespace tessera {

/// Takes elements of any type.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto equal(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Equal{}, call, a, b);
}
/// Takes elements of any type; true for NaN.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto not_equal(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::NotEqual{}, call, a, b);
}
/// a < b, of elements in an order; false for NaN.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto less(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Less{}, call, a, b);
}
/// a <= b, of elements in an order; false for NaN.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto less_equal(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::LessEqual{}, call, a, b);
}
/// a > b, of elements in an order; false for NaN.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto greater(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Greater{}, call, a, b);
}
/// a >= b, of elements in an order; false for NaN.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto greater_equal(const A& a, const B& b, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::GreaterEqual{}, call, a, b);
}
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator<(const A& a, const B& b) { return detail::apply_two(fn::Less{}, Where{}, a, b); }
template <TypedTensor A> auto operator<(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::Less{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator<(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::Less{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator<(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::Less{}, b.where, a, b.tensor);
}
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator<=(const A& a, const B& b) {
  return detail::apply_two(fn::LessEqual{}, Where{}, a, b);
}
template <TypedTensor A> auto operator<=(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::LessEqual{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator<=(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::LessEqual{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator<=(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::LessEqual{}, b.where, a, b.tensor);
}
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator>(const A& a, const B& b) { return detail::apply_two(fn::Greater{}, Where{}, a, b); }
template <TypedTensor A> auto operator>(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::Greater{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator>(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::Greater{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator>(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::Greater{}, b.where, a, b.tensor);
}
template <class A, class B>
  requires detail::TypedAndOther<A, B>
auto operator>=(const A& a, const B& b) {
  return detail::apply_two(fn::GreaterEqual{}, Where{}, a, b);
}
template <TypedTensor A> auto operator>=(const A& a, const detail::PlacedLike<A>& b) {
  return detail::apply_two(fn::GreaterEqual{}, b.where, a, b.tensor);
}
template <detail::EitherOperand B> auto operator>=(const detail::PlacedTensor& a, const B& b) {
  return detail::apply_two(fn::GreaterEqual{}, a.where, a.tensor, b);
}
template <detail::OtherOperand A> auto operator>=(const A& a, const detail::PlacedTensor& b) {
  return detail::apply_two(fn::GreaterEqual{}, b.where, a, b.tensor);
}
// The lines of the deleted declarations are part of the compiler's message.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
// clang-format off
bool operator==(const A&, const B&) = delete;  // [tessera] tensors have no ==; equal(a, b) compares element by element; allclose(a, b), or reduce<All, "ij->">(equal(a, b)), compares the whole
// clang-format on
template <class A, class B>
  requires detail::TensorAndOther<A, B>
// clang-format off
bool operator!=(const A&, const B&) = delete;  // [tessera] tensors have no !=; not_equal(a, b) compares element by element; allclose(a, b), or reduce<All, "ij->">(equal(a, b)), compares the whole
// clang-format on
/// Whether an element is NaN.
template <detail::AnyTensor A> auto isnan(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::IsNan{}, call, x);
}
/// Whether an element is infinite.
template <detail::AnyTensor A> auto isinf(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::IsInf{}, call, x);
}
/// Whether an element is neither NaN nor infinite.
template <detail::AnyTensor A> auto isfinite(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::IsFinite{}, call, x);
}

namespace detail {
/// Where one of the tensors is dynamic.
template <class A, class B>
DynamicTensor where_dynamic(const TensorCore& c, const A& a, const B& b, const CallOptions& call) {
  const CallSite site = call.sharded_site(function_name<fn::Select>());
  const Sharding* const out = call.out();
  mesh_of(c, site);
  if (c.type() != DType::boolean) throw_not_taken(Rule::condition_of_truths, c.type(), site);
  if constexpr (AnyTensor<A> && AnyTensor<B>) {
    const OperandList operands{&c, &a.core(), &b.core()};
    return with_type(common_type(operands, 1, site), [&](auto zero) {
      using T = decltype(zero);
      return apply_to<bool, T, T>(fn::Select{}, operands, out, site);
    });
  } else if constexpr (AnyTensor<A>) {
    return with_type(a.core().type(), [&](auto zero) {
      using T = decltype(zero);
      return apply_to<bool, T>(beside<fn::Select, 2, T>({}, b, site), {&c, &a.core()}, out, site);
    });
  } else if constexpr (AnyTensor<B>) {
    return with_type(b.core().type(), [&](auto zero) {
      using T = decltype(zero);
      return apply_to<bool, T>(beside<fn::Select, 1, T>({}, a, site), {&c, &b.core()}, out, site);
    });
  } else {
    using Else = fn::Fixed<fn::Select, 2, B>;
    return apply_to<bool>(fn::Fixed<Else, 1, A>{Else{{}, b}, a}, {&c}, out, site);
  }
}
}  // namespace detail

/// Returns a where the condition (of bool) is true, else b; tensors or numbers. Two numbers have
/// one type, the result's.
template <detail::AnyTensor C, class A, class B>
  requires((detail::AnyTensor<A> || Scalar<A>)&&(detail::AnyTensor<B> || Scalar<B>))
auto where(const C& condition, const A& a, const B& b, const CallOptions& call = Where::here()) {
  if constexpr (Scalar<A> && Scalar<B> && !std::is_same_v<A, B>) {
    static_assert(detail::never<A, B>,
                  "[tessera] where chooses between numbers of two types; the result has one; write "
                  "both alike, as in where(c, 1.0f, 0.0f)");
    return where(condition, a, a, call);
  } else if constexpr (std::same_as<C, DynamicTensor> || std::same_as<A, DynamicTensor> ||
                       std::same_as<B, DynamicTensor>) {
    return detail::where_dynamic(condition.core(), a, b, call);
  } else if constexpr (detail::AnyTensor<A> && detail::AnyTensor<B>) {
    return detail::apply(fn::Select{}, call, condition, a, b);
  } else if constexpr (detail::AnyTensor<A>) {
    using T = typename A::value_type;
    const detail::CallSite site{detail::function_name<fn::Select>(), call.where()};
    return detail::apply(detail::typed_beside<fn::Select, 2, T>({}, b, site), call, condition, a);
  } else if constexpr (detail::AnyTensor<B>) {
    using T = typename B::value_type;
    const detail::CallSite site{detail::function_name<fn::Select>(), call.where()};
    return detail::apply(detail::typed_beside<fn::Select, 1, T>({}, a, site), call, condition, b);
  } else {
    using Else = fn::Fixed<fn::Select, 2, B>;
    return detail::apply(fn::Fixed<Else, 1, A>{Else{{}, b}, a}, call, condition);
  }
}

}  // namespace tessera
