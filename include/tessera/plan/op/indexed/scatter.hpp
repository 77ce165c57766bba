// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that joins updates into a table at indices that are known only when the program
/// runs.
///
///     Plan p = detail::plan_scatter(parse("vm,bs,bsm->vm"), Reduction::sum, {table, ids, updates}, {},
///                           OutOfRange::drop, out, mesh, process);
///
/// The planner mirrors plan/op/indexed/take.hpp.
///
///     ops::Scatter{parse("vm,bs,bsm->vm"), Reduction::sum}         // operands: table, ids, updates
///     ops::Scatter{parse("bs,bsm->vm"), Reduction::sum, OutOfRange::drop, {32000}}    // into zeros
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
#include <tessera/plan/op/indexed/indexed.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/search/factor_search.hpp>
#include <tessera/plan/step/indexed.hpp>

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
    const int slot = build.compute(step::Scatter{{}, out_of_range}, slots,
                                   {type, result.extents, made}, terms.result);
    build.plan().steps.back().cost = choice.work;
    return build.finish(build.reshard(slot, out, result.type), out);
  };
  return best_plan(search_splits(rule, CopyWork{}, mesh, options), process, options, make);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Scatter {
  Terms terms = {};                      ///< of the table (or none), the indices, the updates
  Reduction reduction = Reduction::sum;  ///< none: updates replace the table's elements
  OutOfRange out_of_range = OutOfRange::drop;
  Extents indexed = {};   ///< without a table, the extents of the indexed letters
  bool in_place = false;  ///< the table is the last operand, not the first, and holds the result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::scatter; }
  /// With a reduction, table and updates may be unfinished by that reduction; without one, both are
  /// finished.
  constexpr Verdict check(const TensorDescs& operands) const {
    const TensorDescs x = in_order(operands);
    if (const Verdict v = check_letters(x); !v.ok()) return v;
    if (const Verdict v = detail::check_extents(terms, x, false); !v.ok()) return v;
    const int first = detail::has_operand(terms) ? 1 : 0;
    if (const Verdict v = detail::check_columns(detail::indices_of_scatter(terms), x, first);
        !v.ok())
      return v;
    const TensorDesc& updates = x.back();
    if (first == 1) {
      const Verdict v =
          detail::check_one_type(Rule::update_types_alike, x[0].type, updates.type, x.size() - 1);
      if (!v.ok()) return v;
    }
    if (reduction != Reduction::none)
      if (const Verdict v = detail::check_reduce_type(reduction, false, updates.type); !v.ok())
        return v;
    const Term letters = detail::indexed_letters(terms);
    if (first == 0 && indexed.size() != letters.size())
      return {.rule = Rule::indexed_extent_each, .left = letters.size(), .right = indexed.size()};
    for (const Index extent : indexed)
      if (extent < 0) return {.rule = Rule::extent_not_negative, .left = extent};
    return detail::check_indexed(detail::indices_of_scatter(terms), results(operands)[0].extents,
                                 updates.extents, out_of_range);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::indexed_extent_each)
      return tessera::explain(v, {.first = to_text(detail::indexed_letters(terms))});
    return detail::explain_terms(v, terms, in_order(x), names);
  }
  /// Returns the default sharding of the result: the table's, else the updates'.
  constexpr Sharding deduced(const TensorDescs& operands) const {
    const TensorDescs x = in_order(operands);
    Sharding s = Sharding::replicated(terms.result.size());
    if (!terms.well_formed || terms.operands.size() != x.size()) return s;
    const int from = detail::has_operand(terms) ? 0 : x.size() - 1;
    for (int d = 0; d < s.rank(); ++d)
      if (const int at = terms.operands[from].find(terms.result[d]); at >= 0 && at < x[from].rank())
        s[d] = x[from].sharding[at];
    return s;
  }
  constexpr TensorDescs results(const TensorDescs& operands) const {
    const TensorDescs x = in_order(operands);
    return {{x.back().type, detail::extents_of(terms.result, terms, x, indexed), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_scatter(terms, reduction, in_order(x), indexed, out_of_range, out, on.mesh,
                                on.process, on.options, in_place);
  }
  constexpr detail::StandIn<Scatter> stand_in(const TensorDescs& x) const {
    const TensorDescs any = detail::stand_ins(x);
    if (!terms.well_formed) return {*this, any};
    Scatter operation = *this;
    operation.indexed = Extents(detail::indexed_letters(terms).size(), 5040);
    return {operation, detail::with_columns(detail::indices_of_scatter(terms), any,
                                            detail::has_operand(terms) && !in_place ? 1 : 0)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("reduction", reduction);
    visit("out_of_range", out_of_range);
    visit("extents", indexed);
    visit("in_place", in_place);
    visit("to", out);
  }
  constexpr bool operator==(const Scatter&) const = default;

 private:
  constexpr Verdict check_letters(const TensorDescs& x) const {
    if (!terms.well_formed) return {Rule::equation_readable};
    if (terms.operands.size() != x.size())
      return {Rule::operand_count, -1, 0, -1, terms.operands.size(), x.size()};
    const int first = detail::has_operand(terms) ? 1 : 0;
    const detail::IndexTerms indices = detail::indices_of_scatter(terms);
    if (x.size() - first - 1 > detail::max_indices || x.size() < 2)
      return {Rule::indices_match, -1, 0, -1, indices.indexed().size(), x.size() - 1};
    Terms known = terms;  // without a table no other tensor has the indexed letters
    Shardings shardings = detail::shardings_of(x);
    if (first == 0) {
      known.operands.push_back(terms.result);
      shardings.push_back(Sharding::replicated(terms.result.size()));
    }
    if (Verdict v = detail::check_terms(known, shardings, out); !v.ok()) {
      if (v.operand > x.size()) v.operand = x.size();
      return v;
    }
    if (first == 1) {
      if (const Term lost = detail::letters_without(terms.operands[0], terms.result); !lost.empty())
        return {Rule::label_kept, 0, lost[0]};
      if (const Term made = detail::letters_without(terms.result, terms.operands[0]); !made.empty())
        return {Rule::result_label_known, x.size(), made[0]};
    }
    if (const Verdict v = detail::check_indices(indices, x, first); !v.ok()) return v;
    for (int t = 0; t < x.size(); ++t)
      if (const Sharding& s = x[t].sharding;
          !s.partial.empty() && (reduction == Reduction::none || s.reduction != reduction))
        return {Rule::finished, t};
    if (reduction == Reduction::none && !out.partial.empty()) return {Rule::finished, x.size()};
    return detail::check_open_axes(terms, detail::shardings_of(x), out, reduction);
  }
  /// Returns the operands in the order of the terms.
  constexpr TensorDescs in_order(const TensorDescs& operands) const {
    return in_place ? detail::last_first(operands) : operands;
  }
};

}  // namespace tessera::ops

TESSERA_OPERATION(Scatter)
