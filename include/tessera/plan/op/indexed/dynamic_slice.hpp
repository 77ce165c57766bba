// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators that read and write a slice whose start the call gives. The start is not part of
/// the operator: one plan serves all starts.
///
///     Plan p = detail::plan_dynamic_slice({'b', 's'}, {'s'}, x, {16}, out, mesh, process);
///
///     ops::DynamicSlice{detail::same_terms("bsm"), detail::same_terms("s"), {16}, out}
///     ops::DynamicUpdateSlice{detail::same_terms("bsm", 2), detail::same_terms("s"), false, out}
///
/// The communication does not depend on the start. To read along a split dimension, each process
/// gives its part of the slice, and the parts are summed, as in a take. To write along a split
/// dimension, the update is gathered along it, and each process writes the part within its block.
///
/// Laws: no communication when the sliced dimensions are not split and the shardings fit; reading
/// costs an all-reduce of the slice, or a reduce-scatter where it is split over those axes; writing
/// costs no more than an all-gather of the slice.
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/op/indexed/indexed.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/search/factor_search.hpp>
#include <tessera/plan/step/indexed.hpp>

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
/// (plan/op/indexed/dynamic_slice.hpp).
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
    const int slot = build.compute(step::Slide{}, FixedVector<int, 1>{held},
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
    const int slot = build.compute(step::Put{}, FixedVector<int, 2>{changed, written},
                                   {x.type, x.extents, choice.shardings.back()}, labels);
    build.plan().steps.back().cost = choice.work;
    return build.finish(build.reshard(slot, out), out);
  };
  return best_plan(search_splits(rule, CopyWork{}, mesh, options), process, options, make);
}
}  // namespace tessera::detail

namespace tessera::detail {
/// Checks the letters along which a slice may begin anywhere; `along` is their same_terms.
constexpr Verdict check_along(const Terms& terms, const Terms& along) {
  if (!along.well_formed || along.result.empty()) return {Rule::equation_readable};
  if (const int d = repeated_label(along.result); d >= 0)
    return {Rule::label_once, 0, along.result[d]};
  for (const char label : along.result)
    if (!terms.result.contains(label)) return {Rule::along_known, 0, label};
  return {};
}
/// Checks that a slice has a size for each of these letters, and fits into the tensor.
constexpr Verdict check_within(const Terms& terms, const Terms& along, const Extents& extents,
                               const Extents& size) {
  if (size.size() != along.result.size())
    return {.rule = Rule::moving_window_each, .left = along.result.size(), .right = size.size()};
  for (int k = 0; k < size.size(); ++k) {
    const char letter = along.result[k];
    const Index most = extents[terms.result.find(letter)];
    if (size[k] < 0 || size[k] > most)
      return {.rule = Rule::moving_window_within, .label = letter, .left = size[k], .right = most};
  }
  return {};
}
}  // namespace tessera::detail

namespace tessera::ops {

struct DynamicSlice {
  Terms terms = {};   ///< the letters of the tensor are the result's
  Terms along = {};   ///< those along which the window begins anywhere
  Extents size = {};  ///< of the slice: one entry for each letter of `along`
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::dynamic_slice; }
  constexpr Verdict check(const TensorDescs& x) const {
    const Shardings shardings = detail::shardings_of(x);
    if (const Verdict v = detail::check_terms(terms, shardings, out); !v.ok()) return v;
    if (const Verdict v = detail::check_along(terms, along); !v.ok()) return v;
    Terms sliced = terms;  // the sliced letters are open, like summed ones
    sliced.result = detail::letters_without(terms.result, along.result);
    const Sharding& s = x[0].sharding;
    if (const Verdict v = detail::check_open_axes(sliced, shardings, out,
                                                  s.partial.empty() ? out.reduction : s.reduction);
        !v.ok())
      return v;
    return detail::check_within(terms, along, x[0].extents, size);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::moving_window_each)
      return tessera::explain(v, {.first = to_text(along.result), .second = "sizes"});
    return detail::explain_terms(v, terms, x, names);
  }
  /// Returns the default sharding of the result: the tensor's, but whole along the sliced
  /// dimensions.
  constexpr Sharding deduced(const TensorDescs& x) const {
    Sharding s = x[0].sharding.finished();
    for (int d = 0; d < s.rank() && d < terms.result.size(); ++d)
      if (along.result.contains(terms.result[d])) s[d] = {};
    return s;
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {
        {x[0].type, detail::window_extents(terms.result, along.result, x[0].extents, size), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_dynamic_slice(terms.result, along.result, x[0], size, out, on.mesh,
                                      on.process, on.options);
  }
  constexpr detail::StandIn<DynamicSlice> stand_in(const TensorDescs& x) const {
    return {{terms, along, Extents(along.result.size(), 2520), out}, detail::stand_ins(x)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("size", size);
    visit("to", out);
  }
  constexpr bool operator==(const DynamicSlice&) const = default;
};

struct DynamicUpdateSlice {
  Terms terms = {};       ///< of the tensor and of the update; both have the result's letters
  Terms along = {};       ///< those along which the window begins anywhere
  bool in_place = false;  ///< the tensor is the last operand, not the first, and holds the result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::dynamic_update_slice; }
  /// The tensor and the update are finished, or unfinished alike.
  constexpr Verdict check(const TensorDescs& operands) const {
    const TensorDescs x = in_order(operands);
    if (const Verdict v = detail::check_terms(terms, detail::shardings_of(x), out); !v.ok())
      return v;
    if (const Verdict v = detail::check_along(terms, along); !v.ok()) return v;
    const Sharding &s = x[0].sharding, &update = x[1].sharding;
    if (s.partial != update.partial) return {Rule::finished, 1};
    if (s.reduction != update.reduction) return {Rule::reduction_alike, 1};
    if (!(out.partial - s.partial).empty()) return {Rule::open_axis_contracted, 2};
    if (!out.partial.empty() && out.reduction != s.reduction) return {Rule::reduction_alike, 2};
    if (const Verdict v = detail::check_one_type(Rule::update_types_alike, x[0].type, x[1].type, 1);
        !v.ok())
      return v;
    Extents size;
    for (const char letter : along.result) size.push_back(x[1].extents[terms.result.find(letter)]);
    if (const Verdict v = detail::check_within(terms, along, x[0].extents, size); !v.ok()) return v;
    for (int d = 0; d < x[0].rank(); ++d)
      if (!along.result.contains(terms.result[d]) && x[0].extents[d] != x[1].extents[d])
        return {.rule = Rule::update_extents_alike,
                .label = terms.result[d],
                .left = x[0].extents[d],
                .right = x[1].extents[d]};
    return {};
  }
  /// Returns the default sharding of the result: the tensor's.
  constexpr Sharding deduced(const TensorDescs& x) const { return in_order(x)[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& operands) const {
    const TensorDescs x = in_order(operands);
    return {{x[0].type, x[0].extents, out}};
  }
  constexpr Plan plan(const TensorDescs& operands, const Planning& on) const {
    const TensorDescs x = in_order(operands);
    return detail::plan_dynamic_update(terms.result, along.result, x[0], x[1], out, on.mesh,
                                       on.process, on.options, in_place);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("in_place", in_place);
    visit("to", out);
  }
  constexpr bool operator==(const DynamicUpdateSlice&) const = default;

 private:
  constexpr TensorDescs in_order(const TensorDescs& operands) const {
    return in_place ? detail::last_first(operands) : operands;
  }
};

}  // namespace tessera::ops

TESSERA_OPERATION(DynamicSlice)
TESSERA_OPERATION(DynamicUpdateSlice)
