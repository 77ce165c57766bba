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
  return map(fn::Add{}, a, b);
}
template <TypedTensor A, TypedTensor B> auto operator-(const A& a, const B& b) {
  return map(fn::Subtract{}, a, b);
}
template <TypedTensor A, TypedTensor B> auto operator*(const A& a, const B& b) {
  return map(fn::Multiply{}, a, b);
}
template <TypedTensor A, TypedTensor B> auto operator/(const A& a, const B& b) {
  return map(fn::Divide{}, a, b);
}
template <TypedTensor A> auto operator-(const A& a) { return map(fn::Negate{}, a); }

// With a scalar of the tensor's element type.
template <TypedTensor A>
auto operator+(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::ShiftBy<typename A::value_type>{s}, a);
}
template <TypedTensor A>
auto operator+(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::ShiftBy<typename A::value_type>{s}, a);
}
template <TypedTensor A>
auto operator-(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::ShiftBy<typename A::value_type>{-s}, a);
}
template <TypedTensor A>
auto operator-(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::SubtractFrom<typename A::value_type>{s}, a);
}
template <TypedTensor A>
auto operator*(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::ScaleBy<typename A::value_type>{s}, a);
}
template <TypedTensor A>
auto operator*(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::ScaleBy<typename A::value_type>{s}, a);
}
template <TypedTensor A>
auto operator/(const A& a, std::type_identity_t<typename A::value_type> s) {
  return map(fn::DivideBy<typename A::value_type>{s}, a);
}
template <TypedTensor A>
auto operator/(std::type_identity_t<typename A::value_type> s, const A& a) {
  return map(fn::DivideInto<typename A::value_type>{s}, a);
}

/// e to the x.
template <TypedTensor A> auto exp(const A& x) { return map(fn::Exp{}, x); }
/// The natural logarithm.
template <TypedTensor A> auto log(const A& x) { return map(fn::Log{}, x); }
template <TypedTensor A> auto tanh(const A& x) { return map(fn::Tanh{}, x); }
template <TypedTensor A> auto sqrt(const A& x) { return map(fn::Sqrt{}, x); }
/// The larger of x and 0.
template <TypedTensor A> auto relu(const A& x) { return map(fn::Relu{}, x); }
/// x times the normal distribution function of x, exactly (by erf). Source: Hendrycks and Gimpel
/// 2016, section 2.
template <TypedTensor A> auto gelu(const A& x) { return map(fn::Gelu{}, x); }
/// The elementwise larger, or smaller, of two tensors.
template <TypedTensor A, TypedTensor B> auto maximum(const A& a, const B& b) {
  return map(fn::Maximum{}, a, b);
}
template <TypedTensor A, TypedTensor B> auto minimum(const A& a, const B& b) {
  return map(fn::Minimum{}, a, b);
}
template <TypedTensor A> auto abs(const A& x) { return map(fn::Abs{}, x); }

}  // namespace tessera
