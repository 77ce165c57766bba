// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of elementwise operators with broadcasting: every operand is brought to the result's
/// sharding, then one local kernel runs; or the kernel runs where an operand lies and the result is
/// moved, where that is cheaper.
///
///     Plan p = detail::plan_map(detail::broadcast_terms({2, 2}), operands, DType::f32, out, mesh, process);
///
/// Laws: no communication when the operands' shardings agree; a dimension of extent 1 that is
/// broadcast is replicated; a function that reads the index runs where the result lies.
#include <tessera/plan/best_way.hpp>
#include <tessera/plan/builder.hpp>
#include <tessera/plan/deduce.hpp>

namespace tessera::detail {

/// Returns terms that line dimensions up from the right, as NumPy does: "abc,bc,c->abc".
constexpr Terms broadcast_terms(const FixedVector<int, max_operands>& ranks) {
  Terms terms;
  int most = 0;
  for (int rank : ranks) most = rank > most ? rank : most;
  terms.result = default_labels(most);
  for (int rank : ranks) {
    Term term;
    for (int d = most - rank; d < most; ++d) term.push_back(terms.result[d]);
    terms.operands.push_back(term);
  }
  return terms;
}

/// Returns the extents of the result: for each label the extent of an operand that is not broadcast
/// along it.
constexpr Extents broadcast_extents(const Terms& terms, const TensorDescs& operands) {
  Extents extents(terms.result.size(), 1);
  for (int d = 0; d < terms.result.size(); ++d)
    for (int i = 0; i < operands.size(); ++i)
      if (const int at = terms.operands[i].find(terms.result[d]); at >= 0 && extents[d] == 1)
        extents[d] = operands[i].extents[at];
  return extents;
}

/// Returns the sharding that operand i needs for a result of sharding `out`.
constexpr Sharding aligned_sharding(const Term& labels, const TensorDesc& operand,
                                    const Terms& terms, const Extents& extents,
                                    const Sharding& out) {
  Sharding s = Sharding::replicated(labels.size());
  for (int d = 0; d < labels.size(); ++d) {
    const int at = terms.result.find(labels[d]);
    const bool stretched = operand.extents[d] == 1 && extents[at] != 1;
    if (!stretched) s[d] = out[at];
  }
  // Where one operand is open, as in a product, finished operands stay finished.
  return operand.sharding.partial.empty() ? s : s.with_partial(out.partial, out.reduction);
}

/// Adds f(slots...) -> a tensor `result` with the labels of terms.result to a plan: every slot is
/// brought to the result's sharding first. Returns the new slot.
constexpr int add_map(PlanBuilder& build, FixedVector<int, max_operands> slots, const Terms& terms,
                      const TensorDesc& result) {
  for (int i = 0; i < slots.size(); ++i)
    slots[i] = build.reshard(slots[i], aligned_sharding(terms.operands[i], build.desc(slots[i]),
                                                        terms, result.extents, result.sharding));
  return build.compute(StepKind::map, slots, result, terms.result);
}

/// Returns the sharding of a result that is made where operand i lies.
constexpr Sharding sharding_beside(int i, const Terms& terms, const TensorDescs& operands,
                                   const Extents& extents, const MeshShape& mesh) {
  const Sharding own = without_unit_axes(operands[i].sharding, mesh);
  Sharding s = Sharding::replicated(terms.result.size());
  for (int d = 0; d < own.rank(); ++d) {
    const int at = terms.result.find(terms.operands[i][d]);
    if (operands[i].extents[d] == extents[at]) s[at] = own[d];
  }
  return s;
}

/// Plans f(operands...) -> tensors of these element types, which one kernel makes; where there are
/// several, it is bound by memory, and priced so. A partial `out` says that f is linear (or
/// monotone) and acts on unfinished values; the verdict has checked that it may. One result of
/// finished operands, in memory of its own, may be made where an operand lies, and then moved,
/// unless f `reads_index`: such a function knows the place of the result's block alone.
constexpr Plan plan_map_several(const Terms& terms, const TensorDescs& operands,
                                const FixedVector<DType, max_operands>& types, const Sharding& out,
                                const MeshShape& mesh, int process = 0,
                                const PlanOptions& options = {}, bool reads_index = false) {
  const Extents extents = broadcast_extents(terms, operands);
  const auto make = [&](const Sharding& made, int at) {
    PlanBuilder build(OperatorKind::map, mesh, at, options);
    FixedVector<int, max_operands> inputs;
    for (int i = 0; i < operands.size(); ++i)
      inputs.push_back(build.operand(operands[i], terms.operands[i]));
    const int slot = add_map(build, inputs, terms, {types[0], extents, made});
    if (types.size() > 1) build.several_results(types, extents, made, terms.result);
    return build.finish(build.reshard(slot, out), out);
  };
  const Plan there = make(out, process);
  bool may_move = !reads_index && types.size() == 1 && out.partial.empty() &&
                  there.communications() > 0 && options.destination == Destination::fresh &&
                  !options.needs_alone;
  for (const TensorDesc& x : operands) may_move = may_move && x.sharding.partial.empty();
  if (!may_move) return there;
  BestWay<Sharding> best(options);
  best.add(process == 0 ? there : make(out, 0), out);
  FixedVector<Sharding, max_operands> tried{without_unit_axes(out, mesh)};
  for (int i = 0; i < operands.size(); ++i) {
    const Sharding made = sharding_beside(i, terms, operands, extents, mesh);
    if (tried.contains(made)) continue;
    tried.push_back(made);
    best.add(make(made, 0), made);
  }
  if (process == 0) return best.plan();
  return best.way() == out ? there : make(best.way(), process);
}

/// The same of one result.
constexpr Plan plan_map(const Terms& terms, const TensorDescs& operands, DType type,
                        const Sharding& out, const MeshShape& mesh, int process = 0,
                        const PlanOptions& options = {}, bool reads_index = false) {
  return plan_map_several(terms, operands, {type}, out, mesh, process, options, reads_index);
}
}  // namespace tessera::detail
