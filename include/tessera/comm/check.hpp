// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How much a mesh checks while it runs.
///
///     MeshOptions options{.check = Check::communicating};
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

namespace detail {
/// Returns the level named by the environment variable TESSERA_CHECK, else `otherwise`. Throws
/// UsageError for any other text.
inline Check check_from_environment(Check otherwise = Check::normal) {
  const int chosen = detail::choice_variable("TESSERA_CHECK",
                                             {"none", "light", "normal", "communicating", "heavy"});
  return chosen < 0 ? otherwise : static_cast<Check>(chosen);
}
}  // namespace detail
}  // namespace tessera
