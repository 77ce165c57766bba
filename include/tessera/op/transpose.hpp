// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reordering of dimensions: the sharding goes with them, so nothing is communicated.
///
///     auto wt = transpose<"ij->ji">(w);            // P<data, model> becomes P<model, data>
///
/// Laws: transpose<"ji->ij">(transpose<"ij->ji">(x)) equals x.
#include <tessera/op/dynamic_call.hpp>
#include <tessera/op/operators.hpp>
#include <tessera/op/result.hpp>

namespace tessera {
namespace detail {
template <Equation E, class Out, class A> struct TransposeCall {
  using mesh = typename A::mesh_type;
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = parse(E.view());
  static constexpr Sharding value = [] {
    Sharding s = OutSharding<mesh, Out>::make(terms, {A::sharding()});
    return std::is_same_v<Out, Deduced>
               ? s.with_partial(A::sharding().partial, A::sharding().reduction)
               : s;
  }();
  static constexpr Verdict verdict = check_transpose(terms, {A::sharding()}, value);
  static_assert(demand<TransposeCall, A>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_transpose(terms, A::sharding(), value, on, contract)
                        : Contract::nothing();
  }
  using result = Result<typename A::value_type, mesh, TransposeCall>;
};
}  // namespace detail

/// Returns x with its dimensions reordered: transpose<"ij->ji">(x). Communication: none unless
/// `Out` asks for some. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
typename detail::TransposeCall<E, Out, A>::result transpose(const A& x,
                                                            Where where = Where::here()) {
  using Typed = detail::TransposeCall<E, Out, A>;
  return typename Typed::result(detail::transpose(
      Typed::terms, x.core(), Typed::value, {E.view(), where, detail::bound<Typed, Bound>()}));
}
inline DynamicTensor transpose(std::string_view equation, const DynamicTensor& x,
                               const DynamicCall& call = Where::here()) {
  const Terms terms = parse(equation);
  const CallSite site = call.site(equation);
  detail::require(check_transpose(terms, {x.sharding()}, Sharding::replicated(terms.result.size())),
                  terms, *x.core().mesh(), site);
  const Sharding out =
      deduce(terms, {x.sharding()}).with_partial(x.sharding().partial, x.sharding().reduction);
  return DynamicTensor(detail::transpose(terms, x.core(), out, site));
}

}  // namespace tessera
