// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Numbers among the facts of a checkpoint, as texts that read as the same numbers again.
///
///     const std::map<std::string, std::string> facts{{"scale", detail::shortest_text(0.1)}};
///     detail::number_of_fact<double>(facts, "scale", Where::here()) == 0.1
#include <charconv>
#include <map>
#include <string>
#include <system_error>

#include <tessera/base/error.hpp>

namespace tessera {

namespace detail {
/// Returns the shortest text that reads as the same number.
inline std::string shortest_text(double x) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, x).ptr);
}
/// Returns a fact as a number. Throws UsageError where it is none.
template <class T>
T number_of_fact(const std::map<std::string, std::string>& facts, const char* key, Where where) {
  const auto said = facts.find(key);
  T value{};
  const std::string text = said == facts.end() ? "" : said->second;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    throw UsageError("an optimizer is resumed from facts " +
                         (text.empty() ? "without " + std::string(key)
                                       : "whose " + std::string(key) + " is \"" + text + "\"") +
                         "; write what its facts() returns with its state",
                     where);
  return value;
}
}  // namespace detail

}  // namespace tessera
