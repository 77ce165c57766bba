// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Joins 256 elements that follow each other, in a fixed tree: of each 64 in a row quarters are
/// joined element by element; then the quarters of these, until one is left.
///
///     full_block<Reduction::max, float>(p)
///
/// Laws: the bits are those of Fold's join in that tree. Maxima and minima of floats that have no
/// NaN are found by plain comparisons, which only lose the signs of zeros; those are looked for
/// where the result is one.
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

inline constexpr Index reduce_block = 256;

template <class C, class T, class Join>
TESSERA_INLINE inline C joined_block(const T* p, const Join& join) {
  C part[64], sum[16];
  for (Index group = 0; group < 4; ++group) {
    const T* const first = p + 64 * group;
    C* const to = part + 16 * group;
    TESSERA_SIMD
    for (Index j = 0; j < 16; ++j)
      to[j] = join(join(static_cast<C>(first[j]), static_cast<C>(first[16 + j])),
                   join(static_cast<C>(first[32 + j]), static_cast<C>(first[48 + j])));
  }
  TESSERA_SIMD
  for (Index j = 0; j < 16; ++j)
    sum[j] = join(join(part[j], part[16 + j]), join(part[32 + j], part[48 + j]));
  TESSERA_SIMD
  for (Index j = 0; j < 4; ++j)
    sum[j] = join(join(sum[j], sum[4 + j]), join(sum[8 + j], sum[12 + j]));
  return join(join(sum[0], sum[1]), join(sum[2], sum[3]));
}

template <class C> TESSERA_INLINE inline bool has_nan(const C* p) {
  BitsOf<C> found = 0;
  TESSERA_SIMD_OR(found)
  for (Index j = 0; j < reduce_block; ++j) found |= BitsOf<C>{p[j] != p[j]};
  return found != 0;
}
template <class C> TESSERA_INLINE inline bool has_bits(const C* p, BitsOf<C> wanted) {
  BitsOf<C> found = 0;
  TESSERA_SIMD_OR(found)
  for (Index j = 0; j < reduce_block; ++j)
    found |= BitsOf<C>{Kokkos::bit_cast<BitsOf<C>>(p[j]) == wanted};
  return found != 0;
}

/// Returns the join of the 256 elements at p.
template <Reduction R, class C, class T> TESSERA_INLINE inline C full_block(const T* p) {
  constexpr bool extreme = R == Reduction::max || R == Reduction::min;
  if constexpr (extreme && std::is_floating_point_v<C> && std::is_same_v<T, C>) {
    const auto plain = [](C a, C b)
                           TESSERA_INLINE { return (R == Reduction::max ? a > b : a < b) ? a : b; };
    if (!has_nan(p)) {
      const C found = joined_block<C>(p, plain);
      if (found != 0) return found;
      const C wins = R == Reduction::max ? C(0) : -C(0);
      return has_bits(p, Kokkos::bit_cast<BitsOf<C>>(wins)) ? wins : -wins;
    }
  }
  return joined_block<C>(p, [](C a, C b) TESSERA_INLINE { return Fold<R, C>::join(a, b); });
}

}  // namespace tessera::detail
