// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of rules, every row of it: a sentence with its way out, facts at their places, and the
// exception that the run time throws.
#include <doctest/doctest.h>

#include <iterator>
#include <set>
#include <string>

#include <tessera/base/verdict.hpp>

using namespace tessera;

namespace {

static_assert(Verdict{}.ok() && Verdict{} == Verdict{Rule::ok});
static_assert(!Verdict{Rule::finished, 0}.ok() && Verdict{Rule::finished, 0} != Verdict{});
static_assert(detail::kind_of(Rule::extents_agree) == detail::ErrorKind::shape &&
              detail::kind_of(Rule::finished) == detail::ErrorKind::sharding &&
              detail::kind_of(Rule::sums_of_numbers) == detail::ErrorKind::usage);

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_CASE(
    "every rule has a number and a sentence of its own, with a way out, and no place is left "
    "without "
    "its fact") {
  const Verdict all{.operand = 1,
                    .label = 'k',
                    .axis = 2,
                    .left = 701,
                    .right = 702,
                    .dim = 703,
                    .type = DType::c64,
                    .other = DType::i8};
  const detail::FactNames names{
      .operands = 2, .axis = "data", .first = "FIRST", .second = "SECOND"};
  std::set<std::string_view> sentences;
  std::set<int> numbers;
  for (int r = 1; r < static_cast<int>(std::size(detail::rule_rows)); ++r) {
    Verdict v = all;
    v.rule = static_cast<Rule>(r);
    const std::string_view said = sentence(v.rule);
    CAPTURE(said);
    CHECK(sentences.insert(said).second);
    CHECK(numbers.insert(number_of(v.rule)).second);
    CHECK(said.find("; ") != said.npos);
    CHECK((said.back() != '.' && said.back() != ';' && said.back() != ' '));
    const std::string text = explain(v, names),
                      places = std::string(said) + std::string(detail::row_of(v.rule).facts);
    CHECK(text.find_first_of("{}") == text.npos);
    for (const auto& [place, fact] :
         {std::pair{"{left}", "701"}, std::pair{"{right}", "702"}, std::pair{"{dim}", "703"},
          std::pair{"{letter}", "k"}, std::pair{"{type}", "complex<float>"},
          std::pair{"{other}", "int8"}, std::pair{"{first}", "FIRST"},
          std::pair{"{second}", "SECOND"}})
      if (has(places, place)) CHECK(has(text, fact));
    if (!has(std::string(said), "{")) {
      CHECK(text.rfind(said, 0) == 0);
      CHECK(has(text, " (operand 2, letter k, axis data"));
      CHECK(text.back() == ')');
      CHECK(explain(Verdict{.rule = v.rule, .operand = 2}, names).find(" (the result") ==
            said.size());
    }
  }
}

TEST_CASE("facts that a verdict does not have are not shown") {
  CHECK(explain({Rule::finished}) == sentence(Rule::finished));
  CHECK(explain({Rule::label_once, 0, 'i'}, {.operands = 1}) ==
        std::string(sentence(Rule::label_once)) + " (operand 1, letter i)");
  CHECK(explain({.rule = Rule::finished, .axis = 1}) ==
        sentence(Rule::finished));  // without a name
}

TEST_CASE("the run time throws what a rule's row says, with the place of the call") {
  const Where here = Where::here();
  CHECK_THROWS_AS(detail::throw_broken(Rule::rank_matches, "no"), ShapeError);
  CHECK_THROWS_AS(detail::throw_broken(Rule::axis_used_once, "no"), ShardingError);
  CHECK_THROWS_AS(detail::throw_broken(Rule::means_of_floats, "no"), UsageError);
  try {
    detail::throw_broken(Rule::finished, "einsum: text", here);
  } catch (const Error& error) {
    CHECK(has(error.what(), "[tessera] einsum: text (docs/errors.md#r" +
                                std::to_string(number_of(Rule::finished)) + ") (at "));
    CHECK(error.where().line == here.line);
  }
}

}  // namespace
