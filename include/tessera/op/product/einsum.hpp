// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Products of tensors by an equation, partitioned as their types say.
///
///     auto h = einsum<"bsm,mh->bsh">(x, w);                          // spec deduced
///     auto y = einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out);   // reduce-scatter over model
///     auto z = einsum<"ik,kj->ij", P<_, _, Unreduced<Sum, model>>>(a, b);   // the sum left open
///
/// Laws: equals the einsum of the whole tensors (integers exactly, floating point to rounding); the
/// result's spec depends on names alone.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/typed_call.hpp>

namespace tessera {
namespace detail {
template <Equation E, class Out, class Bound, TypedTensor... A>
typename TypedEinsum<E, Out, A...>::result run_einsum(const CallOptions& call, const A&... a) {
  using Typed = TypedEinsum<E, Out, A...>;
  const OperandList operands{&a.core()...};
  return typename Typed::result(einsum_of_many(
      Typed::operation, operands, typed_site<Typed, Bound>(E.view(), call, *operands[0])));
}

/// Runs an equation that is known at run time; without a sharding the result's is deduced.
inline DynamicTensor run_einsum(std::string_view equation, const OperandList& operands,
                                const CallOptions& call) {
  const CallSite site = call.sharded_site(equation);
  ops::Einsum operation{parse(equation)};
  mesh_of(*operands[0], site);
  operation.out = call.out() != nullptr ? *call.out() : operation.deduced(descs_of(operands));
  return DynamicTensor(einsum_of_many(operation, operands, site));
}
}  // namespace detail

/// Returns the product of a and b by the equation E, whose letters name dimensions: with
/// "bsm,mh->bsh" a is (b, s, m), b is (m, h) and the result (b, s, h), summed over m. `Out` names
/// the spec of the result, else it is deduced: each dimension takes its operands' sharding, and the
/// result is finished. `Bound` is a contract, such as Only<gathers<data>>. Communication: the
/// cheapest of the ways within `Bound`, which plan<E, Out>(...) shows: all-gathers of an operand, a
/// reduce-scatter or an all-reduce of the result where a summed letter is split, an exchange, or
/// none. Collective over the mesh. Throws ShapeError when extents disagree. Source: GShard,
/// section 3.3.2 (resharding, accumulating partial results, gathering an operand).
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
typename detail::TypedEinsum<E, Out, A, B>::result einsum(const A& a, const B& b,
                                                          const CallOptions& call = Where::here()) {
  using Typed = detail::TypedEinsum<E, Out, A, B>;
  return typename Typed::result(detail::run(
      {Typed::operation,
       {&a.core(), &b.core()},
       detail::typed_site(E.view(), call, a.core(),
                          detail::bound<detail::Held<Typed, Bound>, Bound>(), Typed::value)}));
}

/// Returns one tensor with the dimensions summed that the result leaves out, and the others
/// reordered: with "ijk->ki" x is (i, j, k) and the result (k, i). Communication: that of the sum.
/// Collective over the mesh. Throws ShapeError where one letter has two extents.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
typename detail::TypedEinsum<E, Out, A>::result einsum(const A& a,
                                                       const CallOptions& call = Where::here()) {
  return detail::run_einsum<E, Out, Bound>(call, a);
}

/// Returns the product of three to eight tensors, multiplied two at a time in the order of least
/// cost, communication included (plan/op/product/einsum_order.hpp): with "ij,jk,kl->il" they are
/// (i, j), (j, k) and (k, l). Communication: that of the products, each with the deduced result.
/// Collective over the mesh. Throws ShapeError when extents disagree.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B,
          TypedTensor C>
typename detail::TypedEinsum<E, Out, A, B, C>::result einsum(
    const A& a, const B& b, const C& c, const CallOptions& call = Where::here()) {
  return detail::run_einsum<E, Out, Bound>(call, a, b, c);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B,
          TypedTensor C, TypedTensor D>
typename detail::TypedEinsum<E, Out, A, B, C, D>::result einsum(
    const A& a, const B& b, const C& c, const D& d, const CallOptions& call = Where::here()) {
  return detail::run_einsum<E, Out, Bound>(call, a, b, c, d);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor... A>
  requires(sizeof...(A) >= 5 && sizeof...(A) <= max_operands)
typename detail::TypedEinsum<E, Out, A...>::result einsum(const A&... a) {
  return detail::run_einsum<E, Out, Bound>(Where{}, a...);
}
/// With the place of the call first, since it cannot follow a pack: einsum<E>(at(), a, b, ...).
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor... A>
  requires(sizeof...(A) >= 1 && sizeof...(A) <= max_operands)
typename detail::TypedEinsum<E, Out, A...>::result einsum(At at, const A&... a) {
  return detail::run_einsum<E, Out, Bound>(at.where, a...);
}

/// This overload takes everything at run time; without a sharding the result's is deduced.
inline DynamicTensor einsum(std::string_view equation, const DynamicTensor& a,
                            const DynamicTensor& b, const CallOptions& call = Where::here()) {
  return detail::run_einsum(equation, {&a.core(), &b.core()}, call);
}
/// Any number of tensors from one to eight.
inline DynamicTensor einsum(std::string_view equation, const detail::DynamicTensors& tensors,
                            const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site(equation);
  return detail::run_einsum(equation, detail::operands_of({}, tensors, 1, site), call);
}

}  // namespace tessera
