// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an operator may be applied, as a value: decided from labels and shardings alone (checked
/// by typed calls at compile time), and from extents (known when the program runs).
///
///     detail::check_einsum(parse("ik,kj->iz"), {a, b}, out).rule == Rule::result_label_known
///
/// Laws: a plan is made only for operators whose verdict is Rule::ok; the same function serves
/// types and run time.
#include <string>

#include <tessera/base/linearity.hpp>
#include <tessera/base/verdict.hpp>
#include <tessera/plan/deduce.hpp>

namespace tessera {
namespace detail {

/// Checks the rules of every operator with an equation; `diagonals`: letters may repeat within an
/// operand.
constexpr Verdict check_terms(const Terms& terms, const Shardings& operands, const Sharding& out,
                              bool diagonals = false) {
  if (!terms.well_formed) return {Rule::equation_readable};
  if (terms.operands.size() != operands.size())
    return {Rule::operand_count, -1, 0, -1, terms.operands.size(), operands.size()};
  for (int i = 0; i < operands.size(); ++i) {
    const Term& term = terms.operands[i];
    if (term.size() != operands[i].rank())
      return {Rule::rank_matches, i, 0, -1, term.size(), operands[i].rank()};
    if (const int d = repeated_label(term); d >= 0 && !diagonals)
      return {Rule::label_once, i, term[d]};
  }
  if (terms.result.size() != out.rank())
    return {Rule::rank_matches, operands.size(), 0, -1, terms.result.size(), out.rank()};
  if (const int d = repeated_label(terms.result); d >= 0)
    return {Rule::label_once, operands.size(), terms.result[d]};
  for (char label : terms.result) {
    bool known = false;
    for (const Term& term : terms.operands) known = known || term.contains(label);
    if (!known) return {Rule::result_label_known, operands.size(), label};
  }
  return {};
}
/// An axis may stay open in the result when it splits a reduced dimension or an operand is open
/// over it.
constexpr Verdict check_open_axes(const Terms& terms, const Shardings& operands,
                                  const Sharding& out, Reduction reduction) {
  if (out.partial.empty()) return {};
  if (out.reduction != reduction) return {Rule::reduction_alike, operands.size()};
  AxisSet may;
  for (int i = 0; i < operands.size(); ++i) {
    const Diagonal x = diagonal_of(terms.operands[i], operands[i]);
    may = may | x.sharding.partial;
    for (int d = 0; d < x.labels.size(); ++d)
      if (!terms.result.contains(x.labels[d])) may = may | x.sharding[d].set();
  }
  for (int axis = 0; axis < max_axes; ++axis)
    if (out.partial.contains(axis) && !may.contains(axis))
      return {Rule::open_axis_contracted, operands.size(), 0, axis};
  return {};
}

/// Checks an einsum of one to eight operands into `out`.
constexpr Verdict check_einsum(const Terms& terms, const Shardings& operands, const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out, true); !v.ok()) return v;
  int open = 0;
  for (int i = 0; i < operands.size(); ++i) {
    if (operands[i].partial.empty()) continue;
    if (operands[i].reduction != Reduction::sum) return {Rule::finished, i};
    if (++open > 1) return {Rule::one_unfinished, i};
  }
  return detail::check_open_axes(terms, operands, out, Reduction::sum);
}

/// Checks the epilogue of a product into `out`; `all`: the terms from with_extras. It acts on
/// finished values; only a destination that is added to (`adds`) may be unfinished like the
/// product.
constexpr Verdict check_epilogue(const Terms& all, const TensorDescs& extras, const Sharding& out,
                                 bool adds = false) {
  const int first = all.operands.size() - extras.size();
  for (int i = 0; i < extras.size(); ++i) {
    if (all.operands[first + i].size() != extras[i].rank())
      return {Rule::rank_matches, first + i, 0, -1, all.operands[first + i].size(),
              extras[i].rank()};
    if (!adds && !extras[i].sharding.partial.empty()) return {Rule::finished, first + i};
  }
  return adds || out.partial.empty() ? Verdict{} : Verdict{Rule::finished, all.operands.size()};
}

/// Checks a reduction of one operand. Unfinished values may be reduced further only by their own
/// kind.
constexpr Verdict check_reduce(const Terms& terms, const Shardings& operands, const Sharding& out,
                               Reduction reduction, bool mean) {
  const bool diagonals = reduction == Reduction::sum && !mean;
  if (const Verdict v = detail::check_terms(terms, operands, out, diagonals); !v.ok()) return v;
  const Sharding& x = operands[0];
  if (!x.partial.empty() && x.reduction != reduction) return {Rule::reduction_alike, 0};
  if (mean && !out.partial.empty()) return {Rule::finished, 1};
  return detail::check_open_axes(terms, operands, out, reduction);
}

