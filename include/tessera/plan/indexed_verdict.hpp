// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a take, a scatter, a one-hot or a window that begins anywhere may be applied
/// (plan/verdict.hpp has the others).
///
///     check_take(parse("vm,bs->bsm"), {table, ids}, out).ok()
///
/// Laws: indices are finished. A take passes on how its table is unfinished; a scatter by a
/// reduction acts on a table and updates that are unfinished by the same; what is set is finished.
#include <tessera/plan/dynamic_slice.hpp>
#include <tessera/plan/row_verdict.hpp>
#include <tessera/plan/scatter.hpp>
#include <tessera/plan/take.hpp>

namespace tessera {

namespace detail {
/// Checks the indices, operands first to last - 1, whose letters are all in `kept`.
constexpr Verdict check_indices(const Terms& terms, const Shardings& operands, int first, int last,
                                const Term& kept) {
  for (int t = first; t < last; ++t) {
    if (!operands[t].partial.empty()) return {Rule::finished, t};
    for (char label : terms.operands[t])
      if (!kept.contains(label)) return {Rule::index_letter_kept, t, label};
  }
  return {};
}
}  // namespace detail

/// Checks a take of operand 0 at the indices that follow it.
constexpr Verdict check_take(const Terms& terms, const Shardings& operands, const Sharding& out) {
  if (!terms.well_formed || operands.empty()) return {Rule::equation_readable};
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  const int indices = indices_of_take(terms);
  if (indices != operands.size() - 1 || indices < 1 || indices > max_indices)
    return {Rule::indices_match, -1, 0, -1, indices, operands.size() - 1};
  if (const Verdict v = detail::check_indices(terms, operands, 1, operands.size(), terms.result);
      !v.ok())
    return v;
  return detail::check_open_axes(
      terms, operands, out, operands[0].partial.empty() ? out.reduction : operands[0].reduction);
}

/// Checks a scatter by a reduction; Reduction::none sets.
constexpr Verdict check_scatter(const Terms& terms, Reduction reduction, const Shardings& operands,
                                const Sharding& out) {
  if (!terms.well_formed || operands.empty()) return {Rule::equation_readable};
  if (terms.operands.size() != operands.size())
    return {Rule::operand_count, -1, 0, -1, terms.operands.size(), operands.size()};
  const int indices = indices_of_scatter(terms), given = operands.size() - 1;
  const int first = has_operand(terms) ? 1 : 0;
  if ((indices != given && indices != given - 1) || indices < 1 || indices > max_indices)
    return {Rule::indices_match, -1, 0, -1, indices, given};
  Terms known = terms;  // of a scatter without an operand no other tensor has the indexed letters
  Shardings all = operands;
  if (first == 0) {
    known.operands.push_back(terms.result);
    all.push_back(Sharding::replicated(terms.result.size()));
  }
  if (const Verdict v = detail::check_terms(known, all, out); !v.ok())
    return first == 0 && v.operand > operands.size()
               ? Verdict{v.rule, operands.size(), v.label, v.axis, v.left, v.right}
               : v;
  if (first == 1) {
    if (const Term lost = letters_without(terms.operands[0], terms.result); !lost.empty())
      return {Rule::label_kept, 0, lost[0]};
    if (const Term made = letters_without(terms.result, terms.operands[0]); !made.empty())
      return {Rule::result_label_known, operands.size(), made[0]};
  }
  if (const Verdict v =
          detail::check_indices(terms, operands, first, first + indices, terms.operands.back());
      !v.ok())
    return v;
  for (int t = 0; t < operands.size(); ++t)
    if (!operands[t].partial.empty() &&
        (reduction == Reduction::none || operands[t].reduction != reduction))
      return {Rule::finished, t};
  if (reduction == Reduction::none && !out.partial.empty())
    return {Rule::finished, operands.size()};
  return detail::check_open_axes(terms, operands, out, reduction);
}

/// Checks the one-hot form of indices; `labels` are the result's, one of which is `along`.
constexpr Verdict check_one_hot(const Terms& labels, char along, const Shardings& indices,
                                const Sharding& out) {
  Terms terms = labels;
  if (!terms.well_formed) return {Rule::equation_readable};
  if (!terms.result.contains(along)) return {Rule::along_known, 1, along};
  terms.operands = {letters_without(terms.result, Term{along}), Term{along}};
  if (const Verdict v = detail::check_terms(terms, {indices[0], Sharding::replicated(1)}, out);
      !v.ok())
    return v;
  if (!indices[0].partial.empty()) return {Rule::finished, 0};
  return out.partial.empty() ? Verdict{} : Verdict{Rule::finished, 1};
}

namespace detail {
constexpr Verdict check_along(const Terms& terms, const Terms& along) {
  if (!along.well_formed || along.result.empty()) return {Rule::equation_readable};
  if (const int d = repeated_label(along.result); d >= 0)
    return {Rule::label_once, 0, along.result[d]};
  for (char label : along.result)
    if (!terms.result.contains(label)) return {Rule::along_known, 0, label};
  return {};
}
}  // namespace detail

/// Checks a window of x that begins anywhere along the letters of `along` (same_terms of them).
constexpr Verdict check_dynamic_slice(const Terms& terms, const Terms& along,
                                      const Shardings& operands, const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  if (const Verdict v = detail::check_along(terms, along); !v.ok()) return v;
  Terms sliced = terms;  // what is read along is open, as what is summed is
  sliced.result = letters_without(terms.result, along.result);
  return detail::check_open_axes(
      sliced, operands, out, operands[0].partial.empty() ? out.reduction : operands[0].reduction);
}

/// Checks a window that is written: x and the update are finished, or unfinished alike.
constexpr Verdict check_dynamic_update(const Terms& terms, const Terms& along,
                                       const Shardings& operands, const Sharding& out) {
  Terms two = terms;
  if (two.well_formed) two.operands.push_back(two.result);
  if (const Verdict v = detail::check_terms(two, operands, out); !v.ok()) return v;
  if (const Verdict v = detail::check_along(terms, along); !v.ok()) return v;
  if (operands[0].partial != operands[1].partial) return {Rule::finished, 1};
  if (operands[0].reduction != operands[1].reduction) return {Rule::reduction_alike, 1};
  if (!(out.partial - operands[0].partial).empty()) return {Rule::open_axis_contracted, 2};
  if (!out.partial.empty() && out.reduction != operands[0].reduction)
    return {Rule::reduction_alike, 2};
  return {};
}

/// Returns the sharding that a take's, a scatter's or a window's result has when none is asked for,
/// finished. A take's as that of a product (plan/deduce.hpp); a scatter's as its operand's, else as
/// its updates'; a window's as the whole's, but for the dimensions along which it begins anywhere.
constexpr Sharding deduce_scatter(const Terms& terms, const Shardings& operands) {
  const bool whole = has_operand(terms);
  const int from = whole ? 0 : operands.size() - 1;
  Sharding out = Sharding::replicated(terms.result.size());
  for (int d = 0; d < out.rank(); ++d)
    if (const int at = terms.operands[from].find(terms.result[d]); at >= 0)
      out[d] = operands[from][at];
  return out;
}
constexpr Sharding deduce_window(const Terms& terms, const Terms& along, const Sharding& x) {
  Sharding out = x.finished();
  for (int d = 0; d < out.rank() && d < terms.result.size(); ++d)
    if (along.result.contains(terms.result[d])) out[d] = {};
  return out;
}

}  // namespace tessera
