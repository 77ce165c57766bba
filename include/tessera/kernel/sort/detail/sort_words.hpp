// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts keys with their places on the host: long lines digit by digit, least digit first; short
/// lines, and the first few elements of long ones, by comparisons. (Knuth, The Art of Computer
/// Programming 3, 5.2.5, algorithm R.)
///
///     const KeyWord* sorted = sort_words(words, spare, n, kept, 32);
///
/// Laws: equal keys keep their order; nothing is allocated.
#include <algorithm>
#include <cstdint>

#include <tessera/base/local_work.hpp>

namespace tessera::detail {

/// A key of up to 32 bits above its place of up to 32 bits.
struct KeyWord {
  std::uint64_t bits;
  static KeyWord make(std::uint64_t key, Index place) {
    return {key << 32 | static_cast<std::uint64_t>(place)};
  }
  std::uint64_t key_bits() const { return bits >> 32; }
  Index place() const { return static_cast<Index>(bits & 0xffff'ffffu); }
  unsigned digit(int pass) const { return static_cast<unsigned>(bits >> (32 + 8 * pass)) & 255u; }
  bool operator<(const KeyWord& other) const { return bits < other.bits; }
};

/// Any key and any place.
struct KeyPair {
  std::uint64_t key;
  std::uint64_t index;
  static KeyPair make(std::uint64_t key, Index place) {
    return {key, static_cast<std::uint64_t>(place)};
  }
  std::uint64_t key_bits() const { return key; }
  Index place() const { return static_cast<Index>(index); }
  unsigned digit(int pass) const { return static_cast<unsigned>(key >> (8 * pass)) & 255u; }
  bool operator<(const KeyPair& other) const {
    return key < other.key || (key == other.key && index < other.index);
  }
};

/// Sorts by `digits` digits of 8 bits; returns `words` or `spare`, whichever holds the sorted
/// words.
template <class Word> Word* sort_digits(Word* words, Word* spare, Index n, int digits) {
  Index count[8][256] = {};
  for (Index i = 0; i < n; ++i)
    for (int pass = 0; pass < digits; ++pass) ++count[pass][words[i].digit(pass)];
  for (int pass = 0; pass < digits; ++pass) {
    Index* next = count[pass];
    if (next[words[0].digit(pass)] == n) continue;  // all have this digit
    Index sum = 0;
    for (int d = 0; d < 256; ++d) {
      const Index c = next[d];
      next[d] = sum;
      sum += c;
    }
    for (Index i = 0; i < n; ++i) spare[next[words[i].digit(pass)]++] = words[i];
    std::swap(words, spare);
  }
  return words;
}

/// Sorts n words that are in the order of their places, so that the first `kept` are right; returns
/// `words` or `spare`, whichever holds them.
template <class Word>
Word* sort_words(Word* words, Word* spare, Index n, Index kept, int key_bits) {
  if (kept < n && kept <= few_words) {
    std::partial_sort(words, words + kept, words + n);
    return words;
  }
  if (2 * kept < n) {
    std::nth_element(words, words + kept, words + n);
    n = kept;  // no longer in the order of their places
    std::sort(words, words + n);
    return words;
  }
  if (n > few_words) return sort_digits(words, spare, n, key_bits / 8);
  std::sort(words, words + n);
  return words;
}

}  // namespace tessera::detail
