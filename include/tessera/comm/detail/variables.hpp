// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Environment variables, read strictly: a wrong value is an error and not replaced by a default,
/// and names that nothing reads are reported.
///
///     number_variable("TESSERA_TIME_LIMIT", 600.0)
///
/// Laws: a variable that is read is in known_variables; else it does not compile.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/error.hpp>

namespace tessera::detail {

/// All variables that are read; docs/settings.md says what each means.
inline constexpr std::string_view known_variables[] = {"TESSERA_ARENA_BYTES",
                                                       "TESSERA_CACHE_DIR",
                                                       "TESSERA_CHECK",
                                                       "TESSERA_DEVICE_MEMORY",
                                                       "TESSERA_LARGE_CALLS",
                                                       "TESSERA_LARGE_COUNT",
                                                       "TESSERA_PLAN_CACHE_BYTES",
                                                       "TESSERA_PROCESSES_PER_NODE",
                                                       "TESSERA_PRODUCTS",
                                                       "TESSERA_TIME_LIMIT",
                                                       "TESSERA_WAIT",
                                                       "TESSERA_SHARED"};

/// The name of one of them.
struct Variable {
  const char* name;
  consteval Variable(const char* text) : name(text) {  // NOLINT: a literal is meant to convert
    bool known = false;
    for (const std::string_view other : known_variables) known = known || other == text;
    if (!known) throw "add the variable to known_variables";
  }
};

/// Returns the number of characters to change, insert or remove to turn `a` into `b`.
inline int edits_between(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Returns a sentence for each variable TESSERA_… in `environment` ("NAME=value", ended by a null
/// pointer) that nothing reads. TESSERA_ROOT and TESSERA_DIR belong to CMake, TESSERA_TEST_… and
/// TESSERA_BENCH_… to Tessera's tests and benchmarks.
inline std::vector<std::string> unknown_variables(const char* const* environment) {
  std::vector<std::string> sentences;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with("TESSERA_") || name.starts_with("TESSERA_TEST_") ||
        name.starts_with("TESSERA_BENCH_") || name == "TESSERA_ROOT" || name == "TESSERA_DIR" ||
        std::find(std::begin(known_variables), std::end(known_variables), name) !=
            std::end(known_variables))
      continue;
    const std::string_view nearest =
        *std::min_element(std::begin(known_variables), std::end(known_variables),
                          [&](std::string_view a, std::string_view b) {
                            return edits_between(name, a) < edits_between(name, b);
                          });
    std::string text = "the environment sets ";
    text += name;
    text += ", which nothing reads; the nearest that is read is ";
    text += nearest;
    text += ": set that, or unset ";
    text += name;
    sentences.push_back(text);
  }
  return sentences;
}

/// Reports them, once in a program, on one process of a job.
inline void warn_of_unknown_variables() {
  static const bool told = [] {
    for (const std::string& sentence : unknown_variables(environ))
      std::fprintf(stderr, "[tessera] warning: %s\n", sentence.c_str());
    return true;
  }();
  static_cast<void>(told);
}

/// Returns the text of a variable; empty when it is unset.
inline std::string text_variable(Variable variable) {
  const char* const text = std::getenv(variable.name);
  return text == nullptr ? "" : text;
}

/// Returns the number in variable `name`, or `otherwise` when it is unset or empty; throws
/// UsageError when it is not a number >= 0.
inline double number_variable(Variable variable, double otherwise) {
  const char* const name = variable.name;
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0))
    throw UsageError(std::string(name) + " is \"" + text +
                     "\"; it is a number, zero or more: set it so, or unset it");
  return value;
}

/// Returns the index of `text`, from variable `name`, in `words`; throws UsageError when it is
/// none.
inline int choice_of(std::string_view text, const char* name,
                     std::initializer_list<std::string_view> words) {
  int index = 0;
  std::string list;
  for (const std::string_view word : words) {
    if (word == text) return index;
    if (index++ > 0) list += ", ";
    list += word;
  }
  throw UsageError(std::string(name) + " is \"" + std::string(text) + "\"; it is one of " + list +
                   ": set it so, or unset it");
}

/// Returns the index in `words` of the text in variable `name`, or -1 when it is unset or empty;
/// throws UsageError otherwise.
inline int choice_variable(Variable variable, std::initializer_list<std::string_view> words) {
  const char* text = std::getenv(variable.name);
  return text == nullptr || *text == '\0' ? -1 : choice_of(text, variable.name, words);
}

}  // namespace tessera::detail