/// Checks a reordering of dimensions.
constexpr Verdict check_transpose(const Terms& terms, const Shardings& operands,
                                  const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  for (char label : terms.operands[0])
    if (!terms.result.contains(label)) return {Rule::label_kept, 0, label};
  if (!(out.partial - operands[0].partial).empty()) return {Rule::open_axis_contracted, 1};
  if (!out.partial.empty() && out.reduction != operands[0].reduction)
    return {Rule::reduction_alike, 1};
  return {};
}

/// Whether a function with these claims may act on values that are all unfinished by this kind.
constexpr bool acts_on(Linearity claims, Reduction kind) {
  if (has(claims, Linearity::selection)) return kind != Reduction::none;
  switch (kind) {
    case Reduction::none:
      return false;
    case Reduction::sum:
      return has(claims, Linearity::linear);
    case Reduction::product:
      return has(claims, Linearity::multiplicative);
    case Reduction::max:
      return has(claims, Linearity::monotone) || has(claims, Linearity::maximum);
    case Reduction::min:
      return has(claims, Linearity::monotone) || has(claims, Linearity::minimum);
    case Reduction::any:
      return has(claims, Linearity::monotone) || has(claims, Linearity::disjunction);
    case Reduction::all:
      return has(claims, Linearity::monotone) || has(claims, Linearity::conjunction);
  }
  return false;
}

/// Checks an elementwise operator.
constexpr Verdict check_map(const Terms& terms, const Shardings& operands, const Sharding& out,
                            Linearity linearity) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  for (int i = 0; i < operands.size(); ++i)
    for (char label : terms.operands[i])
      if (!terms.result.contains(label)) return {Rule::label_kept, i, label};
  AxisSet open;
  int unfinished = 0;
  int which = -1;
  for (int i = 0; i < operands.size(); ++i)
    if (!operands[i].partial.empty()) {
      open = open | operands[i].partial;
      ++unfinished;
      which = i;
    }
  if (open.empty())
    return out.partial.empty() ? Verdict{} : Verdict{Rule::open_axis_contracted, operands.size()};
  const bool in_any = has(linearity, Linearity::bilinear);
  if (operands[which].reduction == Reduction::sum &&
      (in_any || has(linearity, Linearity::linear_in_first))) {
    if (unfinished > 1) return {Rule::one_unfinished, which};
    if (!in_any && which != 0) return {Rule::finished, which};
    if (out.partial != open || out.reduction != Reduction::sum)
      return {Rule::finished, operands.size()};
    return {};
  }
  // A selection's condition is finished; the tensors that it selects from are alike.
  const int first = has(linearity, Linearity::selection) ? 1 : 0;
  if (first == 1 && !operands[0].partial.empty()) return {Rule::finished, 0};
  for (int i = first; i < operands.size(); ++i) {
    const Reduction kind = operands[i].reduction;
    if (!detail::acts_on(linearity, kind) || operands[i].partial != open)
      return {Rule::finished, i};
    if (kind != operands[first].reduction) return {Rule::reduction_alike, i};
  }
  if (out.partial != open || out.reduction != operands[first].reduction)
    return {Rule::finished, operands.size()};
  return {};
}

/// Checks that every label has one extent; with `stretch`, an extent of 1 goes with any.
constexpr Verdict check_extents(const Terms& terms, const TensorDescs& operands, bool stretch) {
  for (int i = 0; i < operands.size(); ++i)
    for (int d = 0; d < operands[i].rank(); ++d) {
      const char label = terms.operands[i][d];
      const Index extent = operands[i].extents[d];
      const int first = terms.operands[i].find(label);
      if (operands[i].extents[first] != extent)
        return {Rule::extents_agree, i, label, -1, operands[i].extents[first], extent};
      for (int j = 0; j < i; ++j) {
        const int at = terms.operands[j].find(label);
        if (at < 0) continue;
        const Index other = operands[j].extents[at];
        if (other != extent && !(stretch && (other == 1 || extent == 1)))
          return {Rule::extents_agree, i, label, -1, other, extent};
      }
    }
  return {};
}

/// Checks that the extras of an epilogue have the extents of the product's dimensions, or 1.
constexpr Verdict check_extras(const Terms& all, const TensorDescs& factors,
                               const TensorDescs& extras) {
  for (int i = 0; i < extras.size(); ++i) {
    const Term& term = all.operands[factors.size() + i];
    for (int d = 0; d < term.size(); ++d)
      for (int f = 0; f < factors.size(); ++f) {
        const int at = all.operands[f].find(term[d]);
        const Index extent = extras[i].extents[d];
        if (at >= 0 && extent != 1 && extent != factors[f].extents[at])
          return {
              Rule::extents_agree, factors.size() + i, term[d], -1, factors[f].extents[at], extent};
      }
  }
  return {};
}
}  // namespace detail

/// Returns the sentence with its facts, for errors at run time.
inline std::string explain(const Verdict& v, const Terms& terms, const AxisNames& names) {
  detail::FactNames facts{.operands = terms.operands.size()};
  if (v.axis >= 0 && v.axis < names.size()) facts.axis = names[v.axis];
  return "\"" + to_text(terms) + "\": " + explain(v, facts);
}
}  // namespace tessera
