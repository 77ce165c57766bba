// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that takes elements of a table at indices that are known only when the program
/// runs.
///
///     Plan p = detail::plan_take(parse("vm,bs->bsm"), {table, ids}, OutOfRange::clamp, out, mesh, process);
///
///     ops::Take{parse("vm,bs->bsm"), OutOfRange::clamp, out}.plan({table, ids}, planning)
///     ops::Take{parse("vm,b->bVm"), OutOfRange::clamp, out, {3}}   // windows of 3 rows
///
/// The communication does not depend on the indices: where the table is split along an indexed
/// letter, each process takes the rows that it has and neutral values for the others, and the parts
/// are summed. Letters of only the indices pass to the result, and so do the table's other letters;
/// a letter of both (a batch) splits all three alike. A window that an index begins is a letter of
/// the result alone: a process makes its part of every window, from the rows that it has.
///
/// Laws: no communication when no indexed letter is split and the shardings fit; else one
/// all-reduce of the result, or a reduce-scatter where it is split over those axes, or moves to a
/// split that no tensor has, where they cost less. A table is gathered only where it has no more
/// than twice the result's elements (or a contract asks for it).
#include <tessera/plan/op/indexed/indexed.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/search/factor_search.hpp>
#include <tessera/plan/step/indexed.hpp>

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
        build.compute(step::Take{{}, out_of_range}, slots,
                      {result.type, result.extents, choice.shardings.back()}, terms.result);
    build.plan().steps.back().cost = choice.work;
    return build.finish(build.reshard(taken, out), out);
  };
  return best_plan(search_splits(rule, CopyWork{}, mesh, own), process, own, make);
}

}  // namespace tessera::detail

namespace tessera::ops {

struct Take {
  Terms terms = {};  ///< of the table, then of the indices
  OutOfRange out_of_range = OutOfRange::clamp;
  Sharding out = {};
  Extents windows = {};  ///< of the result's letters of windows, in its order

  constexpr OperatorKind kind() const { return OperatorKind::take; }
  /// The indices are finished; the result is unfinished like the table.
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_take_terms(terms, x, out); !v.ok()) return v;
    const Shardings shardings = detail::shardings_of(x);
    const detail::IndexTerms indices = detail::indices_of_take(terms);
    if (const Verdict v = detail::check_indices(indices, x, 1); !v.ok()) return v;
    const Sharding& s = x[0].sharding;
    if (const Verdict v = detail::check_open_axes(terms, shardings, out,
                                                  s.partial.empty() ? out.reduction : s.reduction);
        !v.ok())
      return v;
    if (const Verdict v = detail::check_extents(terms, x, false); !v.ok()) return v;
    if (const Verdict v = detail::check_columns(indices, x, 1); !v.ok()) return v;
    if (const int letters = indices.windows().size(); letters != windows.size())
      return {.rule = Rule::indexed_window_each, .left = letters, .right = windows.size()};
    for (const Index extent : windows)
      if (extent < 0) return {.rule = Rule::extent_not_negative, .left = extent};
    return detail::check_indexed(indices, x[0].extents, results(x)[0].extents, out_of_range);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::indexed_window_each)
      return tessera::explain(v, {.first = to_text(detail::indices_of_take(terms).windows())});
    return detail::explain_terms(v, terms, x, names);
  }
  /// Returns the default sharding of the result; its windows are whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    const detail::WithWindows all = detail::with_windows(terms, x);
    return detail::deduce_finished(all.terms, all.operands);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, detail::extents_of(terms.result, terms, x, windows), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_take(terms, x, out_of_range, out, on.mesh, on.process, on.options, windows);
  }
  constexpr detail::StandIn<Take> stand_in(const TensorDescs& x) const {
    const TensorDescs any = detail::stand_ins(x);
    if (!terms.well_formed) return {*this, any};
    Take operation = *this;
    const detail::IndexTerms indices = detail::indices_of_take(terms);
    operation.windows = Extents(indices.windows().size(), 5040);
    return {operation, detail::with_columns(indices, any, 1)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("out_of_range", out_of_range);
    visit("windows", windows);
    visit("to", out);
  }
  constexpr bool operator==(const Take&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Take)
