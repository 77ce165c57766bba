// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Numbers as sums of two floats or doubles, of which the second may be less than the first one's
/// ulp. The sum and the product are Dekker's (A floating-point technique for extending the
/// available precision, Numerische Mathematik 18, 1971, sections 3 and 5), with fused operations in
/// place of his halves.
///
///     exact_sum(1.0, 1e-20).rest == 1e-20
///
/// Laws: a product keeps the digits of its factor where operations are fused (TESSERA_FUSED).
#include <tessera/kernel/functions/detail/fused.hpp>

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

}  // namespace tessera::detail
