// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Vector instructions without compiler flags. TESSERA_SIMD before a loop says that its iterations
/// are independent (g++ 12 vectorises at -O2 only when told); with_wide_vectors compiles a loop
/// for AVX2, and one that computes much for AVX-512, too, and uses that where the CPU has it; for
/// older CPUs there is a small loop without vectors. Neither fuses a multiplication with an
/// addition but where a function asks for it (kernel/functions/detail/fused.hpp): the bits are the
/// same as in the plain loop. AVX-512 is for loops that compute much; where memory is what they
/// wait for it gains nothing. All functions that a loop calls are inlined into it; of the caller's
/// lambdas g++ needs -fno-ipa-cp and -fno-ipa-sra for that, which the CMake target gives.
///
///     with_wide_vectors([&]() TESSERA_INLINE {
///       TESSERA_SIMD
///       for (Index i = 0; i < n; ++i) out[i] = f(in[i]);
///     });
// TESSERA_SIMD_OR(x) says the same of iterations that or into x, and TESSERA_SIMD_BOUNDS(low, high)
// of those that keep the least in `low` and the greatest in `high`, and TESSERA_SIMD_MOST(x, y) of
// those that keep the greatest in x and in y.
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
#define TESSERA_SIMD_BOUNDS(low, high) \
  TESSERA_PRAGMA(omp simd reduction(min : low) reduction(max : high))
#define TESSERA_SIMD_MOST(x, y) TESSERA_PRAGMA(omp simd reduction(max : x, y))
#else
#define TESSERA_SIMD_OR(x)
#define TESSERA_SIMD_BOUNDS(low, high)
#define TESSERA_SIMD_MOST(x, y)
#endif

#define TESSERA_INLINE __attribute__((always_inline))

namespace tessera::detail {

// TESSERA_FUSED says that `fused` is one operation: an instruction where vectors are wide, else a
// call of libm's. clang 14 fuses more where a lambda is compiled, before it is inlined, and knows
// no attribute against it: it gets no instructions that fuse, and no AVX-512.
#if defined(__CUDACC__) || defined(__HIPCC__)
#elif defined(__x86_64__) && !defined(__AVX2__)
#define TESSERA_AVX2
#if defined(__clang__)
#define TESSERA_AVX2_TARGET target("avx2")
inline bool has_avx2() { return __builtin_cpu_supports("avx2"); }
#else
#define TESSERA_FUSED
#define TESSERA_AVX2_TARGET target("avx2,fma"), optimize("fp-contract=off")
inline bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif
template <class Loop>
__attribute__((TESSERA_AVX2_TARGET, noinline, flatten)) void run_avx2(const Loop& loop) {
  loop();
}
#elif defined(__FMA__) || defined(__aarch64__)
#define TESSERA_FUSED
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__FMA__) && \
    !defined(__AVX512F__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define TESSERA_AVX512
#define TESSERA_AVX512_WITH(inlining)                                                  \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"), \
                 optimize("fp-contract=off"), inlining))
/// For a function that is compiled for AVX-512, and for what it inlines.
#define TESSERA_AVX512_ALONE TESSERA_AVX512_WITH(noinline) __attribute__((flatten))
#define TESSERA_AVX512_INLINE TESSERA_AVX512_WITH(always_inline)
template <class Loop> TESSERA_AVX512_ALONE void run_avx512(const Loop& loop) { loop(); }
/// Whether the CPU has AVX-512 and keeps its clock under it: Ice Lake, Zen 4 and later ones.
inline bool has_avx512() {
  return __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

/// Runs a loop that few programs run, or few CPUs: compiled small, and without vectors.
#if defined(__clang__)
template <class Loop> __attribute__((noinline, cold, minsize)) void run_small(const Loop& loop) {
  loop();
}
#elif defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
template <class Loop>
__attribute__((noinline, cold, optimize("no-tree-loop-optimize"))) void run_small(
    const Loop& loop) {
  loop();
}
#else
template <class Loop> void run_small(const Loop& loop) { loop(); }
#endif

/// Stands for a loop that gains by AVX-512.
inline constexpr bool computes_much = true;
template <bool Much = false, class Loop>
TESSERA_INLINE inline void with_wide_vectors(const Loop& loop) {
#if defined(TESSERA_AVX512)
  if constexpr (Much)
    if (has_avx512()) return run_avx512(loop);
#endif
#if defined(TESSERA_AVX2)
  if (has_avx2()) return run_avx2(loop);
  run_small(loop);
#else
  loop();
#endif
}

}  // namespace tessera::detail
