// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of rules that are found again from what they do.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tessera/spec/derived_rules.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using support::Random;

namespace {
using Line = detail::RuleValue<std::string, int>;

/// The sharding of named dimensions by a list of rules, found by its definition.
Sharding under(const std::vector<Line>& rules, const std::vector<std::string>& names) {
  Sharding s = Sharding::replicated(static_cast<int>(names.size()));
  std::vector<bool> closed(names.size(), false);
  std::vector<int> used;
  for (const Line& rule : rules)
    for (std::size_t d = 0; d < names.size(); ++d) {
      bool applies = names[d] == rule.name && !closed[d];
      for (const int axis : rule.axes)
        applies = applies && std::find(used.begin(), used.end(), axis) == used.end();
      if (!applies) continue;
      closed[d] = true;
      for (const int axis : rule.axes) {
        s[static_cast<int>(d)].push_back(axis);
        used.push_back(axis);
      }
    }
  return s;
}
const std::vector<std::string> letters{"a", "b", "c", "d", "e"};
std::vector<std::string> some_names(Random& random) {
  std::vector<std::string> names;
  for (const std::string& name : letters)
    if (random.below(2) == 0) names.push_back(name);
  if (random.below(3) == 0) names.emplace_back();
  return names;
}
std::vector<Line> some_rules(Random& random) {
  std::vector<Line> rules(static_cast<std::size_t>(random.below(6)));
  for (Line& rule : rules) {
    rule.name = letters[static_cast<std::size_t>(random.below(5))];
    const int first = static_cast<int>(random.below(3));
    rule.axes.push_back(first);
    if (random.below(4) == 0) rule.axes.push_back((first + 1) % 3);
    if (random.below(6) == 0) rule.axes.clear();
  }
  return rules;
}
}  // namespace

TEST_CASE("what a list of rules does is done by the list that is derived from it") {
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::vector<Line> rules = some_rules(random);
    std::vector<NamedSharding> tensors(static_cast<std::size_t>(1 + random.below(6)));
    for (NamedSharding& t : tensors) {
      t.names = some_names(random);
      t.sharding = under(rules, t.names);
    }
    const DerivedRules derived = derive_rules(tensors);
    CHECK(derived.differ.empty());
    for (const NamedSharding& t : tensors) CHECK(under(derived.rules, t.names) == t.sharding);
  }
}

TEST_CASE("tensors that no list of rules splits so are named, and the others have theirs") {
  Random random(6);
  int some = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<NamedSharding> tensors(4);
    for (NamedSharding& t : tensors) {  // each by a list of its own
      t.names = some_names(random);
      t.sharding = under(some_rules(random), t.names);
    }
    const DerivedRules derived = derive_rules(tensors);
    some += derived.differ.empty() ? 0 : 1;
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (std::count(derived.differ.begin(), derived.differ.end(), static_cast<int>(t)) == 0)
        CHECK(under(derived.rules, tensors[t].names) == tensors[t].sharding);
  }
  CHECK(some > 100);
  const DerivedRules nameless = derive_rules({{{""}, Sharding{{0}}}, {{"a"}, Sharding{{1}}}});
  CHECK(nameless.differ == std::vector<int>{0});
  CHECK(nameless.rules.size() == 1);
  // The heavier of two that contradict each other keeps its sharding.
  CHECK(derive_rules({{{"a"}, Sharding{{0}}, 1}, {{"a"}, Sharding{{1}}, 9}}).differ ==
        std::vector<int>{0});
}
