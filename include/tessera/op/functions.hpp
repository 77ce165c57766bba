// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Functions of one real number, on tensors of float or double: each is one map. What they compute,
/// and how exactly, is written beside the functors in kernel/functions/.
///
///     auto y = tanh(x) * sigmoid(z);
///
/// Laws: name(x) == map(fn::Name{}, x). Each returns a tensor of x's extents and sharding.
/// Communication: none. Collective over the mesh. Those marked monotone may act on Unreduced<Max>
/// and Unreduced<Min>.
#include <tessera/kernel/functions/activation.hpp>
#include <tessera/kernel/functions/rounding.hpp>
#include <tessera/op/scalar.hpp>

namespace tessera {

/// e to the x; monotone
template <TypedTensor A> auto exp(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Exp{}, where, x);
}
/// 2 to the x; monotone
template <TypedTensor A> auto exp2(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Exp2{}, where, x);
}
/// e to the x, minus 1, exact near 0; monotone
template <TypedTensor A> auto expm1(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Expm1{}, where, x);
}
/// The natural logarithm.
template <TypedTensor A> auto log(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Log{}, where, x);
}
/// The logarithm to base 2.
template <TypedTensor A> auto log2(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Log2{}, where, x);
}
/// The logarithm to base 10.
template <TypedTensor A> auto log10(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Log10{}, where, x);
}
/// log(1 + x), exact near 0
template <TypedTensor A> auto log1p(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Log1p{}, where, x);
}
/// The square root; NaN below 0.
template <TypedTensor A> auto sqrt(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Sqrt{}, where, x);
}
/// 1 / sqrt(x)
template <TypedTensor A> auto rsqrt(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Rsqrt{}, where, x);
}
/// The cube root; monotone.
template <TypedTensor A> auto cbrt(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Cbrt{}, where, x);
}
template <TypedTensor A> auto sin(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Sin{}, where, x);
}
template <TypedTensor A> auto cos(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Cos{}, where, x);
}
template <TypedTensor A> auto tan(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Tan{}, where, x);
}
template <TypedTensor A> auto asin(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Asin{}, where, x);
}
template <TypedTensor A> auto acos(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Acos{}, where, x);
}
/// monotone
template <TypedTensor A> auto atan(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Atan{}, where, x);
}
/// monotone
template <TypedTensor A> auto sinh(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Sinh{}, where, x);
}
template <TypedTensor A> auto cosh(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Cosh{}, where, x);
}
/// monotone
template <TypedTensor A> auto tanh(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Tanh{}, where, x);
}
/// monotone
template <TypedTensor A> auto asinh(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Asinh{}, where, x);
}
template <TypedTensor A> auto acosh(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Acosh{}, where, x);
}
template <TypedTensor A> auto atanh(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Atanh{}, where, x);
}
/// The error function; monotone.
template <TypedTensor A> auto erf(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Erf{}, where, x);
}
/// 1 / (1 + e^-x); monotone
template <TypedTensor A> auto sigmoid(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Sigmoid{}, where, x);
}
/// x / (1 + e^-x)
template <TypedTensor A> auto silu(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Silu{}, where, x);
}
/// The larger of x and 0; monotone. Also of integers.
template <TypedTensor A> auto relu(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Relu{}, where, x);
}
/// x times the normal distribution function of x, exactly (by erf). Source: Hendrycks and Gimpel
/// 2016, section 2.
template <TypedTensor A> auto gelu(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Gelu{}, where, x);
}
/// The largest whole number not above x; monotone. This and the next four also of integers.
template <TypedTensor A> auto floor(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Floor{}, where, x);
}
/// The smallest whole number not below x; monotone.
template <TypedTensor A> auto ceil(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Ceil{}, where, x);
}
/// The nearest whole number, halves to the even one; monotone.
template <TypedTensor A> auto round(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Round{}, where, x);
}
/// x without its fraction; monotone
template <TypedTensor A> auto trunc(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Trunc{}, where, x);
}
/// -1, 0 or 1; monotone
template <TypedTensor A> auto sign(const A& x, Where where = Where::here()) {
  return detail::apply(fn::Sign{}, where, x);
}
/// The angle of the point (x, y), in (-pi, pi]; tensors or numbers, y first.
template <class A, class B>
  requires TensorAndOther<A, B>
auto atan2(const A& y, const B& x, Where where = Where::here()) {
  return detail::apply_two(fn::Atan2{}, where, y, x);
}
/// min(max(x, low), high); with two numbers it is monotone.
template <TypedTensor A, Scalar L, Scalar H>
auto clamp(const A& x, L low, H high, Where where = Where::here()) {
  using T = typename A::value_type;
  return detail::apply(fn::ClampTo<T>{detail::scalar_as<T>(low), detail::scalar_as<T>(high)}, where,
                       x);
}
template <TypedTensor A, TypedTensor L, TypedTensor H>
auto clamp(const A& x, const L& low, const H& high, Where where = Where::here()) {
  return detail::apply(fn::Clamp{}, where, x, low, high);
}

}  // namespace tessera
