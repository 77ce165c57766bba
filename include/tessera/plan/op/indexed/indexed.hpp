// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Takes, scatters and similar operators: whether their indices are legal
/// (plan/work/index_terms.hpp says which letters they index), and which reduction joins the parts
/// of a take.
///
///     detail::take_terms(2, 1, 0).result == Term{'A', 'b'}       // of x (a, b) at (A)
///     to_text(detail::take_along_terms("bv", 'v')) == "bv,bA->bA"
///
/// Laws: indices are finished, and of int32 or int64.
#include <string_view>

#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/work/index_terms.hpp>

namespace tessera::detail {

/// Returns the terms of a take along dimension `dim` of a tensor, which the indices' dimensions
/// replace: NumPy's take.
constexpr Terms take_terms(int rank, int indices_rank, int dim) {
  Terms terms;
  Term x = default_labels(rank), i;
  for (int d = 0; d < indices_rank; ++d) i.push_back(static_cast<char>('A' + d));
  terms.well_formed = dim >= 0 && dim < rank && rank - 1 + indices_rank <= max_dims;
  terms.operands = {x, i};
  if (!terms.well_formed) return terms;
  for (int d = 0; d < rank; ++d) {
    if (d != dim) terms.result.push_back(x[d]);
    for (int k = 0; d == dim && k < indices_rank; ++k) terms.result.push_back(i[k]);
  }
  return terms;
}

/// Returns the terms of a take of each line along letter `along` of a tensor, by the indices of the
/// same line: NumPy's take_along_axis. The dimension of the indices, and of the result, gets a
/// letter of its own. The terms are ill formed where `along` is none of the letters.
constexpr Terms take_along_terms(std::string_view labels, char along) {
  Terms terms = same_terms(labels, 2);
  const int d = terms.result.find(along);
  terms.well_formed = terms.well_formed && d >= 0;
  if (!terms.well_formed) return terms;
  char own = 'A';
  while (terms.result.contains(own)) ++own;
  terms.operands[1][d] = terms.result[d] = own;
  return terms;
}

/// Returns the reduction that joins the parts of a take's result: the one that the caller asks for,
/// else the one by which the table is unfinished, else a sum (for truth values, any). All parts but
/// one are neutral, so each of these is exact.
constexpr Reduction take_reduction(const TensorDesc& x, const Sharding& out) {
  if (!out.partial.empty()) return out.reduction;
  if (!x.sharding.partial.empty()) return x.sharding.reduction;
  return is_boolean(x.type) ? Reduction::any : Reduction::sum;
}

/// The terms and operands of a take with one more operand, which has the letters of the windows and
/// is replicated: no operand has their extents.
struct WithWindows {
  Terms terms;
  TensorDescs operands;
};
constexpr WithWindows with_windows(Terms terms, TensorDescs operands) {
  if (!terms.well_formed || terms.operands.size() != operands.size() ||
      operands.size() == max_operands)
    return {terms, operands};
  if (const Term windows = indices_of_take(terms).windows(); !windows.empty()) {
    const int rank = windows.size();
    terms.operands.push_back(windows);
    operands.push_back({DType::i64, Extents(rank, 1), Sharding::replicated(rank)});
  }
  return {terms, operands};
}
/// Checks what check_terms does; no operand has the letters of the windows.
constexpr Verdict check_take_terms(const Terms& terms, const TensorDescs& x, const Sharding& out) {
  const WithWindows all = with_windows(terms, x);
  Verdict v = check_terms(all.terms, shardings_of(all.operands), out);
  if (v.operand > x.size()) v.operand = x.size();
  return v;
}
/// Checks the indices: operand `first` and all operands after it.
constexpr Verdict check_indices(const IndexTerms& terms, const TensorDescs& operands, int first) {
  const int indexed = terms.indexed().size(), tensors = terms.tensors.size();
  if (terms.places().size() != indexed || indexed == 0 || indexed > max_indices)
    return {Rule::indices_match, -1, 0, -1, indexed, tensors};
  for (int t = 0; t < tensors; ++t) {
    const TensorDesc& x = operands[first + t];
    if (!x.sharding.partial.empty()) return {Rule::finished, first + t};
    for (const char label : terms.tensors[t])
      if (!terms.rows.contains(label) && label != terms.column(t))
        return {Rule::index_letter_kept, first + t, label};
    if (const Verdict v = check_index_type(x.type, first + t); !v.ok()) return v;
  }
  return {};
}
/// Returns the operands with the right number of columns in the tensor of indices.
constexpr TensorDescs with_columns(const IndexTerms& terms, TensorDescs operands, int first) {
  for (int t = 0; t < terms.tensors.size() && first + t < operands.size(); ++t)
    if (const int d = terms.tensors[t].find(terms.column(t)); d >= 0)
      operands[first + t].extents[d] = terms.columns();
  return operands;
}
/// Checks that a tensor of indices has the right number of columns.
constexpr Verdict check_columns(const IndexTerms& terms, const TensorDescs& operands, int first) {
  for (int t = 0; t < terms.tensors.size(); ++t)
    if (const int d = terms.tensors[t].find(terms.column(t));
        d >= 0 && operands[first + t].extents[d] != terms.columns())
      return {.rule = Rule::index_column_each,
              .label = terms.column(t),
              .left = operands[first + t].extents[d],
              .right = terms.columns()};
  return {};
}
/// Checks that a clamped index has a valid position in each indexed dimension of the table, of
/// `extents`, when the rows are of `rows`.
constexpr Verdict check_indexed(const IndexTerms& terms, const Extents& extents,
                                const Extents& rows, OutOfRange out_of_range) {
  if (volume(rows) == 0 || out_of_range == OutOfRange::drop) return {};
  for (const char letter : terms.indexed()) {
    const Index extent = extents[terms.table.find(letter)];
    const int window = terms.rows.find(terms.window(letter));
    if (extent == 0)
      return {.rule = Rule::indexed_not_empty, .label = letter, .left = volume(rows)};
    if (window >= 0 && rows[window] > extent)
      return {.rule = Rule::indexed_window_within,
              .label = letter,
              .left = rows[window],
              .right = extent};
  }
  return {};
}
/// Returns the operands of an operator in place, whose tensor comes last, with the tensor first.
constexpr TensorDescs last_first(const TensorDescs& operands) {
  TensorDescs ordered{operands.back()};
  for (int t = 0; t + 1 < operands.size(); ++t) ordered.push_back(operands[t]);
  return ordered;
}
}  // namespace tessera::detail
