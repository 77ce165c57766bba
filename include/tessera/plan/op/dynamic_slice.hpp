// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators that read and write a slice whose start the call gives. The start is not part of
/// the operator: one plan serves all starts.
///
///     ops::DynamicSlice{detail::same_terms("bsm"), detail::same_terms("s"), {16}, out}
///     ops::DynamicUpdateSlice{detail::same_terms("bsm", 2), detail::same_terms("s"), false, out}
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/dynamic_slice.hpp>
#include <tessera/plan/operation.hpp>

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
