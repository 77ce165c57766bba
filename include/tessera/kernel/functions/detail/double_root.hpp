// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// cbrt of doubles without branches or calls, so that loops over it become vector instructions:
/// x^(-1/3) by a third of x's bits (as in W. Kahan, Computing a Real Cube Root, 1991) and two
/// steps of Newton's kind, and a last step of x^(1/3) whose residual has twice a double's digits.
///
///     fast_cbrt(27.0) == 3
///
/// Laws (a test sweeps it against libm's long double): at most 1 ulp; infinities, NaN, -0 and
/// denormals as libm's. Measured: 0.64 ulp. It needs TESSERA_FUSED.
#include <tessera/kernel/functions/detail/double_math.hpp>
#include <tessera/kernel/functions/detail/sum_of_two.hpp>

#if defined(TESSERA_FUSED)
namespace tessera::detail {

KOKKOS_FORCEINLINE_FUNCTION double fast_cbrt(double x) {
  const double size = double_of(bits_of(x) & ~(std::uint64_t{1} << 63));
  // So that cubes neither overflow nor lose digits.
  const bool small = size<0x1p-900, large = size> 0x1p900;
  const double in = size * choose(small, 0x1p216, choose(large, 0x1p-216, 1.0));
  const double back = choose(small, 0x1p-72, choose(large, 0x1p72, 1.0));
  // The upper half of the bits is, nearly, 2^20 (log2 in + 1023).
  const double upper = double_of((bits_of(in) >> 32) | 0x4330000000000000u) - 4503599627370496.0;
  const double guess = fused(upper, -0.33333333333333333333, 1430194687.0 + 4503599627370496.0);
  const double first = double_of(bits_of(guess) << 32);  // in^(-1/3) but for 4 %
  const double h = fused(-in * first * first, first, 1.0);
  const double step =
      fused(h, fused(h, 0.1728395061728395, 0.2222222222222222), 0.3333333333333333);
  const double second = fused(first * h, step, first);
  const double left = fused(-in * second * second, second, 1.0) * 0.3333333333333333;
  const double inverse = fused(second, left, second);
  const double root = in * inverse * inverse;
  const DoubleSum square = square_in_two(root);
  const DoubleSum cube = product_in_two(root, square);
  const double rest = (in - cube.most) - cube.rest;
  const double result = fused(rest, inverse * inverse * 0.3333333333333333, root) * back;
  const double infinity = std::numeric_limits<double>::infinity();
  return choose(size < infinity, with_sign(result, x), x);
}

}  // namespace tessera::detail
#endif
