// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a sharding is legal on a mesh, as a value: the first broken rule and the facts that
/// broke it.
///
///     check(Sharding{{0}, {0}}, 2).rule == Rule::axis_used_once
///
/// Laws: a legal sharding has verdict Rule::ok; tests compare verdicts, types turn them into
/// messages.
#include <string>

#include <tessera/base/verdict.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

/// Returns the first rule that `s` breaks on a mesh of `axes` axes. Lowering writes 15 for an axis
/// that it did not find, and detail::open_axis for a dimension that is Open.
constexpr Verdict check(const Sharding& s, int axes) {
  AxisSet used;
  for (int d = 0; d < s.rank(); ++d)
    for (int i = 0; i < s[d].size(); ++i) {
      const int axis = s[d][i];
      if (axis == detail::open_axis) return {.rule = Rule::nothing_open, .dim = d};
      if (axis >= axes) return {.rule = Rule::axis_in_mesh, .axis = axis, .dim = d};
      if (used.contains(axis)) return {.rule = Rule::axis_used_once, .axis = axis, .dim = d};
      used.insert(axis);
    }
  for (int axis = 0; axis < 16; ++axis)
    if (s.partial.contains(axis)) {
      if (axis >= axes) return {.rule = Rule::axis_in_mesh, .axis = axis, .dim = s.rank()};
      if (used.contains(axis))
        return {.rule = Rule::partial_axis_used_once, .axis = axis, .dim = s.rank()};
    }
  if (!s.partial.empty() && s.reduction == Reduction::none)
    return {.rule = Rule::reduction_named, .dim = s.rank()};
  return {};
}

/// Returns the first rule that a tensor breaks: values may be unfinished only by a reduction that
/// their element type has.
constexpr Verdict check(const TensorDesc& t, int axes) {
  const Verdict verdict = check(t.sharding, axes);
  if (verdict.ok() && !defined(t.sharding.reduction, t.type))
    return {.rule = Rule::reduction_defined, .dim = t.sharding.rank(), .type = t.type};
  return verdict;
}

/// Returns the sentence for a verdict on a sharding chosen at run time.
inline std::string explain(const Verdict& v, const Sharding& s, const AxisNames& names) {
  if (v.rule == Rule::made_finished)
    return to_string(s, names) + " is unfinished; " + std::string(sentence(v.rule));
  detail::FactNames facts{.first = to_string(s, names), .second = std::to_string(names.size())};
  if (v.rule == Rule::reduction_defined)
    facts.first = "a tensor of " + std::string(name_of(v.type)) + " with " + facts.first;
  if (v.axis >= 0)
    facts.axis =
        v.axis < names.size() ? std::string(names[v.axis]) : "number " + std::to_string(v.axis);
  return explain(v, facts);
}

}  // namespace tessera
