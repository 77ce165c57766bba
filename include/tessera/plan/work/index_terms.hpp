// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The letters of takes and scatters: which are indexed, and where their indices are.
///
///     detail::indices_of_take(parse("vm,bs->bsm")).indexed() == Term{'v'}
///     detail::indices_of_take(parse("xyc,nk->nc")).column(0) == 'k'        // x by one column, y by the other
///     detail::indices_of_take(parse("vm,b->bVm")).window('v') == 'V'       // several elements of v
///
/// Laws: a take has one tensor of indices for each letter of the table that its result drops, in
/// the table's order; a scatter has one for each letter of its result that the updates lack. One
/// tensor of indices may have columns, along a letter that no other tensor has; it then stands for
/// several. Where the rows have an indexed letter in the other case, an index names the beginning
/// of a window along it; else one element.
#include <tessera/base/local_index.hpp>
#include <tessera/plan/equation.hpp>

namespace tessera::detail {

/// Returns the letters that a scatter indexes, and whether it has a table: no tensor of indices has
/// one of them.
constexpr Term indexed_letters(const Terms& scatter) {
  return letters_without(scatter.result, scatter.operands.back());
}
constexpr bool has_operand(const Terms& scatter) {
  const Term indexed = indexed_letters(scatter);
  bool table = scatter.operands.size() == indexed.size() + 2;
  for (const char letter : scatter.operands[0]) table = table || indexed.contains(letter);
  return table && scatter.operands.size() > 2;
}

/// Returns the letter in the other case: of 'v', 'V'; of 'V', 'v'.
constexpr char other_case(char letter) { return static_cast<char>(letter ^ ('a' ^ 'A')); }

/// The indices of one letter: a tensor of indices, or one of its columns.
struct IndexPlace {
  int tensor = 0;
  int column = 0;
};
/// The letters of the tensors of indices, of the table, and of the rows that are taken or
/// scattered. One of the tensors may have columns, one for each letter without a tensor of its own.
struct IndexTerms {
  FixedVector<Term, max_operands> tensors = {};
  Term table = {};
  Term rows = {};

  constexpr Term indexed() const { return letters_without(table, rows); }
  constexpr int columns() const { return indexed().size() - tensors.size() + 1; }
  /// Returns the letter along which tensor `t` has columns, which no other tensor has; 0: no
  /// columns.
  constexpr char column(int t) const {
    if (columns() > 1)
      for (const char letter : tensors[t])
        if (!table.contains(letter) && !rows.contains(letter)) return letter;
    return 0;
  }
  /// Returns the letters along which tensors have columns, one at most.
  constexpr Term column_letters() const {
    Term letters;
    for (int t = 0; t < tensors.size(); ++t)
      if (column(t) != 0) letters.push_back(column(t));
    return letters;
  }
  /// Returns the letter of the rows along which windows of an indexed letter lie; 0: no windows.
  constexpr char window(char indexed) const {
    const char letter = other_case(indexed);
    bool free = rows.contains(letter) && !table.contains(letter);
    for (const Term& tensor : tensors) free = free && !tensor.contains(letter);
    return free ? letter : 0;
  }
  /// Returns the letters of windows, in the order of the rows.
  constexpr Term windows() const {
    Term letters;
    for (const char letter : rows)
      if (indexed().contains(other_case(letter)) && window(other_case(letter)) != 0)
        letters.push_back(letter);
    return letters;
  }
  /// Returns where the indices of each indexed letter are, in their order.
  constexpr FixedVector<IndexPlace, max_dims> places() const {
    FixedVector<IndexPlace, max_dims> list;
    for (int t = 0; t < tensors.size(); ++t)
      for (int c = 0; c < (column(t) != 0 ? columns() : 1) && list.size() < max_dims; ++c)
        list.push_back({t, c});
    return list;
  }
};
/// Return the index terms of a take, and of a scatter.
constexpr IndexTerms indices_of_take(const Terms& terms) {
  IndexTerms indices{{}, terms.operands[0], terms.result};
  for (int t = 1; t < terms.operands.size(); ++t) indices.tensors.push_back(terms.operands[t]);
  return indices;
}
constexpr IndexTerms indices_of_scatter(const Terms& terms) {
  IndexTerms indices{{}, terms.result, terms.operands.back()};
  for (int t = has_operand(terms) ? 1 : 0; t + 1 < terms.operands.size(); ++t)
    indices.tensors.push_back(terms.operands[t]);
  return indices;
}
}  // namespace tessera::detail
