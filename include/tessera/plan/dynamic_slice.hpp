// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planners of slices whose start the call gives at run time: read (dynamic slice) and written
/// (dynamic update slice). One plan serves all starts, so a slice that moves is planned once.
///
///     Plan p = detail::plan_dynamic_slice({'b', 's'}, {'s'}, x, {16}, out, mesh, process);
///
/// The communication does not depend on the start. To read along a split dimension, each process
/// gives its part of the slice, and the parts are summed, as in a take. To write along a split
/// dimension, the update is gathered along it, and each process writes the part within its block.
///
/// Laws: no communication when the sliced dimensions are not split and the shardings fit; reading
/// costs an all-reduce of the slice, or a reduce-scatter where it is split over those axes; writing
/// costs no more than an all-gather of the slice.
#include <tessera/plan/factor_search.hpp>
#include <tessera/plan/indexed.hpp>

namespace tessera::detail {

/// Returns the letters of a slice: a new letter for each sliced dimension.
constexpr Term window_letters(const Term& labels, const Term& along) {
  Term letters = labels;
  char next = 'A';
  for (char& letter : letters)
    if (along.contains(letter)) {
      while (labels.contains(next) || letters.contains(next)) ++next;
      letter = next;
    }
  return letters;
}
/// Returns a slice's extents: size[k] along the k-th letter of `along`.
constexpr Extents window_extents(const Term& labels, const Term& along, const Extents& extents,
                                 const Extents& size) {
  Extents result = extents;
  for (int k = 0; k < along.size(); ++k) result[labels.find(along[k])] = size[k];
  return result;
}

/// Plans the slice of x that has `size` elements along the letters `along`, and all elements along
/// the others. `out` may leave open axes that split x along those. Precondition: the verdict is ok
/// (plan/op/dynamic_slice.hpp).
constexpr Plan plan_dynamic_slice(const Term& labels, const Term& along, const TensorDesc& x,
                                  const Extents& size, const Sharding& out, const MeshShape& mesh,
                                  int process = 0, const PlanOptions& options = {}) {
  const Term window = detail::window_letters(labels, along);
  const TensorDesc result{x.type, detail::window_extents(labels, along, x.extents, size), out};
  FactorRule rule;
  rule.add(x, labels);
  rule.add(result, window, true, 2);
  rule.mark(along, Splitting::opens);
  rule.reduction = take_reduction(x, out);
  rule.gathers_open =
      options.contract.bounded() || volume(x.extents) <= saturating_mul(2, volume(result.extents));
  const auto make = [&](const Factors& choice, int at) {
    PlanBuilder build(OperatorKind::dynamic_slice, mesh, at, options);
    build.plan().reduction = rule.reduction;
    const int held = build.reshard(build.operand(x, labels), choice.shardings[0]);
    const int slot = build.compute(StepKind::slide, FixedVector<int, 1>{held},
                                   {result.type, result.extents, choice.shardings.back()}, window);
    build.plan().steps.back().cost = choice.work;
    return build.finish(build.reshard(slot, out), out);
  };
  return best_plan(search_splits(rule, CopyWork{}, mesh, options), process, options, make);
}

/// Plans x with one slice replaced by `update`. In place, x is the last operand of the plan.
/// Precondition: as above.
constexpr Plan plan_dynamic_update(const Term& labels, const Term& along, const TensorDesc& x,
                                   const TensorDesc& update, const Sharding& out,
                                   const MeshShape& mesh, int process = 0,
                                   const PlanOptions& options = {}, bool in_place = false) {
  const Term window = detail::window_letters(labels, along);
  FactorRule rule;
  rule.add(x, labels, false, in_place ? 0 : 1);
  rule.add(update, window, false, 2);
  rule.add({x.type, x.extents, out}, labels, true, in_place ? 0 : 1);
  rule.mark(letters_without(window, labels), Splitting::whole);
  rule.reduction = x.sharding.reduction;
  const auto make = [&](const Factors& choice, int at) {
    PlanBuilder build(OperatorKind::dynamic_update_slice, mesh, at, options);
    int changed = -1;
    if (!in_place) changed = build.operand(x, labels);
    int written = build.operand(update, window);
    if (in_place) changed = build.operand(x, labels);
    changed = build.reshard(changed, choice.shardings[0]);
    written = build.reshard(written, choice.shardings[1]);
    const int slot = build.compute(StepKind::put, FixedVector<int, 2>{changed, written},
                                   {x.type, x.extents, choice.shardings.back()}, labels);
    build.plan().steps.back().cost = choice.work;
    return build.finish(build.reshard(slot, out), out);
  };
  return best_plan(search_splits(rule, CopyWork{}, mesh, options), process, options, make);
}
}  // namespace tessera::detail
