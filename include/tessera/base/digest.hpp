// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A 64-bit digest of a value, made from its members: caches look plans up by it, and processes
/// compare it; and a 128-bit fingerprint that stands for a list.
///
///     detail::Digest digest;
///     detail::add_to(digest, extents);
///     digest.value();
///
/// Laws: equal values have equal digests, on every process and in every build of one version.
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <tessera/base/fixed_vector.hpp>

namespace tessera::detail {

constexpr std::uint64_t stirred(std::uint64_t value, std::uint64_t word) {
  value = (value ^ word) * 0x9E37'79B9'7F4A'7C15u;
  return value ^ value >> 29;
}

constexpr std::uint64_t stirred(std::string_view text) {
  std::uint64_t value = 0;
  for (const char letter : text) value = stirred(value, static_cast<unsigned char>(letter));
  return value;
}

/// A sum over the words, each of them mixed with a key of its place: no word waits for the product
/// of the one before it. Two products, as in splitmix64, let the high bits of a word change all
/// bits of what is added: else two words that exchange such bits would add the same.
class Digest {
 public:
  constexpr void add(std::uint64_t word) {
    key_ += 0x9E37'79B9'7F4A'7C15u;
    std::uint64_t mixed = word ^ key_;
    mixed = (mixed ^ mixed >> 30) * 0xBF58'476D'1CE4'E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D0'49BB'1331'11EBu;
    value_ += mixed ^ mixed >> 31;
  }
  constexpr std::uint64_t value() const { return detail::stirred(value_, key_); }

 private:
  std::uint64_t key_ = 0x1234'5678'9ABC'DEF1u;
  std::uint64_t value_ = 0;
};

/// Returns whether two pointers, each null or to a variable with that number, are the same. Where a
/// null pointer may be read, as g++ assumes under -fsanitize=undefined, addresses of inline
/// variables are not compared in constants; there the numbers stand for them.
constexpr bool same_object(const void* a, std::uint64_t a_number, const void* b,
                           std::uint64_t b_number) {
  return a_number == b_number && (std::is_constant_evaluated() || a == b);
}

/// Stands for a list of numbers that is too long to be kept and compared.
struct Fingerprint {
  std::uint64_t first = 0x1234'5678'9ABC'DEF1u;
  std::uint64_t second = 0x51ED'270B'9C3F'A8E5u;
  constexpr void add(std::uint64_t word) {
    first = detail::stirred(first, word);
    second = detail::stirred(second ^ first, ~word);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("first", first);
    visit("second", second);
  }
  constexpr bool operator==(const Fingerprint&) const = default;
};

/// Add a number, an enumerator, a bool; a text; a list; letters, eight to a word.
template <class T>
  requires(std::is_integral_v<T> || std::is_enum_v<T>)
constexpr void add_to(Digest& digest, T value) { digest.add(static_cast<std::uint64_t>(value)); }
constexpr void add_to(Digest& digest, double value) {
  digest.add(value == 0 ? 0 : std::bit_cast<std::uint64_t>(value));  // equal zeros
}
constexpr void add_to(Digest& digest, std::string_view text) {
  for (const char letter : text) digest.add(static_cast<unsigned char>(letter));
}
template <int N> constexpr void add_to(Digest& digest, const FixedVector<char, N>& letters) {
  std::uint64_t word = static_cast<std::uint64_t>(letters.size());
  for (int i = 0; i < letters.size(); ++i) {
    if (i % 7 == 0 && i > 0) digest.add(word);
    word = word << 8 | static_cast<unsigned char>(letters[i]);
  }
  digest.add(word);
}
template <class T, int N> constexpr void add_to(Digest& digest, const FixedVector<T, N>& list) {
  add_to(digest, list.size());
  for (const T& value : list) add_to(digest, value);
}

/// Visits each member of a value that lists its members: x.members(visit) calls visit(name,
/// member).
struct AddMember {
  Digest& digest;
  template <class T> constexpr void operator()(std::string_view, const T& member) const {
    add_to(digest, member);
  }
};

/// Adds all members of a value that lists its members.
template <class T>
  requires requires(const T& value, const detail::AddMember& visit) { value.members(visit); }
constexpr void add_to(Digest& digest, const T& value) { value.members(detail::AddMember{digest}); }
}  // namespace tessera::detail
