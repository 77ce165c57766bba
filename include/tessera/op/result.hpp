// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The types of results: deduction and verdict at compile time, and nothing else. What a call does
/// is planned at run time (op/operators.hpp).
///
///     detail::Result<float, Grid, Call>     // ShardedTensor<float, Grid, P<data, _, model>>
#include <optional>

#include <tessera/plan/contract.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

/// Stands for "let the operator deduce the spec of its result".
struct Deduced {};

namespace detail {

template <char Letter> struct Dimension;   // facts of a message: which letter,
template <int Number> struct Operand;      // which operand (the result comes after the last),
template <class... Tensors> struct Given;  // and what was given

template <class Provider, class... Tensors> consteval bool demand() {
  constexpr Verdict v = Provider::verdict;
  if constexpr (!v.ok())
    return sizeof(InvalidOperator<v.rule, Operand<v.operand + 1>, Dimension<v.label>,
                                  Given<Tensors...>>) > 0;
  return true;
}

/// The sharding of an operator's result: `Out` on mesh M, or what the terms deduce.
template <class M, class Out> struct OutSharding {
  static constexpr Sharding make(const Terms&, const Shardings&) { return lower<M, Out>(); }
};
template <class M> struct OutSharding<M, Deduced> {
  static constexpr Sharding make(const Terms& terms, const Shardings& operands) {
    if (!check_terms(terms, operands, Sharding::replicated(terms.result.size()), true).ok())
      return Sharding::replicated(terms.result.size());
    return deduce(terms, operands);
  }
};

template <class M, class Out> consteval bool demand_out() {
  if constexpr (!std::is_same_v<Out, Deduced>) return demand_spec<M, Out>();
  return true;
}

template <class First, class... Rest> struct CommonMesh {
  static_assert((std::is_same_v<typename First::mesh_type, typename Rest::mesh_type> && ...),
                "[tessera] the operands live on different Mesh types; an operator takes tensors of "
                "one mesh; make them on the same mesh, or reshard between the meshes first");
  using type = typename First::mesh_type;
};
template <class First, class... Rest> struct CommonType {
  static_assert((std::is_same_v<typename First::value_type, typename Rest::value_type> && ...),
                "[tessera] the operands have different element types; a product takes one; cast "
                "one of them with map");
  using type = typename First::value_type;
};

template <class Contract> struct Accepts;  // facts of a message: what the call accepts,
template <class Contract> struct Needs;    // and what it would do, written as a contract

/// Instantiated only for a call that communicates more than it may; the assertion is the message,
/// the arguments are the facts.
template <class A, class N> struct BrokenContract {
  static_assert(
      never<A>,
      "[tessera] the call communicates more than its contract accepts; Needs<...> in "
      "this message is what it would do; widen the contract to that, or change the specs");
};
template <class N> struct BrokenContract<Accepts<NoContract>, N> {
  static_assert(never<N>,
                "[tessera] the call communicates, has no contract, and its mesh is Strict; "
                "Needs<...> in this message is what it would do; give the call that contract, as "
                "in einsum<\"ik,kj->ij\", Deduced, Only<...>> or reshard<Spec, Only<...>>");
};

/// Returns contract C of a call, for the planner; the call does not compile when no plan keeps it.
/// Nothing is planned here without a contract, unless the mesh is strict.
template <class Call, class C> constexpr std::optional<Contract> bound() {
  using M = typename Call::mesh;
  constexpr Contract contract = contract_of<M, C>();
  if constexpr (contract.bounded()) {
    constexpr bool kept = contract.covers(Call::needs(paper_mesh<M>(), contract));
    if constexpr (!kept) {
      constexpr Contract usual = Call::needs(paper_mesh<M>(), Contract{});
      static_assert(
          sizeof(
              BrokenContract<Accepts<C>, Needs<typename WrittenContract<M, usual.bits()>::type>>) >
          0);
    }
  }
  if constexpr (std::is_same_v<C, NoContract>)
    return std::nullopt;  // the mesh's own
  else
    return contract;
}

template <class T, class M, class Provider>
using Result = ShardedTensor<T, M, spec_of<M, Provider>>;

}  // namespace detail
}  // namespace tessera
