// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Typed calls on paper: what a call's types say of its result, and whether it is legal. Operators
/// and plan<...>(...) of the same types go through the same.
///
///     detail::Result<float, Grid, Call>     // ShardedTensor<float, Grid, P<data, _, model>>
///
/// Laws: names alone decide.
#include <tessera/plan/contract.hpp>
#include <tessera/plan/equation.hpp>
#include <tessera/plan/type_rules.hpp>
#include <tessera/plan/verdict.hpp>
#include <tessera/spec/typed_tensor.hpp>

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
    return InvalidOperator<v.rule, Operand<v.operand + 1>, Dimension<v.label>,
                           Given<Tensors...>>::said();
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
  static consteval bool said() {
    static_assert(
        (std::is_same_v<typename First::mesh_type, typename Rest::mesh_type> && ...),
        "[tessera] the operands live on different Mesh types; an operator takes tensors of "
        "one mesh; make them on the same mesh, or reshard between the meshes first");
    return true;
  }
  static_assert(said());
  using type = typename First::mesh_type;
};
template <class First, class... Rest> struct CommonType {
  static consteval bool said() {
    static_assert((std::is_same_v<typename First::value_type, typename Rest::value_type> && ...),
                  "[tessera] the operands have different element types; a product takes one; cast "
                  "one of them with map");
    return true;
  }
  static_assert(said());
  using type = typename First::value_type;
};

template <class T, class M, class Provider>
using Result = ShardedTensor<T, M, spec_of<M, Provider>>;

/// Constrained, since clang 14 names the result of an overload before it looks at its constraints.
template <Equation E, class Out, TypedTensor... A> struct EinsumCall {
  using mesh = typename CommonMesh<TensorFacts<A>...>::type;
  using type = typename CommonType<TensorFacts<A>...>::type;
  static_assert(demand_elements<check_product_type(dtype_of<type>).rule, type>());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = parse(E.view());
  static constexpr Shardings operands{TensorFacts<A>::sharding()...};
  static constexpr Sharding value = OutSharding<mesh, Out>::make(terms, operands);
  static constexpr Verdict verdict = check_einsum(terms, operands, value);
  static_assert(demand<EinsumCall, A...>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_einsum(terms, operands, value, on, contract)
                        : Contract::nothing();
  }
  using result = Result<type, mesh, EinsumCall>;
};

}  // namespace detail
}  // namespace tessera
