// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What every operator's struct of plan/op/ has, its digest, and what it communicates, which its
/// names alone decide. plan/operation.hpp holds one of any kind.
///
///     Contract c = needs(ops::Reshard{to}, {from}, mesh, Contract{});   // what the call communicates
///
/// Laws: equal structs have equal digests, on every process.
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/verdict.hpp>

namespace tessera {

namespace detail {
inline constexpr PlanOptions usual_plan_options = {};
}  // namespace detail

/// Where and how an operator is planned: `ops::Reshard{to}.plan({x}, {mesh})` for process 0.
struct Planning {
  const MeshShape& mesh;
  int process = 0;
  const PlanOptions& options = detail::usual_plan_options;
  std::vector<Box>* boxes =
      nullptr;  ///< keeps the boxes that the plan views; must live as long as the plan
};

namespace detail {
/// The requirements on every kind of operator. (It uses the compiler's own trait, because the
/// standard library's instantiates eighteen more classes for each kind.)
template <class Op>
concept OperationStruct = __is_trivially_copyable(Op) &&
                          requires(const Op& op, const TensorDescs& operands, const Planning& on) {
  { op.kind() } -> std::same_as<OperatorKind>;
  { op.check(operands) } -> std::same_as<Verdict>;
  { op.results(operands) } -> std::same_as<TensorDescs>;
  { op.plan(operands, on) } -> std::same_as<Plan>;
  op.members(AddMember{std::declval<Digest&>()});
  { op == op } -> std::convertible_to<bool>;
};

constexpr void add_to(Digest& digest, const Terms& terms) {
  add_to(digest, terms.operands);
  add_to(digest, terms.result);
  add_to(digest, terms.well_formed);
}
constexpr void add_to(Digest& digest, const Sharding& s) {
  digest.add(static_cast<std::uint64_t>(s.partial.bits) << 16 |
             static_cast<std::uint64_t>(s.reduction) << 8 | static_cast<std::uint64_t>(s.rank()));
  for (int d = 0; d < s.rank(); d += 2)
    digest.add(static_cast<std::uint64_t>(s[d].bits()) << 32 |
               (d + 1 < s.rank() ? s[d + 1].bits() : 0u));
}
constexpr void add_to(Digest& digest, const TensorDesc& desc) {
  digest.add(static_cast<std::uint64_t>(desc.type));
  for (const Index extent : desc.extents) digest.add(static_cast<std::uint64_t>(extent));
  add_to(digest, desc.sharding);
}
constexpr void add_to(Digest& digest, const Window& w) {
  for (const Index i : {w.size, w.stride, w.low, w.high, w.base_dilation, w.window_dilation})
    add_to(digest, i);
  add_to(digest, w.reversed);
}

/// Returns the default sharding of a result: finished, with its dimensions split like the
/// operands'. Terms that break a rule get a replicated result.
constexpr Sharding deduce_finished(const Terms& terms, const TensorDescs& operands) {
  const Sharding whole = Sharding::replicated(terms.result.size());
  const Shardings shardings = shardings_of(operands);
  return detail::check_terms(terms, shardings, whole, true).ok() ? deduce(terms, shardings) : whole;
}

/// Returns the digest of an operation of a known kind.
template <OperationStruct Op> constexpr std::uint64_t digest_of(const Op& op) {
  Digest digest;
  add_to(digest, op.kind());
  add_to(digest, op);
  return digest.value();
}

/// An operator and operands that stand for all calls with the same names; contracts are judged by
/// them.
template <class Op> struct StandIn {
  Op operation;
  TensorDescs operands;
};
/// A tensor large enough that no extent matters.
constexpr TensorDesc stand_in(const TensorDesc& x) {
  return {x.type, Extents(x.sharding.rank(), 5040), x.sharding};
}
constexpr TensorDescs stand_ins(const TensorDescs& operands) {
  TensorDescs any;
  for (const TensorDesc& x : operands) any.push_back(stand_in(x));
  return any;
}
template <class Op> constexpr StandIn<Op> stand_in(const Op& op, const TensorDescs& operands) {
  if constexpr (requires { op.stand_in(operands); })
    return op.stand_in(operands);
  else
    return {op, stand_ins(operands)};
}

/// Whether an operator's names are legal, and the result that follows from the names.
template <OperationStruct Op>
constexpr Verdict check_stand_in(const Op& op, const TensorDescs& operands) {
  const auto call = stand_in(op, operands);
  return call.operation.check(call.operands);
}
template <OperationStruct Op>
constexpr TensorDescs results_of_stand_in(const Op& op, const TensorDescs& operands) {
  const auto call = stand_in(op, operands);
  return call.operation.results(call.operands);
}
/// How a call that stands for all others is planned: times are far below the cost of a breach,
/// however large its tensors are.
constexpr PlanOptions stand_in_options(const Contract& contract) {
  PlanOptions options;
  options.contract = contract;
  Machine& machine = options.machine;
  machine.message_ps = 10;
  machine.payload_ps_per_kib = 2;
  machine.copy_ps_per_kib = 1;
  machine.kiloflop_ps_f32 = machine.kiloflop_ps_f64 = 1;
  return options;
}
}  // namespace detail

/// Returns the communication, on `mesh`, of the plan that keeps `contract`, if there is one; else
/// of the plan with the fewest breaches. Only names matter, not the extents of the operands.
/// Preconditions: the verdict is ok.
template <detail::OperationStruct Op>
constexpr Contract needs(const Op& op, const TensorDescs& operands, const MeshShape& mesh,
                         const Contract& contract) {
  const PlanOptions options = detail::stand_in_options(contract);
  if constexpr (requires { op.needs(operands, mesh, options); }) {
    return op.needs(operands, mesh, options);
  } else {
    const auto call = detail::stand_in(op, operands);
    return call.operation.plan(call.operands, {mesh, 0, options}).needs;
  }
}

/// This overload takes operands of float with these shardings.
template <detail::OperationStruct Op>
constexpr Contract needs(const Op& op, const Shardings& operands, const MeshShape& mesh,
                         const Contract& contract) {
  TensorDescs descs;
  for (const Sharding& s : operands) descs.push_back({DType::f32, Extents(s.rank(), 5040), s});
  return needs(op, descs, mesh, contract);
}

}  // namespace tessera
