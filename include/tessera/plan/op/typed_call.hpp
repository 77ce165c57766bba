// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Typed calls while compiling: the result of a call and whether it is legal, from its types.
/// Operators and plan<...>(...) of the same types share this code.
///
///     detail::Result<float, Grid, Call>     // ShardedTensor<float, Grid, P<data, _, model>>
///
/// Where operands are open, so is what depends on an open entry: the call is deduced once with all
/// of them whole, and once for each with an axis there that no mesh has; where that axis comes to
/// light in the result, its entry is Open. The rest is promised.
///
/// Laws: only names decide; a result's entry is Open only if an operand's is.
#include <tessera/mesh/manual.hpp>
#include <tessera/plan/check/contract.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/equation.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/spec/typed_tensor.hpp>

namespace tessera {

/// Stands for "let the operator deduce the spec of its result".
struct Deduced {};

namespace detail {

template <char Letter> struct Dimension;   // facts of a message: the letter,
template <int Number> struct Operand;      // the operand (the result counts after the last),
template <class... Tensors> struct Given;  // and the given types

/// Whether an equation was too long; then it has already reported the error.
template <class Provider> consteval bool too_long() {
  if constexpr (requires { Provider::terms; }) return Provider::terms.operands.empty();
  if constexpr (requires { Provider::operation.terms; })
    return Provider::operation.terms.operands.empty();
  return false;
}
template <class Provider, class... Tensors> consteval bool demand() {
  constexpr Verdict v = Provider::verdict;
  if constexpr (v.ok() || !(founded<Tensors> && ...))
    return true;
  else if constexpr (!too_long<Provider>())
    return InvalidOperator<v.rule, Operand<v.operand + 1>, Dimension<v.label>,
                           Given<Tensors...>>::said();
  return true;
}

/// Checks the spec that a call asks for; `open`: an operand is.
template <class M, class Out, bool open = false> consteval bool demand_out() {
  if constexpr (!std::is_same_v<Out, Deduced>) {
    if constexpr (!open && has_open(lower<M, Out>()))
      return InvalidOperator<Rule::nothing_open, Out, M>::said();
    return demand_spec<M, Out>();
  }
  return true;
}

/// The mesh of the result of a call on tensors of these meshes, and whether there is one.
template <class M, class... Rest> struct JoinedMeshes {
  static constexpr bool joins = true;
  using mesh_type = M;
};
template <class M, class Next, class... Rest>
struct JoinedMeshes<M, Next, Rest...> : JoinedMeshes<typename JoinedMesh<M, Next>::type, Rest...> {
  using Others = JoinedMeshes<typename JoinedMesh<M, Next>::type, Rest...>;
  static constexpr bool joins = JoinedMesh<M, Next>::joins && Others::joins;
};

template <class First, class... Rest> struct CommonMesh {
  static constexpr bool same =
      (std::is_same_v<typename First::mesh_type, typename Rest::mesh_type> && ...);
  using Joined = typename Choose<same>::template type<
      First, JoinedMeshes<typename First::mesh_type, typename Rest::mesh_type...>>;
  using type = typename Joined::mesh_type;
  static consteval bool said() {
    if constexpr (!same)
      static_assert(
          Joined::joins,
          "[tessera] the operands live on different Mesh types; an operator takes tensors of "
          "one mesh; make them on the same mesh, or reshard between the meshes first");
    static_assert(!is_part_of_sum<type>,
                  "[tessera] an operand is a part of a sum over an axis that manual names, and is "
                  "used as if it were the sum; all_reduce_over<axis>(x) or "
                  "reduce_scatter_over<axis, dimension>(x) finishes it");
    return true;
  }
  static_assert(said());
};

/// S, or a substitute when the call has a mistake.
template <bool Sound, class S>
using SpecWhere = typename Choose<Sound>::template type<S, Unfounded<S>>;
/// The result of a call, which says whether it is `sound`.
template <class T, class M, class Provider>
using Result = ShardedTensor<T, M, SpecWhere<Provider::sound, spec_of<M, Provider>>>;

/// The description of an operand from its type, with extents that stand for all; what is open is
/// whole.
template <TypedTensor A> constexpr TensorDesc desc_of_type() {
  const DType type = dtype_of<typename TensorFacts<A>::value_type>;
  if constexpr (TensorFacts<A>::open)
    return {type, Extents(TensorFacts<A>::rank, 5040),
            whole_where_open(TensorFacts<A>::sharding())};
  else
    return {type, Extents(TensorFacts<A>::rank, 5040), TensorFacts<A>::sharding()};
}

/// Returns the operation with the sharding of its result, where it takes one: `Out` on mesh M, or
/// the deduced one.
template <class M, class Out, class Op>
constexpr Op completed(Op operation, const TensorDescs& operands) {
  if constexpr (!std::is_same_v<Out, Deduced>)
    operation.out = whole_where_open(lower<M, Out>());  // an Open entry has been reported
  else if constexpr (requires { operation.out; })
    operation.out = operation.deduced(operands);
  return operation;
}

/// The return type of a typed call; a substitute where a rule is broken, which is reported
/// elsewhere.
template <class Op>
constexpr TensorDescs results_of_type(const Op& operation, const TensorDescs& operands,
                                      const Verdict& verdict) {
  if (verdict.ok()) return results_of_stand_in(operation, operands);
  if constexpr (requires { operation.out; })
    return {TensorDesc{operands[0].type, {}, operation.out}};
  else
    return operands;
}
/// An axis that no mesh has, by which an open entry is followed through an operator.
inline constexpr int followed_axis = 13;

/// A call with open operands: how it is deduced. `Types` are the operands' shardings with what is
/// open, `operands` their descriptions with that whole.
template <class By, class M, class Out> struct OpenCall {
  static constexpr bool deduced = std::is_same_v<Out, Deduced>;

  static constexpr Sharding stated() {
    if constexpr (deduced)
      return {};
    else
      return lower<M, Out>();
  }
  /// Returns the operator on these operands, into `out` where the caller states it.
  static constexpr auto made(const TensorDescs& operands, const Sharding& out) {
    auto operation = By::make(operands);
    if constexpr (requires { operation.out; })
      operation.out = deduced ? operation.deduced(operands) : out;
    return operation;
  }
  /// Calls see(operands, out) once for each open entry, which is followed_axis there.
  template <class See>
  static constexpr void follow(const TensorDescs& operands, const Shardings& types,
                               const See& see) {
    const Sharding out = whole_where_open(stated());
    for (int i = 0; i < types.size(); ++i)
      for (int d = 0; d < types[i].rank(); ++d)
        if (is_open(types[i][d])) {
          TensorDescs one = operands;
          one[i].sharding[d] = AxisList{followed_axis};
          see(one, out);
        }
    for (int d = 0; d < out.rank(); ++d)
      if (is_open(stated()[d])) {
        Sharding one = out;
        one[d] = AxisList{followed_axis};
        see(operands, one);
      }
  }
  /// Opens the dimensions of `s` in which the axis has come to light.
  static constexpr void open(Sharding& s, const Sharding& seen) {
    for (int d = 0; d < s.rank() && d < seen.rank(); ++d)
      if (seen[d].contains(followed_axis)) s[d] = AxisList{open_axis};
  }
  /// Returns the operator, whose result is open where it depends on what is.
  template <class Op>
  static constexpr Op opened(Op operation, const TensorDescs& operands, const Shardings& types) {
    if constexpr (requires { operation.out; })
      follow(operands, types, [&](const TensorDescs& one, const Sharding& out) {
        open(operation.out, made(one, out).out);
      });
    return operation;
  }
  static constexpr TensorDescs opened_results(TensorDescs results, const TensorDescs& operands,
                                              const Shardings& types, const Verdict& verdict) {
    if (verdict.ok())
      follow(operands, types, [&](const TensorDescs& one, const Sharding& out) {
        const TensorDescs seen = results_of_stand_in(made(one, out), one);
        for (int r = 0; r < results.size(); ++r) open(results[r].sharding, seen[r].sharding);
      });
    return results;
  }
};

/// Whether the function of an operator, if it has one, accepts the operands' elements.
template <class By> inline constexpr bool can_be_called = true;
template <class By>
  requires requires { By::function::callable; }
inline constexpr bool can_be_called<By> = By::function::callable;
template <class Call, class... A> struct Demanded {
  static constexpr bool value = demand<Call, A...>();
};

/// The sharding of a further result of a typed call.
template <class Call, int I> struct NthOf {
  static constexpr Sharding value = Call::results[I].sharding;
  static constexpr bool sound = Call::sound;
};

template <class... A>
concept TypedTensors = (TypedTensor<A> && ...);
template <class... A>
concept AnyOpen = (TensorFacts<A>::open || ...);

/// An operator on tensors of these types: its operation, whether it is legal, and the types of its
/// results. By::make(operands) returns the operation, without the sharding of its result.
/// Constrained, since clang 14 names the result of an overload before it looks at its constraints.
template <class By, class Out, class... A>
  requires TypedTensors<A...>
struct Typed {
  using by = By;
  using mesh = typename CommonMesh<TensorFacts<A>...>::type;
  static_assert(demand_out<mesh, Out>());
  static constexpr TensorDescs operands{desc_of_type<A>()...};
  static constexpr auto operation = completed<mesh, Out>(By::make(operands), operands);
  static constexpr Verdict verdict = check_stand_in(operation, operands);
  static constexpr bool sound = verdict.ok() && can_be_called<By> && (founded<A> && ...);
  static_assert(Choose<verdict.ok()>::template type<std::true_type, Demanded<Typed, A...>>::value);
  static constexpr TensorDescs results = results_of_type(operation, operands, verdict);
  static constexpr Sharding value = results[0].sharding;
  using type = element_of<results[0].type>;
  using result = Result<type, mesh, Typed>;
};

/// A call on open tensors: its operation and its results are open where they depend on what is
/// open.
template <class By, class Out, class... A>
  requires(TypedTensors<A...>&& AnyOpen<A...>)
struct Typed<By, Out, A...> {
  using by = By;
  using mesh = typename CommonMesh<TensorFacts<A>...>::type;
  using call = OpenCall<By, mesh, Out>;
  static constexpr bool open = true;
  static_assert(demand_out<mesh, Out, true>());
  static constexpr TensorDescs operands{desc_of_type<A>()...};
  static constexpr Shardings types{TensorFacts<A>::sharding()...};
  static constexpr auto whole = call::made(operands, whole_where_open(call::stated()));
  static constexpr Verdict verdict = check_stand_in(whole, operands);
  static constexpr bool sound = verdict.ok() && can_be_called<By> && (founded<A> && ...);
  static_assert(Choose<verdict.ok()>::template type<std::true_type, Demanded<Typed, A...>>::value);
  static constexpr auto operation = call::opened(whole, operands, types);
  static constexpr TensorDescs results =
      call::opened_results(results_of_type(whole, operands, verdict), operands, types, verdict);
  static constexpr Sharding value = results[0].sharding;
  using type = element_of<results[0].type>;
  using result = Result<type, mesh, Typed>;
};

/// Result I of a typed call.
template <class Call, int I> struct ResultOf {
  using type = Result<element_of<Call::results[I].type>, typename Call::mesh, NthOf<Call, I>>;
};

/// How einsum<E> is made.
template <Equation E> struct EinsumBy {
  static constexpr ops::Einsum make(const TensorDescs&) { return {parse(E.view())}; }
};
template <Equation E, class Out, class... A> using TypedEinsum = Typed<EinsumBy<E>, Out, A...>;

/// How reduce<Kind, E> is made.
template <class Kind, Equation E> struct ReduceBy {
  static constexpr ops::Reduce make(const TensorDescs& x) {
    return reduction_of<Kind>(parse(E.view()), x);
  }
};
template <class Kind, Equation E, class Out, class A>
using TypedReduce = Typed<ReduceBy<Kind, E>, Out, A>;

/// How reshard<S> is made: S is its `Out`.
struct ReshardBy {
  static constexpr ops::Reshard make(const TensorDescs&) { return {}; }
};
template <class S, class A> using TypedReshard = Typed<ReshardBy, S, A>;

}  // namespace detail
}  // namespace tessera
