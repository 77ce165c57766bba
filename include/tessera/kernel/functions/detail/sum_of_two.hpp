// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Numbers as sums of two floats or doubles, of which the second may be less than the first one's
/// ulp. The sum and the product are Dekker's (A floating-point technique for extending the
/// available precision, Numerische Mathematik 18, 1971, sections 3 and 5), with fused operations in
/// place of his halves where there are any.
///
///     exact_sum(1.0, 1e-20).rest == 1e-20
///
/// Laws: a product keeps the digits of its factor where operations are fused (TESSERA_FUSED); a
/// square keeps them everywhere.
#include <tessera/kernel/functions/detail/fused.hpp>
#include <tessera/kernel/functions/detail/number_bits.hpp>

namespace tessera::detail {

template <class T> struct SumOfTwo { T most, rest; };
using FloatSum = SumOfTwo<float>;
using DoubleSum = SumOfTwo<double>;

/// Returns a + b, exactly, where |a| >= |b| or a = 0.
template <class T> KOKKOS_FORCEINLINE_FUNCTION SumOfTwo<T> exact_sum(T a, T b) {
  const T most = a + b;
  return {most, b - (most - a)};
}

/// Returns y x, but for an ulp of the second part.
template <class T> KOKKOS_FORCEINLINE_FUNCTION SumOfTwo<T> product_in_two(T y, SumOfTwo<T> x) {
  const T most = y * x.most;
  return {most, fused(y, x.rest, fused(y, x.most, -most))};
}

/// Returns x without the lower half of its digits.
KOKKOS_FORCEINLINE_FUNCTION float upper_half(float x) { return float_of(bits_of(x) & ~0xfffu); }
KOKKOS_FORCEINLINE_FUNCTION double upper_half(double x) {
  return double_of(bits_of(x) & ~std::uint64_t{0x7ffffff});
}

/// Returns x x, but for an ulp of the second part.
template <class T> KOKKOS_FORCEINLINE_FUNCTION SumOfTwo<T> square_in_two(T x) {
  const T most = x * x;
#if defined(TESSERA_FUSED)
  return {most, fused(x, x, -most)};
#else
  const T high = upper_half(x), low = x - high;
  return {most, ((high * high - most) + 2 * high * low) + low * low};
#endif
}

}  // namespace tessera::detail
