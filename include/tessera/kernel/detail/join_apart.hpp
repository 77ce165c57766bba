// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Joins of a fixed number of elements in pairs, which become vector instructions: of elements that
/// lie apart, of half types by AVX-512, and of complex numbers as vectors of their parts.
///
///     join_apart<Fold<Reduction::sum, float>, float, 4>(p, 8)   // (p[0] + p[8]) + (p[16] + p[24])
///
/// Laws: the order depends only on the number of elements.
#include <cstring>

#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

/// Joins `count` elements, `apart` from each other, in pairs. (Few templates, since all programs
/// that reduce instantiate them.)
template <class F, class C, Index count, class T>
TESSERA_INLINE inline C join_apart(const T* p, Index apart) {
  const auto at = [&](Index i) TESSERA_INLINE { return static_cast<C>(p[i * apart]); };
  if constexpr (count == 1)
    return at(0);
  else if constexpr (count == 2)
    return F::join(at(0), at(1));
  else if constexpr (count == 4)
    return F::join(F::join(at(0), at(1)), F::join(at(2), at(3)));
  else
    return F::join(join_apart<F, C, count / 2>(p, apart),
                   join_apart<F, C, count / 2>(p + count / 2 * apart, apart));
}

/// Returns the sum of `count` complex numbers, a power of two from 32 on, as vectors of their
/// parts.
template <Index count, class C> TESSERA_INLINE inline C sum_complex(const C* p) {
  using U = typename C::value_type;
  using F = Fold<Reduction::sum, U>;
  constexpr Index lanes = 32 / sizeof(U), parts = 2 * count;
  const U* const q = reinterpret_cast<const U*>(p);
  U joined[parts / 8], few[lanes];
  for (Index group = 0; group < parts; group += 8 * lanes) {
    TESSERA_SIMD
    for (Index j = 0; j < lanes; ++j)
      joined[group / 8 + j] = join_apart<F, U, 8>(q + group + j, lanes);
  }
  TESSERA_SIMD
  for (Index j = 0; j < lanes; ++j) few[j] = join_apart<F, U, parts / 8 / lanes>(joined + j, lanes);
  return {join_apart<F, U, lanes / 2>(few, 2), join_apart<F, U, lanes / 2>(few + 1, 2)};
}

#if defined(TESSERA_AVX512)
/// Joins elements of a half type, 16 apart, in pairs.
template <class F, Index count, class T>
TESSERA_AVX512_INLINE inline void join_lanes(const T* p, ShortLanes<float>& to) {
  if constexpr (count == 1) {
    read_lanes(p, to.lane);
  } else {
    ShortLanes<float> more;
    join_lanes<F, count / 2>(p, to);
    join_lanes<F, count / 2>(p + count / 2 * short_lanes, more);
    TESSERA_SIMD
    for (Index j = 0; j < short_lanes; ++j) to.lane[j] = F::join(to.lane[j], more.lane[j]);
  }
}
template <class F, Index count, class T>
TESSERA_AVX512_ALONE void join_short(const T* p, float* to) {
  ShortLanes<float> joined;
  join_lanes<F, count>(p, joined);
  std::memcpy(to, joined.lane, sizeof(joined));
}
#endif

}  // namespace tessera::detail
