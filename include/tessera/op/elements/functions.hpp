// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Functions of one real number, on tensors of float or double: each is one map. The functors in
/// kernel/functions/ say what they compute, kernel/functions.hpp how exactly.
///
///     auto y = tanh(x) * sigmoid(z);
///     DynamicTensor d = gelu(DynamicTensor(x));
///
/// Laws: name(x) == map(fn::Name{}, x). Each returns a tensor of x's extents and sharding, dynamic
/// where x is; a call on dynamic tensors may have a Contract. Communication: none. Collective over
/// the mesh. Those marked monotone may act on Unreduced<Max> and on Unreduced<Min>. Throw nothing
/// of their own.
#include <tessera/kernel/functions/activation.hpp>
#include <tessera/kernel/functions/rounding.hpp>
#include <tessera/op/elements/named_function.hpp>

namespace tessera {

/// e to the x; monotone
template <detail::AnyTensor A> auto exp(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Exp{}, call, x);
}
/// 2 to the x; monotone
template <detail::AnyTensor A> auto exp2(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Exp2{}, call, x);
}
/// e to the x, minus 1, exact near 0; monotone
template <detail::AnyTensor A> auto expm1(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Expm1{}, call, x);
}
/// The natural logarithm.
template <detail::AnyTensor A> auto log(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Log{}, call, x);
}
/// The logarithm to base 2.
template <detail::AnyTensor A> auto log2(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Log2{}, call, x);
}
/// The logarithm to base 10.
template <detail::AnyTensor A> auto log10(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Log10{}, call, x);
}
/// log(1 + x), exact near 0
template <detail::AnyTensor A> auto log1p(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Log1p{}, call, x);
}
/// The square root; NaN below 0.
template <detail::AnyTensor A> auto sqrt(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Sqrt{}, call, x);
}
/// 1 / sqrt(x)
template <detail::AnyTensor A> auto rsqrt(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Rsqrt{}, call, x);
}
/// The cube root; monotone.
template <detail::AnyTensor A> auto cbrt(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Cbrt{}, call, x);
}
/// The sine, of radians.
template <detail::AnyTensor A> auto sin(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Sin{}, call, x);
}
/// The cosine, of radians.
template <detail::AnyTensor A> auto cos(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Cos{}, call, x);
}
/// The tangent, of radians.
template <detail::AnyTensor A> auto tan(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Tan{}, call, x);
}
/// The inverse sine, in [-pi/2, pi/2]; NaN beyond -1 and 1.
template <detail::AnyTensor A> auto asin(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Asin{}, call, x);
}
/// The inverse cosine, in [0, pi]; NaN beyond -1 and 1.
template <detail::AnyTensor A> auto acos(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Acos{}, call, x);
}
/// The inverse tangent, in (-pi/2, pi/2); monotone.
template <detail::AnyTensor A> auto atan(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Atan{}, call, x);
}
/// The hyperbolic sine; monotone.
template <detail::AnyTensor A> auto sinh(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Sinh{}, call, x);
}
/// The hyperbolic cosine.
template <detail::AnyTensor A> auto cosh(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Cosh{}, call, x);
}
/// The hyperbolic tangent; monotone.
template <detail::AnyTensor A> auto tanh(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Tanh{}, call, x);
}
/// The inverse hyperbolic sine; monotone.
template <detail::AnyTensor A> auto asinh(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Asinh{}, call, x);
}
/// The inverse hyperbolic cosine; NaN below 1.
template <detail::AnyTensor A> auto acosh(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Acosh{}, call, x);
}
/// The inverse hyperbolic tangent; NaN beyond -1 and 1.
template <detail::AnyTensor A> auto atanh(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Atanh{}, call, x);
}
/// The error function; monotone.
template <detail::AnyTensor A> auto erf(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Erf{}, call, x);
}
/// 1 / (1 + e^-x); monotone
template <detail::AnyTensor A> auto sigmoid(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Sigmoid{}, call, x);
}
/// x / (1 + e^-x)
template <detail::AnyTensor A> auto silu(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Silu{}, call, x);
}
/// The larger of x and 0; monotone. Also of integers.
template <detail::AnyTensor A> auto relu(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Relu{}, call, x);
}
/// x times the normal distribution function of x, exactly (by erf), -0 at minus infinity. Source:
/// Hendrycks and Gimpel 2016, section 2.
template <detail::AnyTensor A> auto gelu(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Gelu{}, call, x);
}
/// The largest whole number not above x; monotone. This and the next four also of integers.
template <detail::AnyTensor A> auto floor(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Floor{}, call, x);
}
/// The smallest whole number not below x; monotone.
template <detail::AnyTensor A> auto ceil(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Ceil{}, call, x);
}
/// The nearest whole number, halves to the even one; monotone.
template <detail::AnyTensor A> auto round(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Round{}, call, x);
}
/// x without its fraction; monotone
template <detail::AnyTensor A> auto trunc(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Trunc{}, call, x);
}
/// -1, 0 or 1; monotone
template <detail::AnyTensor A> auto sign(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Sign{}, call, x);
}
/// The angle of the point (x, y), in (-pi, pi]; tensors or numbers, y first.
template <class A, class B>
  requires detail::TensorAndOther<A, B>
auto atan2(const A& y, const B& x, const CallOptions& call = Where::here()) {
  return detail::apply_two(fn::Atan2{}, call, y, x);
}
/// min(max(x, low), high); with two numbers it is monotone. A number beyond the ends of a type of
/// integers stands for that end. Throws UsageError where low is above what the type holds and high
/// too, or high is below: the result is no element.
template <detail::AnyTensor A, Scalar L, Scalar H>
auto clamp(const A& x, L low, H high, const CallOptions& call = Where::here()) {
  if constexpr (TypedTensor<A>) {
    using T = typename A::value_type;
    static_assert(detail::demand_scalar<T, L>() && detail::demand_scalar<T, H>());
    const detail::CallSite site{detail::function_name<fn::Clamp>(), call.where()};
    return detail::apply(detail::clamp_to<T>(low, high, site), call, x);
  } else {
    const std::string_view name = detail::function_name<fn::Clamp>();
    const detail::CallSite site{name, call.where()};
    const auto between = [&](auto zero) {
      return detail::clamp_to<decltype(zero)>(low, high, site);
    };
    return detail::apply_made(between, name, call, x);
  }
}
template <detail::AnyTensor A, detail::AnyTensor L, detail::AnyTensor H>
auto clamp(const A& x, const L& low, const H& high, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Clamp{}, call, x, low, high);
}

}  // namespace tessera
