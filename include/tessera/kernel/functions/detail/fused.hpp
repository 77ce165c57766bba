// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A multiplication and an addition with one rounding, where loops have an instruction for it.
///
///     fused(2.0, 3.0, 1.0) == 7
///
/// Laws: in one build the bits are the same on every CPU and in every loop. A CPU without the
/// instruction (of before 2013) takes libm's function, which is slow. Where TESSERA_FUSED is not
/// defined (kernel/detail/simd.hpp) the product is rounded too.
#include <Kokkos_Core.hpp>

#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

/// Returns a b + c.
KOKKOS_FORCEINLINE_FUNCTION float fused(float a, float b, float c) {
#if defined(TESSERA_FUSED)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
KOKKOS_FORCEINLINE_FUNCTION double fused(double a, double b, double c) {
#if defined(TESSERA_FUSED)
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace tessera::detail
