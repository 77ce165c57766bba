// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Philox4x32-10, a random function of a counter and a key: Salmon, Moraes, Dror, Shaw, "Parallel
/// random numbers: as easy as 1, 2, 3" (SC 2011).
///
///     philox({0, 0, 0, 0}, 0, 0).word[0] == 0x6627e8d5
///
/// Laws: the known answers of the paper's library, Random123 (tested).
#include <cstdint>

#include <Kokkos_Core.hpp>

namespace tessera::detail {

struct PhiloxWords {
  std::uint32_t word[4];
};

KOKKOS_INLINE_FUNCTION constexpr PhiloxWords philox(PhiloxWords c, std::uint32_t key0,
                                                    std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53u} * c.word[0];
    const std::uint64_t q = std::uint64_t{0xCD9E8D57u} * c.word[2];
    c = {{static_cast<std::uint32_t>(q >> 32) ^ c.word[1] ^ key0, static_cast<std::uint32_t>(q),
          static_cast<std::uint32_t>(p >> 32) ^ c.word[3] ^ key1, static_cast<std::uint32_t>(p)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/// Returns the upper half of the 128-bit product.
KOKKOS_INLINE_FUNCTION constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a1 = a >> 32, a0 = a & 0xffffffffu, b1 = b >> 32, b0 = b & 0xffffffffu;
  const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
  const std::uint64_t other = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/// Returns a number in [0, 1) from 64 random bits, a multiple of 2^-53.
KOKKOS_INLINE_FUNCTION constexpr double unit_interval(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace tessera::detail
