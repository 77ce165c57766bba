// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A file of translations, which score.py reads: matrices de.24.translation whose row i translates
/// row i of de.24.source.
///
///     Translations made;
///     made.add("de", 24, tokens);                        // the next row
///     made.write("translations.safetensors");            // by one process
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../support/output_file.hpp"
#include "text.hpp"

namespace translation {

class Translations {
 public:
  void add(const std::string& language, Index length, const std::vector<Id>& tokens) {
    rows_[{language, length}].push_back(tokens);
  }

  /// Throws UsageError where the file cannot be written.
  void write(const std::string& path) const {
    std::string header = "{", data;
    for (const auto& [key, rows] : rows_) {
      std::size_t width = 1;
      for (const auto& row : rows) width = std::max(width, row.size());
      const std::size_t begin = data.size();
      for (const auto& row : rows)
        for (std::size_t i = 0; i < width; ++i) {
          const auto id = static_cast<std::uint32_t>(i < row.size() ? row[i] : 0);
          for (int byte = 0; byte < 4; ++byte)
            data.push_back(static_cast<char>(id >> 8 * byte & 0xFF));
        }
      header += fmt::format(
          R"({}"{}.{}.translation":{{"dtype":"I32","shape":[{},{}],"data_offsets":[{},{}]}})",
          header.size() > 1 ? "," : "", key.first, key.second, rows.size(), width, begin,
          data.size());
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::string length;
    for (int byte = 0; byte < 8; ++byte)
      length.push_back(static_cast<char>(header.size() >> 8 * byte & 0xFF));
    support::write_text(path, length + header + data);
  }

 private:
  std::map<std::pair<std::string, Index>, std::vector<std::vector<Id>>> rows_;
};

}  // namespace translation
