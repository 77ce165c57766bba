// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a text is JSON (RFC 8259).
///
///     support::is_json("{\"a\":[1,2.5e3,null]}")
#include <cctype>
#include <cstddef>
#include <string_view>

namespace support {

class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}
  bool whole() {
    const bool good = value();
    space();
    return good && at_ == text_.size();
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (next() == ' ' || next() == '\n' || next() == '\t' || next() == '\r') ++at_;
  }
  bool take(char c) {
    space();
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }
  bool digits() {
    const std::size_t first = at_;
    while (std::isdigit(static_cast<unsigned char>(next())) != 0) ++at_;
    return at_ > first;
  }
  bool number() {
    if (next() == '-') ++at_;
    if (next() == '0' ? (++at_, false) : !digits()) return false;
    if (next() == '.' && (++at_, !digits())) return false;
    if (next() != 'e' && next() != 'E') return true;
    ++at_;
    if (next() == '+' || next() == '-') ++at_;
    return digits();
  }
  bool string() {
    if (!take('"')) return false;
    while (next() != '"') {
      if (static_cast<unsigned char>(next()) < 0x20) return false;
      if (next() != '\\') {
        ++at_;
        continue;
      }
      ++at_;
      const char c = next();
      ++at_;
      if (c == 'u')
        for (int i = 0; i < 4; ++i, ++at_)
          if (std::isxdigit(static_cast<unsigned char>(next())) == 0) return false;
      if (std::string_view("\"\\/bfnrtu").find(c) == std::string_view::npos) return false;
    }
    ++at_;
    return true;
  }
  template <class Item> bool list(char end, const Item& item) {
    ++at_;
    if (take(end)) return true;
    do {
      if (!item()) return false;
    } while (take(','));
    return take(end);
  }
  bool value() {
    space();
    switch (next()) {
      case '{':
        return list('}', [&] { return string() && take(':') && value(); });
      case '[':
        return list(']', [&] { return value(); });
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};
inline bool is_json(std::string_view text) { return Json(text).whole(); }
inline int count_of(std::string_view text, std::string_view part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++n;
  return n;
}

}  // namespace support
