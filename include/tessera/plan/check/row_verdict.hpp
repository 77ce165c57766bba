// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an arg-max, a running sum, a sort or a deterministic sum may be applied
/// (plan/check/verdict.hpp has the others).
///
///     detail::check_arg(parse("bsv->bs"), {x}, out).ok()
#include <tessera/plan/check/verdict.hpp>

namespace tessera::detail {

/// Checks an arg-max or arg-min. Its operand is finished; its result may stay open as a Min.
constexpr Verdict check_arg(const Terms& terms, const Shardings& operands, const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  if (!operands[0].partial.empty()) return {Rule::finished, 0};
  return detail::check_open_axes(terms, operands, out, Reduction::min);
}

/// Returns the terms of an operator whose result has its operand's letters, as in "bij" -> "bij".
constexpr Terms same_terms(std::string_view labels) {
  Terms terms = parse(labels);
  terms.well_formed = terms.operands.size() == 1 && terms.result.empty() && !terms.well_formed;
  for (char c : labels) terms.well_formed = terms.well_formed && (is_label(c) || c == ' ');
  terms.result = terms.operands[0];
  return terms;
}

/// Checks a running join along `along`. An operand that is unfinished by the same reduction may
/// stay so.
constexpr Verdict check_scan(const Terms& terms, char along, Reduction reduction,
                             const Shardings& operands, const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  if (!terms.operands[0].contains(along)) return {Rule::along_known, 0, along};
  const Sharding& x = operands[0];
  if (!x.partial.empty() && x.reduction != reduction) return {Rule::finished, 0};
  if (!(out.partial - x.partial).empty()) return {Rule::open_axis_contracted, 1};
  if (!out.partial.empty() && out.reduction != reduction) return {Rule::reduction_alike, 1};
  return {};
}

/// Returns the terms of an operator with several operands that all have the result's letters.
constexpr Terms same_terms(std::string_view labels, int operands) {
  Terms terms = same_terms(labels);
  for (int i = 1; i < operands && terms.well_formed; ++i) terms.operands.push_back(terms.result);
  return terms;
}

/// Checks a sort along `along`, of keys and carried tensors, or a softmax: all finished.
constexpr Verdict check_sort(const Terms& terms, char along, const Shardings& operands,
                             const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  if (!terms.result.contains(along)) return {Rule::along_known, 0, along};
  for (int i = 0; i < operands.size(); ++i)
    if (!operands[i].partial.empty()) return {Rule::finished, i};
  return out.partial.empty() ? Verdict{} : Verdict{Rule::finished, operands.size()};
}

/// Checks a deterministic sum: from finished to finished.
constexpr Verdict check_deterministic(const Terms& terms, const Shardings& operands,
                                      const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  if (!operands[0].partial.empty()) return {Rule::finished, 0};
  return out.partial.empty() ? Verdict{} : Verdict{Rule::finished, 1};
}
}  // namespace tessera::detail
