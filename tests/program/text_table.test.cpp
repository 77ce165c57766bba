// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program_lists
// Tables of text, read back by where their columns begin.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tessera/program/text_table.hpp>

#include "support/enumerate.hpp"

using namespace tessera;

TEST_CASE(
    "a column begins two spaces after the widest cell before it, and no line ends with a space") {
  support::Random random(support::seed_for("text tables", 71));
  for (int turn = 0; turn < 200; ++turn) {
    const std::string indent(static_cast<std::size_t>(random.below(4)), ' ');
    std::vector<std::vector<std::string>> rows(static_cast<std::size_t>(random.below(5)));
    detail::TextTable table;
    for (auto& row : rows) {
      for (int c = random.below(5); c > 0; --c)
        row.push_back(std::string(static_cast<std::size_t>(random.below(7)),
                                  static_cast<char>('a' + random.below(26))));
      table.row(row);
    }
    std::string left = table.text(indent);
    for (const auto& row : rows) {
      const std::size_t end = left.find('\n');
      REQUIRE(end != std::string::npos);
      const std::string line = left.substr(0, end);
      left.erase(0, end + 1);
      CHECK((line.empty() || line.back() != ' '));
      std::size_t at = indent.size(), written = 0;
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (!row[c].empty()) CHECK(line.substr(at, row[c].size()) == row[c]);
        written += row[c].size();
        std::size_t widest = 0;
        for (const auto& other : rows)
          if (c < other.size()) widest = std::max(widest, other[c].size());
        at += widest + 2;
      }
      std::size_t letters = 0;
      for (const char one : line) letters += one != ' ';
      CHECK(letters == written);
    }
    CHECK(left.empty());
  }
}
