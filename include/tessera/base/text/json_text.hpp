// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A text as JSON writes it (RFC 8259), for traces and the headers of files.
///
///     detail::json_text("say \"a\"") == "\"say \\\"a\\\"\""
#include <cstdio>
#include <string>
#include <string_view>

namespace tessera::detail {

/// Returns a text in quotes, with what JSON does not allow there escaped.
inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace tessera::detail
