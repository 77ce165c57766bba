// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The maximum or minimum of 256 floats that follow each other and have no NaN, by plain
/// comparisons. These lose only the signs of zeros, which are looked for where the result is one.
///
///     extreme_block(p, false, found)      // false: a NaN is among them
///
/// Laws: the bits are those of Fold's joins.
#include <tessera/base/math.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

inline constexpr Index extreme_count = 256;

/// Writes the maximum, or the `least` element, to `found`, unless there is a NaN.
template <class C> TESSERA_INLINE inline bool extreme_block(const C* p, bool least, C& found) {
  BitsOf<C> nans = 0, wins = 0;
  TESSERA_SIMD_OR(nans)
  for (Index j = 0; j < extreme_count; ++j) nans |= BitsOf<C>{p[j] != p[j]};
  if (nans != 0) return false;
  const C sign = least ? C(-1) : C(1);
  C greatest[64];
  for (Index group = 0; group < 4; ++group) {  // quarters of 64 elements, in the order of memory
    const C* const x = p + 64 * group;
    TESSERA_SIMD
    for (Index j = 0; j < 16; ++j) {
      const C a = sign * x[j], b = sign * x[16 + j], c = sign * x[32 + j], d = sign * x[48 + j];
      const C ab = a > b ? a : b, cd = c > d ? c : d;
      greatest[16 * group + j] = ab > cd ? ab : cd;
    }
  }
  for (Index half = 32; half > 0; half /= 2) {
    TESSERA_SIMD
    for (Index j = 0; j < half; ++j)
      greatest[j] = greatest[j] > greatest[half + j] ? greatest[j] : greatest[half + j];
  }
  found = sign * greatest[0];
  if (found != 0) return true;
  const C zero = sign * C(0);  // which wins over the other one
  TESSERA_SIMD_OR(wins)
  for (Index j = 0; j < extreme_count; ++j)
    wins |= BitsOf<C>{Kokkos::bit_cast<BitsOf<C>>(p[j]) == Kokkos::bit_cast<BitsOf<C>>(zero)};
  found = wins != 0 ? zero : -zero;
  return true;
}

}  // namespace tessera::detail
