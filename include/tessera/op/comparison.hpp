// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Comparisons of tensors, and of a tensor with a number, which give tensors of bool; and the
/// choice by such a tensor. == and != are deleted (they would read as a question about two
/// handles): equal and not_equal are functions.
///
///     auto kept = where(x > 0.5f, x, 0);
///     auto same = equal(a, b);
///
/// Laws: each equals map(fn::Name{}, ...); where(c, a, b) of two alike unfinished values stays
/// unfinished. Each returns a tensor of the broadcast extents. Communication: operands whose
/// sharding differs from the result's are resharded. Collective over the mesh. Throws ShapeError
/// when extents disagree.
#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/op/scalar.hpp>

namespace tessera {

/// Of any element type.
template <class A, class B>
  requires TensorAndOther<A, B>
auto equal(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::Equal{}, where, a, b);
}
/// Of any element type; true for NaN.
template <class A, class B>
  requires TensorAndOther<A, B>
auto not_equal(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::NotEqual{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto less(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::Less{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto less_equal(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::LessEqual{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto greater(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::Greater{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto greater_equal(const A& a, const B& b, Where where = Where::here()) {
  return detail::apply_two(fn::GreaterEqual{}, where, a, b);
}
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator<(const A& a, const B& b) { return detail::apply_two(fn::Less{}, {}, a, b); }
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator<=(const A& a, const B& b) { return detail::apply_two(fn::LessEqual{}, {}, a, b); }
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator>(const A& a, const B& b) { return detail::apply_two(fn::Greater{}, {}, a, b); }
template <class A, class B>
  requires TensorAndOther<A, B>
auto operator>=(const A& a, const B& b) { return detail::apply_two(fn::GreaterEqual{}, {}, a, b); }
// The lines of the deleted declarations are part of the compiler's message.
template <class A, class B>
  requires TensorAndOther<A, B>
// clang-format off
bool operator==(const A&, const B&) = delete;  // [tessera] tensors have no ==; equal(a, b) compares element by element; allclose(a, b), or reduce<All, "ij->">(equal(a, b)), compares the whole
// clang-format on
template <class A, class B>
  requires TensorAndOther<A, B>
// clang-format off
bool operator!=(const A&, const B&) = delete;  // [tessera] tensors have no !=; not_equal(a, b) compares element by element; allclose(a, b), or reduce<All, "ij->">(equal(a, b)), compares the whole
// clang-format on
template <TypedTensor A> auto isnan(const A& x, Where where = Where::here()) {
  return detail::apply(fn::IsNan{}, where, x);
}
template <TypedTensor A> auto isinf(const A& x, Where where = Where::here()) {
  return detail::apply(fn::IsInf{}, where, x);
}
template <TypedTensor A> auto isfinite(const A& x, Where where = Where::here()) {
  return detail::apply(fn::IsFinite{}, where, x);
}

/// Returns a where the condition (of bool) is true, else b; tensors or numbers. Two numbers are of
/// one type, which is the result's.
template <TypedTensor C, class A, class B>
  requires((TypedTensor<A> || Scalar<A>)&&(TypedTensor<B> || Scalar<B>))
auto where(const C& condition, const A& a, const B& b, Where place = Where::here()) {
  if constexpr (TypedTensor<A> && TypedTensor<B>) {
    return detail::apply(fn::Select{}, place, condition, a, b);
  } else if constexpr (TypedTensor<A>) {
    using T = typename A::value_type;
    return detail::apply(fn::Fixed<fn::Select, 2, T>{{}, detail::scalar_as<T>(b)}, place, condition,
                         a);
  } else if constexpr (TypedTensor<B>) {
    using T = typename B::value_type;
    return detail::apply(fn::Fixed<fn::Select, 1, T>{{}, detail::scalar_as<T>(a)}, place, condition,
                         b);
  } else if constexpr (!std::is_same_v<A, B>) {
    static_assert(detail::never<A, B>,
                  "[tessera] where chooses between numbers of two types; the result has one; write "
                  "both alike, as in where(c, 1.0f, 0.0f)");
    return where(condition, a, a, place);
  } else {
    using Else = fn::Fixed<fn::Select, 2, B>;
    return detail::apply(fn::Fixed<Else, 1, A>{Else{{}, b}, a}, place, condition);
  }
}

}  // namespace tessera
