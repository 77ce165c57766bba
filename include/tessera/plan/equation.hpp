// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The einsum equation: one string as a template argument, lowered at once to plain labels.
///
///     constexpr Terms t = parse("bsm,mh->bsh");
///     t.operands.size() == 2;   t.result == Term{'b', 's', 'h'}
///
/// Laws: to_text(parse(e)) == e without blanks. plan/check/verdict.hpp decides whether an equation
/// is well formed.
#include <string>
#include <string_view>

#include <tessera/base/box.hpp>
#include <tessera/base/fixed_vector.hpp>

namespace tessera {

/// Most operands an operator may have.
inline constexpr int max_operands = 8;

/// The text of an equation. It is not a template, and has a constructor from its members, because
/// nvcc's host code needs both.
struct Equation {
  static constexpr int capacity = 96;
  char text[capacity]{};
  int length = 0;

  constexpr Equation() = default;
  template <int N>
  constexpr Equation(const char (&literal)[N])
      : length(N - 1) {  // NOLINT: implicit, so that einsum<"..."> works
    static_assert(N <= capacity, "[tessera] an equation has at most 95 characters");
    for (int i = 0; i + 1 < N && i < capacity; ++i) text[i] = literal[i];
  }
  constexpr Equation(const char (&characters)[capacity], int count) : length(count) {
    for (int i = 0; i < capacity; ++i) text[i] = characters[i];
  }
  /// Makes an equation at run time; blanks are dropped, and a text that is too long is made
  /// invalid, so that parse refuses it.
  static constexpr Equation from(std::string_view view) {
    Equation e;
    for (char c : view) {
      if (c == ' ') continue;
      if (e.length == capacity) {
        e.text[0] = '?';
        break;
      }
      e.text[e.length++] = c;
    }
    return e;
  }
  constexpr std::string_view view() const {
    return {text, static_cast<std::string_view::size_type>(length)};
  }
};

/// The labels of one tensor's dimensions.
using Term = FixedVector<char, max_dims>;

struct Terms {
  FixedVector<Term, max_operands> operands;
  Term result;
  bool well_formed = true;  ///< letters, commas and one arrow, within the capacities
  constexpr bool operator==(const Terms&) const = default;
};

namespace detail {
/// Returns whether c may name a dimension.
constexpr bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
}  // namespace detail

/// Returns the labels of "ab,bc->ac"; blanks are ignored. A text that is too long gives no labels.
constexpr Terms parse(std::string_view text) {
  Terms terms;
  if (text.size() > Equation::capacity) return terms.well_formed = false, terms;
  terms.operands.push_back({});
  bool after_arrow = false;
  for (std::string_view::size_type i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (detail::is_label(c)) {
      Term& term = after_arrow ? terms.result : terms.operands.back();
      if (term.size() == max_dims) return terms.well_formed = false, terms;
      term.push_back(c);
    } else if (c == ',' && !after_arrow && terms.operands.size() < max_operands) {
      terms.operands.push_back({});
    } else if (c == '-' && !after_arrow && i + 1 < text.size() && text[i + 1] == '>') {
      after_arrow = true;
      ++i;
    } else {
      terms.well_formed = false;
      return terms;
    }
  }
  terms.well_formed = after_arrow;
  return terms;
}

/// Return "bsm", and "bsm,mh->bsh".
inline std::string to_text(const Term& term) { return std::string(term.begin(), term.end()); }
inline std::string to_text(const Terms& terms) {
  std::string text;
  for (int i = 0; i < terms.operands.size(); ++i) {
    if (i > 0) text += ",";
    text += to_text(terms.operands[i]);
  }
  return text.append("->").append(to_text(terms.result));
}

namespace detail {
/// Returns the letters of `all` that `others` does not have, in order.
constexpr Term letters_without(const Term& all, const Term& others) {
  Term left;
  for (char label : all)
    if (!others.contains(label)) left.push_back(label);
  return left;
}

/// Returns labels 'a', 'b', ... for a tensor whose dimensions have no names.
constexpr Term default_labels(int rank) {
  Term term;
  for (int d = 0; d < rank; ++d) term.push_back(static_cast<char>('a' + d));
  return term;
}
}  // namespace detail
}  // namespace tessera
