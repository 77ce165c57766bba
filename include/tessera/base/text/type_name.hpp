// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The short name of a type as text, known at compile time.
///
///     namespace grid { struct data {}; }
///     detail::type_name<grid::data>() == "data"       // namespaces and template arguments are stripped
#include <string_view>

namespace tessera::detail {
template <class T> constexpr std::string_view full_type_name() {
#if defined(__clang__) || defined(__GNUC__) || defined(__CUDACC__)
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr auto at = text.find("T = ");
  static_assert(at != std::string_view::npos,
                "[tessera] this compiler spells __PRETTY_FUNCTION__ in an unknown way");
  constexpr auto begin = at + 4;
  constexpr auto end = text.find_first_of(";]", begin);
  return text.substr(begin, end - begin);
#else
#error "[tessera] needs a compiler with __PRETTY_FUNCTION__ (g++, clang++ or nvcc)"
#endif
}

constexpr std::string_view short_name(std::string_view name) {
  name = name.substr(0, name.find('<'));
  const auto colons = name.rfind("::");
  if (colons != std::string_view::npos) name = name.substr(colons + 2);
  return name.empty() || name.front() == '('
             ? "lambda"
             : name;  // g++: f()::<lambda(int)>, clang: (lambda at f.cpp:3:9)
}

/// Returns T's own name without namespaces and without template arguments.
template <class T> constexpr std::string_view type_name() {
  return detail::short_name(detail::full_type_name<T>());
}
}  // namespace tessera::detail
