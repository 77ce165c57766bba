// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which changes of a pass are made under a limit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <tessera/program/detail/selection.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using detail::Change;

TEST_CASE("what is selected keeps the limit, and is one change after the other where it fits") {
  support::Random random(support::seed_for("selections", 70));
  for (int round = 0; round < 2000; ++round) {
    const int n = random.below(20);
    const bool monotone = random.chance(70);
    std::vector<Change> changes;
    std::vector<Index> weighs;
    for (int i = 0; i < n; ++i) {
      changes.push_back({i, static_cast<double>(random.below(9)), random.below(5)});
      weighs.push_back(random.below(10) - (monotone ? 0 : 3));
    }
    const Index limit = random.below(4 * n + 2) - (monotone ? 0 : 3);
    int asked = 0;
    const auto keeps = [&](const std::vector<int>& some) {
      ++asked;
      Index sum = 0;
      for (const int i : some) sum += weighs[static_cast<std::size_t>(i)];
      return sum <= limit;
    };
    const std::vector<int> made = detail::selected(changes, keeps);
    REQUIRE((made.empty() || keeps(made)));
    REQUIRE(asked <= 65);
    if (!monotone) continue;
    std::vector<Change> order = changes;
    std::stable_sort(order.begin(), order.end(), [](const Change& a, const Change& b) {
      return a.saved * static_cast<double>(b.bytes) > b.saved * static_cast<double>(a.bytes);
    });
    std::vector<int> expected;
    for (const Change& change : order) {
      std::vector<int> more = expected;
      more.push_back(change.number);
      if (keeps(more)) expected = more;
    }
    CHECK(made == expected);
    asked = 0;
    std::vector<int> all;
    for (int i = 0; i < n; ++i) all.push_back(i);
    if (n > 0 && keeps(all)) {
      (void)detail::selected(changes, keeps);
      CHECK(asked == 2);
    }
    asked = 0;
    (void)detail::selected(changes, keeps, 3);
    CHECK(asked <= 3);
  }
}
