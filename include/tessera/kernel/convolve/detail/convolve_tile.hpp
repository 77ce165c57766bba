// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The innermost loop of the portable convolution: a tile of rows by lanes of sums, held in
/// registers while products are added one after the other. Compiled for 16-byte vectors and, where
/// the CPU has AVX2, for 32-byte vectors, without fused multiply-add: each sum has the bits of the
/// plain loop, in any row and lane.
///
///     ConvolveTile<float, 4>::add(runs, 1, kernel, x, true, sums);   // sums is (4, 16)
#include <cstring>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>
#include <tessera/kernel/convolve/detail/block_walk.hpp>
#include <tessera/kernel/detail/simd.hpp>

// Without it, g++ 12 keeps the sums in memory at -O2.
#define TESSERA_UNROLL _Pragma("GCC unroll 8")

namespace tessera::detail {

template <class A, int Rows> struct ConvolveTile {
  static constexpr Index lanes = 64 / sizeof(A);
  static constexpr bool has_vectors = std::is_arithmetic_v<A>;

  /// Adds row by row: sums[r][l] += kernel[r] * x[l], or kernel[l] * x[r] with `kernel_lanes`. The
  /// rows of x follow each other; `runs` gives the rows of the kernel.
  static void add(const KernelRun* runs, Index count, const A* kernel, const A* x,
                  bool kernel_lanes, A* sums) {
#if defined(__CUDACC__) || defined(__HIPCC__)
    add_each(runs, count, kernel, x, kernel_lanes, sums);
#else
    if constexpr (!has_vectors) {
      add_each(runs, count, kernel, x, kernel_lanes, sums);
    } else {
#if defined(__AVX2__)
      add_vectors<32>(runs, count, kernel, x, kernel_lanes, sums);
#elif defined(__x86_64__)
      if (__builtin_cpu_supports("avx2"))
        return add_avx2(runs, count, kernel, x, kernel_lanes, sums);
      add_vectors<16>(runs, count, kernel, x, kernel_lanes, sums);
#else
      add_vectors<16>(runs, count, kernel, x, kernel_lanes, sums);
#endif
    }
#endif
  }

 private:
  static void add_each(const KernelRun* runs, Index count, const A* kernel, const A* x,
                       bool kernel_lanes, A* sums) {
    const Index width = kernel_lanes ? lanes : Rows;
    for (Index i = 0; i < count; ++i) {
      const A* k = kernel + runs[i].at * width;
      for (Index n = 0; n < runs[i].length; ++n, k += width, x += kernel_lanes ? Rows : lanes)
        for (int r = 0; r < Rows; ++r)
          for (Index l = 0; l < lanes; ++l)
            sums[r * lanes + l] += kernel_lanes ? k[l] * x[r] : k[r] * x[l];
    }
  }

#if !defined(__CUDACC__) && !defined(__HIPCC__)
#if defined(__x86_64__) && !defined(__AVX2__)
  __attribute__((target("avx2"), noinline)) static void add_avx2(const KernelRun* runs, Index count,
                                                                 const A* kernel, const A* x,
                                                                 bool kernel_lanes, A* sums) {
    add_vectors<32>(runs, count, kernel, x, kernel_lanes, sums);
  }
#endif
  template <int Bytes>
  TESSERA_INLINE static inline void add_vectors(const KernelRun* runs, Index count, const A* kernel,
                                                const A* x, bool kernel_lanes, A* sums) {
    typedef A Vector __attribute__((vector_size(Bytes)));
    constexpr int vectors = 64 / Bytes, width = Bytes / sizeof(A);
    Vector total[Rows][vectors];
    TESSERA_UNROLL
    for (int r = 0; r < Rows; ++r) TESSERA_UNROLL
    for (int v = 0; v < vectors; ++v)
      std::memcpy(&total[r][v], sums + r * lanes + v * width, Bytes);
    const Index kernel_width = kernel_lanes ? lanes : Rows;
    for (Index i = 0; i < count; ++i) {
      const A* k = kernel + runs[i].at * kernel_width;
      const A* wide = kernel_lanes ? k : x;
      const A* narrow = kernel_lanes ? x : k;
      for (Index n = 0; n < runs[i].length; ++n, wide += lanes, narrow += Rows) {
        Vector lane[vectors];
        TESSERA_UNROLL
        for (int v = 0; v < vectors; ++v) std::memcpy(&lane[v], wide + v * width, Bytes);
        TESSERA_UNROLL
        for (int r = 0; r < Rows; ++r) TESSERA_UNROLL
        for (int v = 0; v < vectors; ++v) total[r][v] += narrow[r] * lane[v];
      }
      x = kernel_lanes ? narrow : wide;
    }
    TESSERA_UNROLL
    for (int r = 0; r < Rows; ++r) TESSERA_UNROLL
    for (int v = 0; v < vectors; ++v)
      std::memcpy(sums + r * lanes + v * width, &total[r][v], Bytes);
  }
#endif
};

}  // namespace tessera::detail
