// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reads a text of JSON (RFC 8259) of which it is known what should come next: objects, texts and
/// lists of sizes.
///
///     JsonReader json(text);
///     std::string fault = json.object([&](const std::string& key) { return json.quoted(value[key]) ? "" : "no text"; });
///
/// Laws: any bytes give values or a fault, nothing else.
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/base/text/utf8.hpp>

namespace tessera::detail {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  /// Reads an object; member(key) reads a value and returns the fault.
  template <class Member> std::string object(const Member& member) {
    const std::string broken = "its header is broken at byte ";
    if (!take('{')) return broken + std::to_string(next_) + ", where an object should begin";
    if (take('}')) return "";
    for (;;) {
      std::string key;
      if (!quoted(key) || !take(':'))
        return broken + std::to_string(next_) + ", where a name should stand";
      if (std::string fault = member(key); !fault.empty()) return fault;
      if (take('}')) return "";
      if (!take(',')) return broken + std::to_string(next_) + ", where a comma should stand";
    }
  }
  /// Reads a list of whole numbers.
  bool numbers(std::vector<Index>& values) {
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      skip();
      const std::size_t first = next_;
      Index value = 0;
      for (; next_ < text_.size() && text_[next_] >= '0' && text_[next_] <= '9'; ++next_)
        value = saturating_add(saturating_mul(value, 10), text_[next_] - '0');
      if (next_ == first || value == max_int64) return false;
      values.push_back(value);
    } while (take(','));
    return take(']');
  }
  /// Reads a text, into UTF-8.
  bool quoted(std::string& value) {
    if (!take('"')) return false;
    while (next_ < text_.size()) {
      const char c = text_[next_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < ' ') return false;
      if (c != '\\') {
        value += c;
      } else if (!escaped(value)) {
        return false;
      }
    }
    return false;
  }
  /// Reads a value that is not looked at.
  bool skip_value(int depth = 0) {
    constexpr int deepest = 64;  // the stack of a reader is not the writer's to exhaust
    if (depth > deepest) return false;
    if (take('{') || take('[')) return skip_members(text_[next_ - 1] == '{', depth);
    std::string text;
    skip();
    if (next_ < text_.size() && text_[next_] == '"') return quoted(text);
    for (const std::string_view word : {"null", "true", "false"})
      if (take_word(word)) return true;
    return skip_number();
  }
  /// Returns whether a value begins so: '{' or '"'.
  bool begins(char c) {
    skip();
    return next_ < text_.size() && text_[next_] == c;
  }
  /// Returns whether nothing but space is left.
  bool ended() {
    skip();
    return next_ == text_.size();
  }

 private:
  void skip() {
    while (next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '\n' ||
                                    text_[next_] == '\t' || text_[next_] == '\r'))
      ++next_;
  }
  bool take(char c) {
    skip();
    if (next_ >= text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(next_, word.size()) != word) return false;
    next_ += word.size();
    return true;
  }
  bool skip_members(bool named, int depth) {
    const char end = named ? '}' : ']';
    if (take(end)) return true;
    do {
      std::string name;
      if (named && (!quoted(name) || !take(':'))) return false;
      if (!skip_value(depth + 1)) return false;
    } while (take(','));
    return take(end);
  }
  bool skip_digits() {
    const std::size_t first = next_;
    while (next_ < text_.size() && text_[next_] >= '0' && text_[next_] <= '9') ++next_;
    return next_ > first;
  }
  bool skip_number() {
    take_word("-");
    if (!take_word("0") && !skip_digits()) return false;
    if (take_word(".") && !skip_digits()) return false;
    if (!take_word("e") && !take_word("E")) return true;
    if (!take_word("+")) take_word("-");
    return skip_digits();
  }
  bool escaped(std::string& value) {
    constexpr std::string_view names = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const char c = next_ < text_.size() ? text_[next_++] : '\0';
    if (const auto at = names.find(c); c != '\0' && at != names.npos) {
      value += meant[at];
      return true;
    }
    unsigned point = 0;
    if (c != 'u' || !hexadecimal(point)) return false;
    if (point >= 0xD800 && point < 0xDC00) {  // the first half of a pair
      unsigned low = 0;
      if (text_.substr(next_, 2) != "\\u") return false;
      next_ += 2;
      if (!hexadecimal(low) || low < 0xDC00 || low >= 0xE000) return false;
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    } else if (point >= 0xDC00 && point < 0xE000) {
      return false;
    }
    append_utf8(value, point);
    return true;
  }
  bool hexadecimal(unsigned& value) {
    if (text_.size() - next_ < 4) return false;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[next_++];
      const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a') + 10
                             : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A') + 10
                                                    : 16;
      if (digit == 16) return false;
      value = value << 4 | digit;
    }
    return true;
  }
  static void append_utf8(std::string& text, unsigned point) {
    if (point < 0x80) {
      text += static_cast<char>(point);
      return;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    text += static_cast<char>((0xFF00u >> (more + 1) & 0xFFu) | point >> (6 * more));
    for (int i = more - 1; i >= 0; --i)
      text += static_cast<char>(0x80u | (point >> (6 * i) & 0x3Fu));
  }

  std::string_view text_;
  std::size_t next_ = 0;
};

}  // namespace tessera::detail
