// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a text is UTF-8, and how it is printed where it may not be. Source: RFC 3629, section 4.
///
///     detail::is_utf8("K\xc3\xa9kul\xc3\xa9") == true
///     detail::printable("a\x01\xff") == "a??"
#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Returns the bytes of the character that a text begins with, or 0 where that is not UTF-8.
constexpr std::size_t utf8_character(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (text.empty() || (first >= 0x80 && first < 0xC2) || first > 0xF4) return 0;
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0u) != 0x80) return 0;
  const unsigned second = byte(1);
  // Longer than it need be, a half of a UTF-16 pair, or beyond the last character.
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90))
    return 0;
  return size;
}

constexpr bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_character(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

/// Returns the start of a text, about 60 bytes of it, as it can be printed: a question mark stands
/// for each byte that is a control character or no UTF-8.
inline std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty() && result.size() < 60) {
    const std::size_t size = utf8_character(text);
    const bool plain = size > 1 || (size == 1 && text[0] >= ' ' && text[0] != '\x7f');
    result += plain ? text.substr(0, size) : std::string_view("?");
    text.remove_prefix(plain ? size : 1);
  }
  return result + (text.empty() ? "" : "...");
}

}  // namespace tessera::detail
