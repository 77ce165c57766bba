// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A 64-bit digest, one number or text at a time.
///
///     mix(mix(start, 3), "einsum")
///
/// Laws: the same on every process and in every build.
#include <cstdint>
#include <string_view>

namespace tessera::detail {

/// splitmix64's finalizer over the sum of the old digest and the new value.
constexpr std::uint64_t mix(std::uint64_t digest, std::uint64_t value) {
  std::uint64_t z = digest * 0x9e3779b97f4a7c15u + value + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr std::uint64_t mix(std::uint64_t digest, std::string_view text) {
  for (const char c : text)
    digest = mix(digest, static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  return mix(digest, text.size());
}

}  // namespace tessera::detail
