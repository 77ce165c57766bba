// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A table of text.
///
///     detail::TextTable table;
///     table.row({"all-gather", "->", "30 MiB"});
///     table.text("  ");
///
/// Laws: a column begins two spaces after the widest cell of the one before it; no line ends with a
/// space.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace tessera::detail {
/// Rows of text with columns as wide as their widest cell.
class TextTable {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(const std::string& indent) const {
    std::vector<std::size_t> width;
    for (const auto& r : rows_)
      for (std::size_t c = 0; c < r.size(); ++c) {
        if (c >= width.size()) width.push_back(0);
        width[c] = std::max(width[c], r[c].size());
      }
    std::string out;
    for (const auto& r : rows_) {
      std::string line = indent;
      for (std::size_t c = 0; c < r.size(); ++c)
        line += r[c] + std::string(width[c] - r[c].size() + 2, ' ');
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tessera::detail
