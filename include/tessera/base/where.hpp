// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The place of a call in the user's source, taken as a defaulted last argument.
///
///     void reshard_something(Where where = Where::here());
///
/// clang 14 lacks std::source_location, hence the builtins.
#include <concepts>
#include <string>
#include <string_view>

namespace tessera {

struct Where {
  const char* file = "";
  int line = 0;
  static constexpr Where here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  bool known() const { return line > 0; }
};

/// The place of a call, passed first where an argument after a pack has no default: map(at(), f, a,
/// b, c, d).
struct At {
  Where where;
};
constexpr At at(Where where = Where::here()) { return {where}; }

namespace detail {
/// A text that knows where it was written: it gives the place of the call to functions that end in
/// a pack, after which no argument can have a default.
struct PlacedText {
  std::string_view text;
  Where where;
  template <std::convertible_to<std::string_view> T>
  PlacedText(const T& from, Where at = Where::here())  // NOLINT: stands for a text
      : text(from), where(at) {}
};
}  // namespace detail

/// Returns "file.cpp:12" with the folders stripped, or "an unknown place".
inline std::string to_string(Where where) {
  if (!where.known()) return "an unknown place";
  std::string_view file = where.file;
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos)
    file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::to_string(where.line);
}
}  // namespace tessera
