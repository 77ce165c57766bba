// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Environment variables, read strictly: a value that makes no sense is an error and not a default.
///
///     number_variable("TESSERA_TIME_LIMIT", 600.0)
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

#include <tessera/base/error.hpp>

namespace tessera::detail {

/// Returns the number in variable `name`, or `otherwise` when it is unset or empty; throws
/// UsageError when it is no number >= 0.
inline double number_variable(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0))
    throw UsageError(std::string(name) + " is \"" + text +
                     "\"; it is a number, zero or more: set it so, or unset it");
  return value;
}

/// Returns the index in `words` of the text in variable `name`, or -1 when it is unset or empty;
/// throws UsageError otherwise.
inline int choice_variable(const char* name, std::initializer_list<std::string_view> words) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return -1;
  int index = 0;
  std::string list;
  for (const std::string_view word : words) {
    if (word == text) return index;
    list += (index++ > 0 ? ", " : "") + std::string(word);
  }
  throw UsageError(std::string(name) + " is \"" + text + "\"; it is one of " + list +
                   ": set it so, or unset it");
}

}  // namespace tessera::detail
