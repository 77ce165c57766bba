// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How much a mesh checks while it runs.
///
///     MeshOptions options{.check = Check::communicating, .find = Find::nan_and_infinity};
///
/// Laws: a correct program computes the same at every level.
#include <cstdint>
#include <string_view>

#include <tessera/comm/detail/variables.hpp>

namespace tessera {

/// none: nothing. light: checks that cost nothing. normal: the operands of each operator, and on a
/// node whether all processes call the same operators (MeshCore::begin_operator; between nodes at
/// every 64th operator). communicating: the same at each operator, by asking all processes. heavy:
/// also each collective, within its group, and all slow checks.
enum class Check : std::uint8_t { none, light, normal, communicating, heavy };

/// Returns the name that TESSERA_CHECK accepts.
constexpr std::string_view name_of(Check check) {
  constexpr std::string_view names[] = {"none", "light", "normal", "communicating", "heavy"};
  return names[static_cast<int>(check)];
}

/// What a mesh looks for in the results of its operators: the first operator that makes a NaN (of
/// operands without one), or also an infinity (of finite operands), is a ValueError on all
/// processes that names operator, element and process, in compiled functions and gradients too.
/// Price: each operator's operands and results are read once more, and each operator is an
/// all-gather of five integers from each process, in no ledger. Numbers that the caller gives may
/// be infinite, as in where(mask, x, -infinity).
enum class Find : std::uint8_t { nothing, nan, nan_and_infinity };

namespace detail {
/// What the environment variable TESSERA_CHECK says.
struct CheckWords {
  int level = -1;  ///< -1: none
  Find find = Find::nothing;
};
/// Reads a level, "nan" (or "nan_alone", which lets infinities be), or both with a comma between
/// them. Throws UsageError for any other text.
inline CheckWords check_words() {
  CheckWords said;
  constexpr Variable variable = "TESSERA_CHECK";
  const char* const text = std::getenv(variable.name);
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const int word =
        choice_of(rest.substr(0, comma), variable.name,
                  {"none", "light", "normal", "communicating", "heavy", "nan", "nan_alone"});
    if (word == 5) said.find = Find::nan_and_infinity;
    if (word == 6) said.find = Find::nan;
    if (word < 5) said.level = word;
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
  }
  return said;
}
/// Returns the level named by the environment variable TESSERA_CHECK, else `otherwise`.
inline Check check_from_environment(Check otherwise = Check::normal) {
  const int level = check_words().level;
  return level < 0 ? otherwise : static_cast<Check>(level);
}
inline Find find_from_environment() { return check_words().find; }
}  // namespace detail
}  // namespace tessera
