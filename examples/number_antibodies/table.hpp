// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Answers as a table of comma-separated values, as anarcii writes it.
///
///     write_text("numbers.csv", table_of(names, answers));
///
/// Laws: a line for each answer; columns are the numbers 1 to 128 and all insertions that occur, in
/// IMGT's order.
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "numbering.hpp"

namespace number_antibodies {

namespace detail {
/// IMGT's order: insertions at 33, 61 and 112 count down to their number.
struct ImgtOrder {
  bool operator()(const Number& a, const Number& b) const {
    if (a.number != b.number) return a.number < b.number;
    const bool down = a.number == 33 || a.number == 61 || a.number == 112;
    return down ? b.insertion < a.insertion : a.insertion < b.insertion;
  }
};
/// Returns a text as a value, in quotes where it has to be.
inline std::string value_of(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}
}  // namespace detail

/// Returns the table of answers; one that has an error has no place and no residues.
inline std::string table_of(const std::vector<std::string>& names,
                            const std::vector<Answer>& answers) {
  std::set<Number, detail::ImgtOrder> columns;
  for (int n = 1; n <= 128; ++n) columns.insert({n, ""});
  for (const Answer& answer : answers)
    for (const auto& [number, residue] : answer.residues) columns.insert(number);
  std::string text = "Name,Chain,Score,Query start,Query end";
  for (const Number& n : columns) text += fmt::format(",{}{}", n.number, n.insertion);
  text += '\n';
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Answer& answer = answers[i];
    text += fmt::format("{},{},{}", detail::value_of(names[i]), answer.chain,
                        static_cast<float>(answer.score));
    text += answer.error.empty() ? fmt::format(",{},{}", answer.start, answer.end) : ",,";
    std::map<Number, char> residues(answer.residues.begin(), answer.residues.end());
    for (const Number& n : columns) {
      const auto at = residues.find(n);
      text += {',', at == residues.end() ? '-' : at->second};
    }
    text += '\n';
  }
  return text;
}
/// Returns the table of those that have an error.
inline std::string failures_of(const std::vector<std::string>& names,
                               const std::vector<Answer>& answers) {
  std::string text = "Name,Score,Error\n";
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (!answers[i].error.empty())
      text += fmt::format("{},{},{}\n", detail::value_of(names[i]),
                          static_cast<float>(answers[i].score), detail::value_of(answers[i].error));
  return text;
}

}  // namespace number_antibodies
