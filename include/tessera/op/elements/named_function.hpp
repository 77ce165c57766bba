// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The implementation of named functions (op/elements/functions.hpp, arithmetic.hpp,
/// comparison.hpp, logic.hpp, complex.hpp, cast.hpp): one map each, of typed or dynamic tensors,
/// and of numbers beside them.
///
///     auto y = detail::apply_two(fn::Pow{}, where, x, 2);     // map(fn::Fixed<fn::Pow, 1, float>, x)
///
/// Laws: f(x, s) == f(x, a tensor of s), without the tensor. Where an operand is dynamic, so is the
/// result; its elements and sharding are as those for typed tensors. A function of dynamic tensors
/// is compiled for every element type that it takes.
#include <concepts>

#include <tessera/op/call/call_options.hpp>
#include <tessera/op/elements/beside.hpp>
#include <tessera/op/elements/map.hpp>

namespace tessera::detail {

/// Two operands of which one at least is a tensor.
template <class A, class B>
concept TensorAndOther = (AnyTensor<A> && (AnyTensor<B> || Scalar<B>)) ||
                         (Scalar<A> && AnyTensor<B>);

/// One operand at least is a tensor, none is dynamic, and they are of two types: such operators
/// carry no place.
template <class A, class B>
concept TypedAndOther = TensorAndOther<A, B> && !std::same_as<A, DynamicTensor> &&
                        !std::same_as<B, DynamicTensor> && !std::same_as<A, B>;

/// A tensor as the operand of an operator, which can have no last argument for the place of its
/// call: the tensor turns into this where the operator stands. No type is deduced through a
/// conversion, so that this tensor is dynamic, or of the other operand's type.
template <class X> struct Placed {
  X& tensor;
  Where where;
  Placed(X& of, Where at = Where::here()) : tensor(of), where(at) {}  // NOLINT: stands for a tensor
};
using PlacedTensor = Placed<const DynamicTensor>;
template <class A> using PlacedLike = Placed<const std::type_identity_t<A>>;
/// What stands on the other side.
template <class B>
concept EitherOperand = AnyTensor<B> || Scalar<B>;
template <class A>
concept OtherOperand = TypedTensor<A> || Scalar<A>;

/// Throws the error of a function for elements that it does not take: "Exp of int32: ...".
[[noreturn]] inline void throw_not_taken(Rule rule, DType type, CallSite site) {
  throw_broken(rule,
               std::string(site.label) + " of " + std::string(name_of(type)) + ": " +
                   tessera::explain(Verdict{.rule = rule}),
               site.where);
}
/// Returns the element type of the operands from `first` on. Throws UsageError where there are
/// several.
inline DType common_type(const OperandList& operands, int first, CallSite site) {
  for (const TensorCore* operand : operands) mesh_of(*operand, site);
  for (int i = first; i < operands.size(); ++i)
    if (operands[i]->type() != operands[first]->type())
      throw_broken(Rule::function_types_alike,
                   std::string(site.label) + ": " +
                       tessera::explain(Verdict{.rule = Rule::function_types_alike, .operand = i},
                                        {.operands = operands.size()}),
                   site.where);
  return operands[first]->type();
}
/// Dimensions line up from the right. Not a template, so that it is compiled once.
inline DynamicTensor map_from_the_right(DType type, Linearity claims, const MapKernel& kernel,
                                        const OperandList& operands, const Sharding* out,
                                        CallSite site) {
  FixedVector<int, max_operands> ranks;
  for (const TensorCore* operand : operands) ranks.push_back(operand->rank());
  ops::Map operation{broadcast_terms(ranks), type, claims, {}, false};
  operation.out = out != nullptr ? *out : operation.deduced(descs_of(operands));
  return DynamicTensor(run({operation, operands, site, {.kernel = kernel}}));
}
/// The kernel of f for operands whose element types are known when the program runs: one for each
/// type that there is. Those of float and double are as those of typed tensors; for the other types
/// only a loop is compiled.
template <class R, class F, class... T> MapKernel kernel_of_any(const F& f) {
  if constexpr (((std::is_floating_point_v<T> || std::is_same_v<T, bool>)&&...) &&
                (std::is_floating_point_v<T> || ...))
    return MapRunner<R, F, T...>::kernel(f);
  else
    return MapRunner<R, F, T...>::kernel(f, &LoopRunner<R, F, T...>::run);
}
/// f of tensors of elements T..., which the caller has checked. Throws UsageError where f does not
/// take them.
template <class... T, class F>
DynamicTensor apply_to(const F& f, const OperandList& operands, const Sharding* out,
                       CallSite site) {
  constexpr Rule rule = check_function<F, Elements, T...>().rule;
  if constexpr (rule == Rule::ok) {
    using R = typename FunctionResult<F, Elements, T...>::type;
    use_result_of<R, T...>();
    return map_from_the_right(dtype_of<R>, linearity<F, T...>, kernel_of_any<R, F, T...>(f),
                              operands, out, site);
  } else {
    throw_not_taken(rule, operands.back()->type(), site);
  }
}
/// f = make(T{}) of tensors whose elements T are known when the program runs, all alike.
template <class Make, AnyTensor... A>
DynamicTensor apply_made(const Make& make, std::string_view name, const CallOptions& call,
                         const A&... x) {
  const CallSite site = call.sharded_site(name);
  const OperandList operands{&x.core()...};
  return with_type(common_type(operands, 0, site), [&](auto zero) {
    return apply_to<typename Always<decltype(zero), A>::type...>(make(zero), operands, call.out(),
                                                                 site);
  });
}
/// A named function of tensors, one of them dynamic.
template <class F, AnyTensor... A>
  requires(std::same_as<A, DynamicTensor> || ...)
DynamicTensor apply(const F& f, const CallOptions& call, const A&... x) {
  return apply_made([&](auto) { return f; }, function_name<F>(), call, x...);
}

template <class F, class A, class B>
  requires TensorAndOther<A, B>
auto apply_two(const F& f, const CallOptions& call, const A& a, const B& b) {
  if constexpr (AnyTensor<A> && AnyTensor<B>) {
    return apply(f, call, a, b);
  } else if constexpr (TypedTensor<A>) {
    using T = typename A::value_type;
    return apply(typed_beside<F, 1, T>(f, b, {function_name<F>(), call.where()}), call, a);
  } else if constexpr (TypedTensor<B>) {
    using T = typename B::value_type;
    return apply(typed_beside<F, 0, T>(f, a, {function_name<F>(), call.where()}), call, b);
  } else {
    const std::string_view name = function_name<F>();
    const CallSite site{name, call.where()};
    if constexpr (AnyTensor<A>)
      return apply_made([&](auto x) { return beside<F, 1, decltype(x)>(f, b, site); }, name, call,
                        a);
    else
      return apply_made([&](auto x) { return beside<F, 0, decltype(x)>(f, a, site); }, name, call,
                        b);
  }
}
}  // namespace tessera::detail
