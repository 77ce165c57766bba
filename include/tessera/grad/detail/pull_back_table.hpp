// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The table in which derivatives are found by a function's identity; known_functions.hpp fills it.
///
///     detail::known_pull_backs().find(kernel.identity)
#include <unordered_map>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/run/pull_back.hpp>

namespace tessera::detail {

using PullBackOf = PullBack (*)(const void* function, int operand);
using PullBackTable = std::unordered_map<const void*, PullBackOf>;

#if defined(TESSERA_KERNEL_PARTS)
/// Adds the functions of a part of the element types (base/compiled.hpp).
template <int Part> void add_known_functions_of_part(PullBackTable& table);
#else
void add_all_known_functions(PullBackTable& table);  ///< known_functions.hpp
#endif

#if TESSERA_BODIES
#if defined(TESSERA_KERNEL_PARTS)
template <int... Part>
void add_known_functions_of_parts(PullBackTable& table, std::integer_sequence<int, Part...>) {
  (add_known_functions_of_part<Part>(table), ...);
}
inline void add_all_known_functions(PullBackTable& table) {
  // Parts beyond the six element types that have derivatives would be empty.
  constexpr int parts = TESSERA_KERNEL_PARTS < 6 ? TESSERA_KERNEL_PARTS : 6;
  add_known_functions_of_parts(table, std::make_integer_sequence<int, parts>());
}
#endif

inline const PullBackTable& known_pull_backs() {
  static const PullBackTable known = [] {
    PullBackTable all;
    add_all_known_functions(all);
    return all;
  }();
  return known;
}

TESSERA_FUNCTION PullBack pull_back(const MapKernel& kernel, int asked) {
  if (kernel.pull != nullptr) return kernel.pull(kernel.context, asked);
  const auto found = known_pull_backs().find(kernel.identity);
  if (found == known_pull_backs().end()) return {};
  return found->second(kernel.context, asked);
}
#endif

}  // namespace tessera::detail
