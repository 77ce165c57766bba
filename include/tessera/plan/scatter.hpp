// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of scatters: updates joined into a table at indices that are known only when the
/// program runs. It mirrors plan/take.hpp.
///
///     Plan p = detail::plan_scatter(parse("vm,bs,bsm->vm"), Reduction::sum, {table, ids, updates}, {},
///                           OutOfRange::drop, out, mesh, process);
///
/// The communication does not depend on the indices. Where updates are split along a letter that
/// the table lacks, each process joins its own updates into a part of the table's size, and then
/// the parts are joined (the first part contains the table's elements). Where the table is split
/// along an indexed letter, each process joins the updates for its own rows. When updates are set,
/// not joined, each process that has the row gets all of them, since the last one stays. The letter
/// of a window that an index begins is one of the updates' own.
///
/// Laws: no communication when the shardings fit and no letter of the updates alone is split; else
/// one all-reduce of the result, or a reduce-scatter where it is split over those axes; or only an
/// all-gather of the updates, where that costs less, or moves of the tensors to a split that none
/// of them has. Parts of half types are made and joined in float.
#include <tessera/plan/factor_search.hpp>
#include <tessera/plan/indexed.hpp>

namespace tessera::detail {

/// Plans the operand (where terms have one), then one tensor of indices for each indexed letter,
/// then the updates -> terms.result. Reduction::none sets. Without an operand `indexed` has the
/// extents of the indexed letters. In place, the operand is the last one of the plan. Precondition:
/// ops::Scatter's verdict is ok.
constexpr Plan plan_scatter(const Terms& terms, Reduction reduction, const TensorDescs& descs,
                            const Extents& indexed, OutOfRange out_of_range, const Sharding& out,
                            const MeshShape& mesh, int process = 0, const PlanOptions& options = {},
                            bool in_place = false) {
  const Term& updates = terms.operands.back();
  const TensorDesc result{descs.back().type, extents_of(terms.result, terms, descs, indexed), out};
  FactorRule rule;
  for (int t = 0; t < descs.size(); ++t) rule.add(descs[t], terms.operands[t], false, 1);
  rule.add(result, terms.result, true, 1);
  rule.mark(letters_without(updates, terms.result),
            reduction == Reduction::none ? Splitting::whole : Splitting::opens);
  rule.mark(indices_of_scatter(terms).column_letters(), Splitting::whole);
  rule.reduction = reduction != Reduction::none ? reduction : descs.back().sharding.reduction;
  const auto make = [&](const Factors& choice, int at) {
    PlanBuilder build(OperatorKind::scatter, mesh, at, options);
    build.plan().reduction = reduction;
    FixedVector<int, max_operands> slots(descs.size(), 0);
    for (int k = 0; k < descs.size(); ++k) {
      const int t = in_place ? (k + 1) % descs.size() : k;
      slots[t] = build.operand(descs[t], terms.operands[t]);
    }
    for (int t = 0; t < slots.size(); ++t) slots[t] = build.reshard(slots[t], choice.shardings[t]);
    if (has_operand(terms)) slots[0] = build.permute(slots[0], terms.result);
    const Sharding& made = choice.shardings.back();
    DType type = result.type;  // of parts, where the result is made of some
    if (!(made.partial - out.partial - mesh.unit_axes()).empty()) {
      type = options.parts_of(rule.reduction, type);
      if (has_operand(terms)) slots[0] = build.convert(slots[0], type);
      slots.back() = build.convert(slots.back(), type);
    }
    const int slot =
        build.compute(StepKind::scatter, slots, {type, result.extents, made}, terms.result);
    build.plan().steps.back().out_of_range = out_of_range;
    build.plan().steps.back().cost = choice.work;
    return build.finish(build.reshard(slot, out, result.type), out);
  };
  return best_plan(search_splits(rule, CopyWork{}, mesh, options), process, options, make);
}
}  // namespace tessera::detail
