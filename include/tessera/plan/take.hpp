// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of takes: elements of a table at indices that are known only when the program runs.
///
///     Plan p = detail::plan_take(parse("vm,bs->bsm"), {table, ids}, OutOfRange::clamp, out, mesh, process);
///
/// The communication does not depend on the indices: where the table is split along an indexed
/// letter, each process takes the rows that it has and neutral values for the others, and the parts
/// are summed. Letters of only the indices pass to the result, and so do the table's other letters;
/// a letter of both (a batch) splits all three alike. A window that an index begins is a letter of
/// the result alone: a process makes its part of every window, from the rows that it has.
///
/// Laws: no communication when no indexed letter is split and the shardings fit; else one
/// all-reduce of the result, or a reduce-scatter where it is split over those axes, or moves to a
/// split that no tensor has, where they cost less. A table is
/// gathered only where it has no more than twice the result's elements (or a contract asks for it).
#include <tessera/plan/factor_search.hpp>
#include <tessera/plan/indexed.hpp>

namespace tessera::detail {

/// Plans descs[0] (terms.operands[0]), taken at the indices that follow it; `windows`: as in
/// ops::Take. `out` may leave open the axes that split indexed letters. Precondition: ops::Take's
/// verdict is ok.
constexpr Plan plan_take(const Terms& terms, const TensorDescs& descs, OutOfRange out_of_range,
                         const Sharding& out, const MeshShape& mesh, int process = 0,
                         const PlanOptions& options = {}, const Extents& windows = {}) {
  PlanOptions own = options;  // of all parts of an element one is it, and the others change no sum
  own.narrow_parts = options.narrow_parts || descs[0].sharding.partial.empty();
  const TensorDesc result{descs[0].type, extents_of(terms.result, terms, descs, windows), out};
  FactorRule rule;
  for (int t = 0; t < descs.size(); ++t)
    rule.add(descs[t], terms.operands[t], false, t > 0 ? 1 : 0);
  rule.add(result, terms.result, true, 2);
  const IndexTerms indices = indices_of_take(terms);
  rule.mark(indices.indexed(), Splitting::opens);
  rule.mark(indices.column_letters(), Splitting::whole);
  rule.reduction = take_reduction(descs[0], out);
  rule.gathers_open = options.contract.bounded() ||
                      volume(descs[0].extents) <= saturating_mul(2, volume(result.extents));
  const auto make = [&](const Factors& choice, int at) {
    PlanBuilder build(OperatorKind::take, mesh, at, own);
    build.plan().reduction = rule.reduction;
    FixedVector<int, max_operands> slots;
    for (int t = 0; t < descs.size(); ++t)
      slots.push_back(build.operand(descs[t], terms.operands[t]));
    for (int t = 0; t < descs.size(); ++t) slots[t] = build.reshard(slots[t], choice.shardings[t]);
    const int taken =
        build.compute(StepKind::take, slots, {result.type, result.extents, choice.shardings.back()},
                      terms.result);
    build.plan().steps.back().out_of_range = out_of_range;
    build.plan().steps.back().cost = choice.work;
    return build.finish(build.reshard(taken, out), out);
  };
  return best_plan(search_splits(rule, CopyWork{}, mesh, own), process, own, make);
}

/// Plans a tensor with `one` at the indices (of dimensions `labels` without `along`), along a new
/// dimension.
constexpr Plan plan_one_hot(const Term& labels, char along, DType type, const TensorDesc& indices,
                            Index extent, const Sharding& out, const MeshShape& mesh,
                            int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::one_hot, mesh, process, options);
  TensorDesc result{type, {}, out};
  Sharding aligned = Sharding::replicated(indices.rank());
  const Term of_indices = letters_without(labels, Term{along});
  for (int d = 0; d < labels.size(); ++d) {
    const int at = of_indices.find(labels[d]);
    result.extents.push_back(at < 0 ? extent : indices.extents[at]);
    if (at >= 0) aligned[at] = out[d];
  }
  const int operand = build.reshard(build.operand(indices, of_indices), aligned);
  const int slot = build.compute(StepKind::one_hot, FixedVector<int, 1>{operand}, result, labels);
  return build.finish(slot, out);
}
}  // namespace tessera::detail
