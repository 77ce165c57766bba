// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a typed call keeps its contract. plan/op/typed_call.hpp deduces the type of its result;
/// op/call/operators.hpp plans it at run time.
///
///     detail::bound<Call, Only<gathers<data>>>()     // the contract; or the call does not compile
#include <optional>
#include <string>

#include <tessera/op/call/call_options.hpp>
#include <tessera/plan/check/contract.hpp>
#include <tessera/plan/op/typed_call.hpp>
#include <tessera/run/request.hpp>
#include <tessera/run/require_operands.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

namespace detail {

template <class Contract> struct Accepts;  // facts of a message: what the call accepts,
template <class Contract> struct Needs;    // and what it would do, written as a contract

/// Instantiated only for a call that communicates more than it may; the assertion is the message,
/// the arguments are the facts.
template <class A, class N> struct BrokenContract {
  static consteval bool said() {
    static_assert(
        never<A>,
        "[tessera] the call communicates more than its contract accepts; Needs<...> in "
        "this message is what it would do; widen the contract to that, or change the specs");
    return true;
  }
};
template <class N> struct BrokenContract<Accepts<NoContract>, N> {
  static consteval bool said() {
    static_assert(never<N>,
                  "[tessera] the call communicates, has no contract, and its mesh is Strict; "
                  "Needs<...> in this message is what it would do; give the call that contract, as "
                  "in einsum<\"ik,kj->ij\", Deduced, Only<...>> or reshard<Spec, Only<...>>");
    return true;
  }
};

/// Whether a call has open operands, so that its needs are known when it runs.
template <class Call> constexpr bool is_open_call() {
  if constexpr (requires { Call::open; }) return Call::open;
  return false;
}

/// Returns what a call needs on a mesh, under a contract.
template <class Call>
constexpr Contract typed_needs(const MeshShape& mesh, const Contract& contract) {
  if constexpr (is_open_call<Call>())
    return Contract::nothing();
  else if constexpr (requires { Call::operation; })
    return Call::verdict.ok() ? needs(Call::operation, Call::operands, mesh, contract)
                              : Contract::nothing();
  else
    return Call::needs(mesh, contract);
}

/// Returns contract C of a call, for the planner; the call does not compile when no plan keeps it.
/// Nothing is planned here without a contract, unless the mesh is strict.
template <class Call, class C> constexpr std::optional<Contract> bound() {
  using M = typename Call::mesh;
  constexpr Contract contract = contract_of<M, C>();
  if constexpr (contract.bounded()) {
    constexpr bool kept = contract.covers(typed_needs<Call>(stand_in_mesh<M>(), contract));
    if constexpr (!kept) {
      constexpr Contract usual = typed_needs<Call>(stand_in_mesh<M>(), Contract{});
      static_assert(BrokenContract<Accepts<C>,
                                   Needs<typename WrittenContract<M, usual.bits()>::type>>::said());
    }
  }
  if constexpr (std::is_same_v<C, NoContract>)
    return std::nullopt;  // the mesh's own
  else
    return contract;
}

/// Returns contract C of a call that needs none on a Strict mesh either.
template <class Call, class C> constexpr Contract free_bound() {
  if constexpr (std::is_same_v<C, NoContract>)
    return {};
  else
    return *bound<Call, C>();
}

/// Stands for every call on mesh M that no contract binds, so that bound is instantiated once for
/// all of them.
template <class M> struct AnyTyped { using mesh = M; };
template <class Call, class C>
using Held = typename Choose<contract_of<typename Call::mesh, C>().bounded()>::template type<
    Call, AnyTyped<typename Call::mesh>>;

[[noreturn]] inline void throw_other_sharding(const Sharding& out, const Sharding& promised,
                                              const TensorCore& x, CallSite site) {
  const AxisNames names = x.defined() ? AxisNames(x.mesh()->names()) : AxisNames();
  throw ShardingError(std::string(site.label) + ": the call asks for a result that is sharded " +
                          to_string(out, names) + ", and its type says " +
                          to_string(promised, names) +
                          "; the sharding of a typed call's result is a template argument; name "
                          "it there, or call it on dynamic tensors",
                      site.where);
}
/// Returns a typed call, of which x is an operand, as operators take it, under the name that
/// messages give it: held to `own`, its type's contract, and to the one that it is given. Throws
/// ShardingError when it is given another sharding than `promised`, its type's.
inline CallSite typed_site(std::string_view label, const CallOptions& options, const TensorCore& x,
                           const std::optional<Contract>& own, const Sharding& promised) {
  CallSite site = options.sharded_site(label);
  if (own && site.contract)
    site.contract = Contract::from_bits(own->bits() & site.contract->bits());
  else if (own)
    site.contract = own;
  if (options.out() != nullptr && !(*options.out() == promised))
    throw_other_sharding(*options.out(), promised, x, site);
  return site;
}
template <class Call, class C>
CallSite typed_site(std::string_view label, const CallOptions& options, const TensorCore& x) {
  return typed_site(label, options, x, bound<Held<Call, C>, C>(), Call::value);
}
/// Returns the same of a typed call whose result is not one tensor. Throws UsageError when it has a
/// destination.
template <class Call, class C>
CallSite fresh_typed_site(std::string_view label, const CallOptions& options, const TensorCore& x) {
  (void)options.fresh_sharded_site(label);
  return typed_site<Call, C>(label, options, x);
}
/// Carries out a typed call, whose operation is `Call`'s with what is known when it runs.
template <class Call, class C, class Op>
typename Call::result run_typed(std::string_view label, const CallOptions& options,
                                const Op& operation, const OperandList& operands,
                                const Extras& extras = {}) {
  return typename Call::result(
      run({operation, operands, typed_site<Call, C>(label, options, *operands[0]), extras}));
}
/// Whether a call with a dynamic operand leaves to its options what a typed call names by types.
template <class Out, class C> consteval bool demand_dynamic() {
  static_assert(std::is_same_v<Out, Deduced> && std::is_same_v<C, NoContract>,
                "[tessera] a call with a dynamic tensor names a spec or a contract as a template "
                "argument; its result is dynamic; give a Sharding or a Contract as the last "
                "argument");
  return true;
}
/// Carries out a call on dynamic tensors; without a sharding the result's is deduced.
template <class Op>
DynamicTensor run_dynamic(std::string_view label, const CallOptions& options, Op operation,
                          const OperandList& operands, const Extras& extras = {}) {
  const CallSite site = options.sharded_site(label);
  mesh_of(*operands[0], site);
  operation.out = options.out() != nullptr ? *options.out() : operation.deduced(descs_of(operands));
  return DynamicTensor(run({operation, operands, site, extras}));
}

/// Returns how the result of a typed call lies: as its type says, and what that leaves open as it
/// is deduced from how the operands lie.
template <class Call> Sharding result_sharding(const OperandList& operands) {
  if constexpr (is_open_call<Call>())
    return filled(Call::operation.out, Call::operation.deduced(descs_of(operands)));
  else
    return Call::operation.out;
}

}  // namespace detail
}  // namespace tessera
