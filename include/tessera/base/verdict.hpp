// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A verdict: the first rule that a call breaks, with the facts that break it, as numbers; and the
/// text of its exception. The functions that check are in the rooms spec and plan.
///
///     const Verdict v{.rule = Rule::dimension_known, .operand = 0, .left = 2, .dim = 5};
///     explain(v, {.operands = 1}) ==
///         "a dimension is named that the tensor does not have; dimensions count from 0; "
///         "name one of the tensor's (operand 1, dimension 5 of 2)";
///
/// Laws: a legal call has the verdict Verdict{}. Tests compare verdicts, types turn them into
/// messages (detail::InvalidOperator), the run time into exceptions.
#include <string>
#include <string_view>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>
#include <tessera/base/rule.hpp>

namespace tessera {

struct Verdict {
  Rule rule = Rule::ok;
  /// The operand concerned (the number of operands stands for the result), or the process.
  int operand = -1;
  char label = 0;  ///< the letter
  int axis = -1;   ///< the mesh axis
  Index left = 0;  ///< the two facts that disagree, where they are numbers
  Index right = 0;
  int dim = -1;              ///< the dimension
  DType type = DType::f16;   ///< the element type, where a rule about element types is broken
  DType other = DType::f16;  ///< and another one that disagrees
  constexpr bool ok() const { return rule == Rule::ok; }
  constexpr bool operator==(const Verdict&) const = default;
};

namespace detail {
/// The names of a verdict's facts where it was made.
struct FactNames {
  int operands = 0;                     ///< how many operands there are
  std::string axis = {};                ///< the name of the axis; empty: not printed
  std::string first = {}, second = {};  ///< what replaces {first} and {second} in a row
};

/// Returns `text` with the facts inserted.
inline std::string with_facts(std::string_view text, const Verdict& v, const FactNames& names) {
  const auto fact = [&](std::string_view place) -> std::string {
    if (place == "left") return std::to_string(v.left);
    if (place == "right") return std::to_string(v.right);
    if (place == "letter") return std::string(1, v.label);
    if (place == "dim") return std::to_string(v.dim);
    if (place == "type") return std::string(name_of(v.type));
    if (place == "other") return std::string(name_of(v.other));
    return place == "first" ? names.first : names.second;
  };
  std::string filled;
  for (std::size_t open; (open = text.find('{')) != text.npos;) {
    const std::size_t close = text.find('}', open);
    filled += text.substr(0, open);
    filled += fact(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
  return filled += text;
}
}  // namespace detail

/// Returns the sentence of the broken rule with its facts, for errors at run time.
inline std::string explain(const Verdict& v, const detail::FactNames& names = {}) {
  const detail::RuleRow& row = detail::row_of(v.rule);
  if (row.sentence.find('{') != row.sentence.npos)
    return detail::with_facts(row.sentence, v, names);
  std::string facts;
  const auto add = [&facts](const std::string& fact) {
    facts += (facts.empty() ? " (" : ", ") + fact;
  };
  if (v.operand >= 0)
    add(v.operand < names.operands ? "operand " + std::to_string(v.operand + 1)
                                   : std::string("the result"));
  if (v.label != 0) add(std::string("letter ") + v.label);
  if (v.axis >= 0 && !names.axis.empty()) add("axis " + names.axis);
  if (!row.facts.empty()) add(detail::with_facts(row.facts, v, names));
  return std::string(row.sentence) + (facts.empty() ? "" : facts + ")");
}

namespace detail {
/// Throws the exception of a broken rule. The text is explain()'s, with any facts that the caller
/// adds; the rule's place in docs/errors.md follows.
[[noreturn]] inline void throw_broken(Rule rule, std::string text, Where where = {}) {
  text += " (docs/errors.md#r" + std::to_string(number_of(rule)) + ")";
  switch (kind_of(rule)) {
    case ErrorKind::shape:
      throw ShapeError(text, where);
    case ErrorKind::sharding:
      throw ShardingError(text, where);
    case ErrorKind::usage:
      break;
  }
  throw UsageError(text, where);
}
}  // namespace detail
}  // namespace tessera
