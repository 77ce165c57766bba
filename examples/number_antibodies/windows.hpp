// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Windows of a sequence that is too long to be numbered whole. The model chooses one of them, as
/// in anarcii 2.0.8.
///
///     for (const Window& one : pattern_windows(text)) use(one.scored);      // C.{5,25}W.{50,80}C
///     if (const long chosen = first_above(scores); chosen >= 0) ...
///
/// Laws: a window has at most 200 letters.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace number_antibodies {

inline constexpr std::size_t longest_text = 200;

/// A part of a text: the letters that are numbered, from `begin` on, and those that are scored.
struct Window {
  long begin = 0;
  std::string letters, scored;
};

namespace detail {
/// Returns the length, without its last C, of the pattern that begins at `at`: the longest first
/// part, and then the longest second one. 0: no pattern begins there.
inline std::size_t pattern_length(std::string_view text, std::size_t at) {
  const auto is = [&](std::size_t i, char c) { return i < text.size() && text[i] == c; };
  if (!is(at, 'C')) return 0;
  for (std::size_t k = 25; k >= 5; --k)
    for (std::size_t m = is(at + k + 1, 'W') ? 80 : 0; m >= 50; --m)
      if (is(at + k + m + 2, 'C')) return k + m + 2;
  return 0;
}
}  // namespace detail

/// Returns windows with the pattern of a domain, two C around a W. A window begins up to 40 letters
/// before its pattern.
inline std::vector<Window> pattern_windows(const std::string& text) {
  std::vector<Window> found;
  for (std::size_t p = 0; p < text.size();) {
    std::size_t next = p + 1;
    for (std::size_t q = std::min(p + 40, text.size()) + 1; q-- > p;)
      if (const std::size_t length = detail::pattern_length(text, q); length > 0) {
        found.push_back(
            {static_cast<long>(p), text.substr(p, q - p + 160), text.substr(q, length + 1)});
        next = q + length;
        break;
      }
    p = next;
  }
  return found;
}
/// Returns windows at each third letter.
inline std::vector<Window> all_windows(const std::string& text) {
  std::vector<Window> made;
  const long count = (static_cast<long>(text.size()) - 90) / 3;
  for (long b = 0; b < count; ++b) {
    const long begin = std::max(3 * b - 40, 0L), end = 3 * b + 160;
    made.push_back(
        {begin, text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
         text.substr(static_cast<std::size_t>(3 * b), 90)});
  }
  return made;
}
/// Returns the first window whose score is that of a domain, else the first that may be one, else
/// -1.
inline long first_above(const std::vector<float>& scores) {
  for (const float least : {25.0f, 15.0f})
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (scores[i] > least) return static_cast<long>(i);
  return -1;
}
inline long first_or_best(const std::vector<float>& scores) {
  const long chosen = first_above(scores);
  return chosen >= 0 ? chosen : std::max_element(scores.begin(), scores.end()) - scores.begin();
}

}  // namespace number_antibodies
