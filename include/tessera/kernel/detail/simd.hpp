// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// TESSERA_SIMD before a loop says that its iterations are independent, so that compilers turn it into vector
/// instructions at -O2 without flags (g++ 12 does so only where told).
///
///     TESSERA_SIMD
///     for (Index i = 0; i < n; ++i) out[i] = f(in[i]);
#if defined(__CUDACC__) || defined(__HIPCC__)
#define TESSERA_SIMD
#elif defined(__clang__)
// Vectorises at -O2 by itself; "omp simd" would warn about every loop with a libm call in it.
#define TESSERA_SIMD
#elif defined(_OPENMP)
#define TESSERA_SIMD _Pragma("omp simd")
#elif defined(__GNUC__)
#define TESSERA_SIMD _Pragma("GCC ivdep")
#else
#define TESSERA_SIMD
#endif
