// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an operator may be applied, as a value: decided from labels and shardings alone (what a
/// typed call checks at compile time), and from extents (what is known when the program runs).
///
///     check_einsum(parse("ik,kj->iz"), {a, b}, out).rule == Rule::result_label_known
///
/// Laws: a plan is made only for operators whose verdict is Rule::ok; the same function serves
/// types and run time.
#include <cstdint>
#include <string>

#include <tessera/base/linearity.hpp>
#include <tessera/plan/deduce.hpp>
#include <tessera/plan/einsum.hpp>

namespace tessera {

enum class Rule : std::uint8_t {
  ok,
  equation_readable,     ///< letters, commas, one arrow
  operand_count,         ///< the equation speaks of as many tensors as are given
  rank_matches,          ///< as many labels as dimensions
  label_once,            ///< no label twice in one tensor
  result_label_known,    ///< every label of the result is some operand's
  label_kept,            ///< an elementwise operator sums nothing away
  finished,              ///< a partial value is not used as a value
  one_unfinished,        ///< a product takes one partial operand at most
  open_axis_contracted,  ///< an axis left open splits something that is reduced
  reduction_alike,       ///< partial values are combined by one kind of reduction
  extents_agree,         ///< a label has one extent
  along_known,           ///< a scan runs along a letter of its operand
  convolution_letters,   ///< letters of a convolution are a batch, two features, spatial ones
  indices_match,         ///< as many tensors of indices as letters are indexed
  index_letter_kept,     ///< letters of the indices are the result's (a scatter's: the updates')
};

struct Verdict {
  Rule rule = Rule::ok;
  int operand = -1;  ///< the operand concerned; the number of operands stands for the result
  char label = 0;
  int axis = -1;
  Index left = 0;  ///< the two facts that disagree, where they are numbers
  Index right = 0;
  constexpr bool ok() const { return rule == Rule::ok; }
  constexpr bool operator==(const Verdict&) const = default;
};

namespace detail {
/// Checks what every operator with an equation has in common; `diagonals`: letters may repeat
/// within an operand.
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
}  // namespace detail

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

/// Checks the epilogue of a product into `out`: `all` is what with_extras returns. It acts on
/// finished values; only what is added to (`adds`) may be as unfinished as the product.
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

namespace detail {
/// Whether a function of these claims may act on unfinished values of this kind, all alike.
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
}  // namespace detail

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
  // A selection's condition is finished; what it selects from is alike.
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

/// Returns the rule that was broken and the way out, without the facts: what a type's message says
/// too.
constexpr std::string_view sentence(Rule rule) {
  switch (rule) {
    case Rule::ok:
      return "the operator is legal";
    case Rule::equation_readable:
      return "the equation cannot be read; write one letter a dimension, commas between operands "
             "and one arrow, as in \"ik,kj->ij\"";
    case Rule::operand_count:
      return "the equation speaks of another number of tensors than it is given; write one group "
             "of letters for each operand";
    case Rule::rank_matches:
      return "the equation gives a tensor another number of dimensions than it has; write one "
             "letter for each dimension";
    case Rule::label_once:
      return "a letter stands twice in one tensor; only the operands of an einsum or a sum have "
             "diagonals; rename one of them";
    case Rule::result_label_known:
      return "the result has a letter that no operand has; take it from an operand, or drop it";
    case Rule::label_kept:
      return "an elementwise operator or transpose drops a dimension; use reduce to sum it away, "
             "or keep its letter in the result";
    case Rule::finished:
      return "an unfinished partial value is used as a value; only linear operators act on "
             "Unreduced<Sum>, multiplicative ones on Unreduced<Product> and monotone ones on "
             "Unreduced<Max> or <Min>; reshard it to a finished spec first";
    case Rule::one_unfinished:
      return "both operands of a product are unfinished sums; a product is linear in one of them "
             "at a time; reshard one to a finished spec first";
    case Rule::open_axis_contracted:
      return "the result is to stay Unreduced over an axis that splits nothing that is reduced; "
             "name an axis of a reduced dimension, or ask for a finished result";
    case Rule::reduction_alike:
      return "partial values of one kind meet a reduction of another; finish them first, or use "
             "the same kind";
    case Rule::extents_agree:
      return "one letter stands for dimensions of different extent; make the extents equal";
    case Rule::along_known:
      return "it is to run along a letter that its operand does not have; write the letters of the "
             "operand, and one of them";
    case Rule::convolution_letters:
      return "a convolution has a batch in input and result, an input feature in input and kernel, "
             "an output feature in kernel and result, and one to three spatial letters in all "
             "three; write them as in \"bhwi,hwio->bhwo\"";
    case Rule::indices_match:
      return "a take has one tensor of indices for each letter of its table that the result drops, "
             "a scatter for each letter of its result that the updates lack, and there are one to "
             "six of them; write as many groups of letters between table and result, or updates";
    case Rule::index_letter_kept:
      return "a letter of the indices is missing in the result of a take, or in the updates of a "
             "scatter; indices are not summed away; keep the letter";
  }
  return "";
}

/// Returns the sentence with its facts, for errors at run time.
inline std::string explain(const Verdict& v, const Terms& terms, const AxisNames& names) {
  std::string text = "\"" + to_text(terms) + "\": " + std::string(sentence(v.rule));
  std::string facts;
  const auto fact = [&](const std::string& f) { facts += (facts.empty() ? "" : ", ") + f; };
  if (v.operand >= 0)
    fact(v.operand < terms.operands.size() ? "operand " + std::to_string(v.operand + 1)
                                           : std::string("the result"));
  if (v.label != 0) fact(std::string("letter ") + v.label);
  if (v.axis >= 0 && v.axis < names.size()) fact("axis " + std::string(names[v.axis]));
  if (v.rule == Rule::extents_agree || v.rule == Rule::rank_matches ||
      v.rule == Rule::operand_count || v.rule == Rule::indices_match)
    fact(std::to_string(v.left) + " against " + std::to_string(v.right));
  return facts.empty() ? text : text + " (" + facts + ")";
}

namespace detail {
/// Instantiated only for a call that breaks a rule; the assertion is the message, the arguments are
/// the facts.
template <class...> inline constexpr bool broken = false;
template <Rule R, class... Facts> struct InvalidOperator;
template <class... Facts> struct InvalidOperator<Rule::equation_readable, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] the equation cannot be read; write one letter a dimension, commas "
                  "between operands and one arrow, as in \"ik,kj->ij\"");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::operand_count, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] the equation speaks of another number of tensors than it is given; "
                  "write one group of letters for each operand");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::rank_matches, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] the equation gives a tensor another number of dimensions than it has; "
                  "write one letter for each dimension");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::label_once, Facts...> {
  static consteval bool said() {
    static_assert(
        broken<Facts...>,
        "[tessera] a letter stands twice in one tensor; only the operands of an einsum or a "
        "sum have diagonals; rename one of them");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::result_label_known, Facts...> {
  static consteval bool said() {
    static_assert(sizeof...(Facts) > 99,
                  "[tessera] the result has a letter that no operand has; take it from an operand, "
                  "or drop it");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::label_kept, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] an elementwise operator or transpose drops a dimension; use reduce to "
                  "sum it away, or keep its letter in the result");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::finished, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] an unfinished partial value is used as a value; only linear operators "
                  "act on Unreduced<Sum>, multiplicative ones on Unreduced<Product> and monotone "
                  "ones on Unreduced<Max> or <Min>; reshard it to a finished spec first");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::one_unfinished, Facts...> {
  static consteval bool said() {
    static_assert(
        broken<Facts...>,
        "[tessera] both operands of a product are unfinished sums; a product is linear in "
        "one of them at a time; reshard one to a finished spec first");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::open_axis_contracted, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] the result is to stay Unreduced over an axis that splits nothing that "
                  "is reduced; name an axis of a reduced dimension, or ask for a finished result");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::along_known, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] it is to run along a letter that its operand does not have; write the "
                  "letters of the operand, and one of them: cumsum<\"bij\", 'j'>(x)");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::convolution_letters, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] a convolution has a batch in input and result, an input feature in "
                  "input and kernel, an output feature in kernel and result, and one to three "
                  "spatial letters in all three; write them as in \"bhwi,hwio->bhwo\"");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::indices_match, Facts...> {
  static consteval bool said() {
    static_assert(
        broken<Facts...>,
        "[tessera] a take has one tensor of indices for each letter of its table that the "
        "result drops, a scatter for each letter of its result that the updates lack, and "
        "there are one to six of them; write as many groups of letters between table and "
        "result, or updates");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::index_letter_kept, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] a letter of the indices is missing in the result of a take, or in the "
                  "updates of a scatter; indices are not summed away; keep the letter");
    return true;
  }
};
template <class... Facts> struct InvalidOperator<Rule::reduction_alike, Facts...> {
  static consteval bool said() {
    static_assert(broken<Facts...>,
                  "[tessera] partial values of one kind meet a reduction of another; finish them "
                  "first, or use the same kind");
    return true;
  }
};
}  // namespace detail

}  // namespace tessera
