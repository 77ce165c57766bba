// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Floats and doubles as their bits, and back.
///
///     bits_of(1.0f) == 0x3f800000u
#include <cstdint>

#include <Kokkos_Core.hpp>

namespace tessera::detail {

KOKKOS_FORCEINLINE_FUNCTION std::uint32_t bits_of(float x) {
  return Kokkos::bit_cast<std::uint32_t>(x);
}
KOKKOS_FORCEINLINE_FUNCTION float float_of(std::uint32_t bits) {
  return Kokkos::bit_cast<float>(bits);
}
KOKKOS_FORCEINLINE_FUNCTION std::uint64_t bits_of(double x) {
  return Kokkos::bit_cast<std::uint64_t>(x);
}
KOKKOS_FORCEINLINE_FUNCTION double double_of(std::uint64_t bits) {
  return Kokkos::bit_cast<double>(bits);
}

}  // namespace tessera::detail
