// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Unsigned integers that order as the elements do, so that sorting does not depend on element
/// types.
///
///     sort_key(-1.0f, false) < sort_key(2.0f, false)
///     sort_key(-1.0f, true) > sort_key(2.0f, true)
///     total_key(-0.0f, false) < total_key(0.0f, false)
///
/// Laws: equal elements have equal keys, -0 and 0 too; NaN has the largest key, in either
/// direction; no other element has that key where the type has NaN. Total keys have the same order,
/// and are equal only for equal bits.
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/dtype.hpp>

namespace tessera::detail {

/// The unsigned integer that a key of elements T fits in.
template <class T>
using SortKey = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T> KOKKOS_FORCEINLINE_FUNCTION SortKey<T> element_bits(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<SortKey<T>>(x);
  else if constexpr (sizeof(T) == 2)
    return x.bits();
  else
    return Kokkos::bit_cast<SortKey<T>>(x);
}

template <class T> KOKKOS_FORCEINLINE_FUNCTION SortKey<T> sort_key(T x, bool descending) {
  using Key = SortKey<T>;
  constexpr int bits = 8 * static_cast<int>(sizeof(Key));
  constexpr Key sign = static_cast<Key>(Key{1} << (bits - 1));
  constexpr Key ones = static_cast<Key>(~Key{0});
  Key key = element_bits(x);
  if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>) key = static_cast<Key>(key ^ sign);
  } else {
    if (x != x) return ones;
    if (static_cast<Key>(key << 1) == 0) key = 0;
    key = static_cast<Key>(key ^ ((key & sign) != 0 ? ones : sign));
  }
  return descending ? static_cast<Key>(~key) : key;
}

/// Orders equal elements with different bits: -0 is before 0 (after it in a descending order), and
/// NaNs, which come last in either direction, are ordered by their bits, the positive ones first.
template <class T> KOKKOS_FORCEINLINE_FUNCTION SortKey<T> total_key(T x, bool descending) {
  if constexpr (std::is_integral_v<T>) {
    return sort_key(x, descending);
  } else {
    using Key = SortKey<T>;
    constexpr Key sign = static_cast<Key>(Key{1} << (8 * sizeof(Key) - 1));
    constexpr Key ones = static_cast<Key>(~Key{0});
    // The number of NaNs with a sign: their keys wrap round to the top.
    constexpr Key nans = static_cast<Key>((Key{1} << (std::numeric_limits<T>::digits - 1)) - 1);
    Key key = element_bits(x);
    key = static_cast<Key>((key ^ ((key & sign) != 0 ? ones : sign)) - nans);
    return descending && x == x ? static_cast<Key>(ones - 2 * nans - key) : key;
  }
}

}  // namespace tessera::detail
