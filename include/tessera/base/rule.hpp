// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The rules that operators check before anything is planned, as values: their names, their
/// sentences in messages, and the exceptions of the run time. The rules stand in
/// base/rule_table.hpp; base/verdict.hpp has the verdicts that name them.
///
///     sentence(Rule::dimension_once) == "a dimension is named twice; name each once"
///     detail::kind_of(Rule::dimension_once) == detail::ErrorKind::shape
///
/// Laws: the message of a type that breaks a rule is "[tessera] ", the rule's sentence and
/// "(docs/errors.md#r52)", with its number; an exception has the same, and the facts. A rule's name
/// says what holds when it is kept.
#include <cstdint>
#include <string_view>

namespace tessera {

enum class Rule : std::uint8_t {
#define TESSERA_RULE(number, name, kind, facts, sentence) name,
#include <tessera/base/rule_table.hpp>
};

namespace detail {
/// Which exception (base/error.hpp) the run time throws.
enum class ErrorKind : std::uint8_t { shape, sharding, usage };

struct RuleRow {
  int number;  ///< its place in docs/errors.md
  ErrorKind kind;
  std::string_view facts;  ///< how an exception shows them
  std::string_view sentence;
};
inline constexpr RuleRow rule_rows[] = {
#define TESSERA_RULE(number, name, kind, facts, sentence) \
  {number, ErrorKind::kind, facts, sentence},
#include <tessera/base/rule_table.hpp>
};
constexpr const RuleRow& row_of(Rule rule) { return rule_rows[static_cast<int>(rule)]; }
/// Returns which exception the run time throws for the rule.
constexpr ErrorKind kind_of(Rule rule) { return row_of(rule).kind; }

template <class...> inline constexpr bool never = false;

/// Instantiated only for a call that breaks a rule; the assertion is the message, the arguments are
/// the facts. Each rule has a specialization at its row, since compilers show that line. The
/// assertion stands in a function, so that each call gives one error.
template <Rule R, class... Facts> struct InvalidOperator;
#define TESSERA_RULE(number, name, kind, facts, sentence)                                     \
  template <class... Facts> struct InvalidOperator<Rule::name, Facts...> {                    \
    static consteval bool said() {                                                            \
      static_assert(never<Facts...>, "[tessera] " sentence " (docs/errors.md#r" #number ")"); \
      return true;                                                                            \
    }                                                                                         \
  };
#include <tessera/base/rule_table.hpp>
}  // namespace detail

/// Returns the rule's sentence: what is wrong, the rule and the way out.
constexpr std::string_view sentence(Rule rule) { return detail::row_of(rule).sentence; }
/// Returns the rule's number, which leads to its example: docs/errors.md#r52.
constexpr int number_of(Rule rule) { return detail::row_of(rule).number; }

}  // namespace tessera
