// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Vector instructions without compiler flags. TESSERA_SIMD before a loop says that its iterations
/// are independent (g++ 12 vectorises at -O2 only when told); with_wide_vectors compiles a loop a
/// second time for AVX2, and uses that where the CPU has it. AVX2 runs without fused multiply-add:
/// the bits are the same as in the plain loop.
///
///     with_wide_vectors([&]() TESSERA_INLINE {
///       TESSERA_SIMD
///       for (Index i = 0; i < n; ++i) out[i] = f(in[i]);
///     });
// TESSERA_SIMD_OR(x) says the same of iterations that or into x.
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

#if defined(_OPENMP) && !defined(__clang__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define TESSERA_PRAGMA(text) _Pragma(#text)
#define TESSERA_SIMD_OR(x) TESSERA_PRAGMA(omp simd reduction(| : x))
#else
#define TESSERA_SIMD_OR(x)
#endif

#define TESSERA_INLINE __attribute__((always_inline))

namespace tessera::detail {

#if defined(__x86_64__) && !defined(__AVX2__) && !defined(__CUDACC__) && !defined(__HIPCC__)
template <class Loop> __attribute__((target("avx2"), noinline)) void run_avx2(const Loop& loop) {
  loop();
}
template <class Loop> TESSERA_INLINE inline void with_wide_vectors(const Loop& loop) {
  if (__builtin_cpu_supports("avx2"))
    run_avx2(loop);
  else
    loop();
}
#else
template <class Loop> void with_wide_vectors(const Loop& loop) { loop(); }
#endif

}  // namespace tessera::detail
