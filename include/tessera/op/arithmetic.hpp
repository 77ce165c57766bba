// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operators and named functions on tensors: each is one map.
///
///     auto y = relu(x + bias) * 0.5f;
///
/// Laws: each equals map(fn::Name{}, ...); + and - of two alike unfinished sums stay unfinished.
#include <tessera/op/map.hpp>

namespace tessera {

template <TypedTensor A, TypedTensor B> auto operator+(const A& a, const B& b) {
  return map(fn::Add{}, a, b, Where{});
}
template <TypedTensor A, TypedTensor B> auto operator-(const A& a, const B& b) {
  return map(fn::Subtract{}, a, b, Where{});
}
template <TypedTensor A, TypedTensor B> auto operator*(const A& a, const B& b) {
  return map(fn::Multiply{}, a, b, Where{});
}
template <TypedTensor A, TypedTensor B> auto operator/(const A& a, const B& b) {
  return map(fn::Divide{}, a, b, Where{});
}
template <TypedTensor A> auto operator-(const A& a) { return map(fn::Negate{}, a, Where{}); }

// With a scalar of the tensor's element type.
template <TypedTensor A>
auto operator+(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::ShiftBy<typename A::value_type>{s}, a, Where{});
}
template <TypedTensor A>
auto operator+(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::ShiftBy<typename A::value_type>{s}, a, Where{});
}
template <TypedTensor A>
auto operator-(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::ShiftBy<typename A::value_type>{-s}, a);
}
template <TypedTensor A>
auto operator-(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::SubtractFrom<typename A::value_type>{s}, a, Where{});
}
template <TypedTensor A>
auto operator*(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::ScaleBy<typename A::value_type>{s}, a, Where{});
}
template <TypedTensor A>
auto operator*(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::ScaleBy<typename A::value_type>{s}, a, Where{});
}
template <TypedTensor A>
auto operator/(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::DivideBy<typename A::value_type>{s}, a, Where{});
}
template <TypedTensor A>
auto operator/(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::DivideInto<typename A::value_type>{s}, a, Where{});
}

/// e to the x.
template <TypedTensor A> auto exp(const A& x, Where where = Where::here()) {
  return map(fn::Exp{}, x, where);
}
/// The natural logarithm.
template <TypedTensor A> auto log(const A& x, Where where = Where::here()) {
  return map(fn::Log{}, x, where);
}
template <TypedTensor A> auto tanh(const A& x, Where where = Where::here()) {
  return map(fn::Tanh{}, x, where);
}
template <TypedTensor A> auto sqrt(const A& x, Where where = Where::here()) {
  return map(fn::Sqrt{}, x, where);
}
/// The larger of x and 0.
template <TypedTensor A> auto relu(const A& x, Where where = Where::here()) {
  return map(fn::Relu{}, x, where);
}
/// x times the normal distribution function of x, exactly (by erf). Source: Hendrycks and Gimpel
/// 2016, section 2.
template <TypedTensor A> auto gelu(const A& x, Where where = Where::here()) {
  return map(fn::Gelu{}, x, where);
}
/// The elementwise larger, or smaller, of two tensors.
template <TypedTensor A, TypedTensor B>
auto maximum(const A& a, const B& b, Where where = Where::here()) {
  return map(fn::Maximum{}, a, b, where);
}
template <TypedTensor A, TypedTensor B>
auto minimum(const A& a, const B& b, Where where = Where::here()) {
  return map(fn::Minimum{}, a, b, where);
}
template <TypedTensor A> auto abs(const A& x, Where where = Where::here()) {
  return map(fn::Abs{}, x, where);
}

}  // namespace tessera
