// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Products of a row and a large matrix of double on the host, which wait for memory: each thread
/// reads a strip of columns, as long rows, eight together. OpenBLAS 0.3.21 takes 1.2 times as long
/// for 2048 x 2048 doubles, and no longer for floats.
///
///     if (takes_strips(shape)) row_times_matrix(shape, false, a, b, c);   // c = a B
///
/// Laws: a column is summed in blocks of 64 rows, four rows in pairs and then the fours in order,
/// and the blocks in order: the bits depend only on its length, never on the number of threads.
#include <tessera/kernel/detail/gemm_shape.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

/// Whether a product is one of a row and a matrix larger than the second cache.
inline bool takes_strips(const GemmShape& g) {
  return g.m == 1 && !g.transpose_b && g.n >= 256 && saturating_mul(g.n, g.k) >= Index{1} << 17;
}

/// An index is a strip of a product's columns.
template <class T> struct RowTimesMatrix {
  static constexpr Index most = 2048;
  const GemmShape& g;
  bool add;
  Index width, strips;
  const T* a;
  const T* b;
  T* c;

  void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index batch = i / strips, column = i % strips * width;
      strip(a + g.a_offset(batch), b + g.b_offset(batch) + column, min_of(width, g.n - column),
            c + g.c_offset(batch) + column);
    }
  }

 private:
  void strip(const T* row, const T* matrix, Index count, T* to) const {
    constexpr Index block = 64;
    with_wide_vectors<computes_much>([&]() TESSERA_INLINE {
      alignas(64) T part[most], total[most];
      for (Index j = 0; j < count; ++j) total[j] = add ? to[j] : T{};
      for (Index top = 0; top < g.k; top += block) {
        const Index bottom = min_of(g.k, top + block);
        for (Index j = 0; j < count; ++j) part[j] = T{};
        Index k = top;
        const auto four = [&](Index from, Index j) TESSERA_INLINE {
          const T* const p = matrix + from * g.ldb + j;
          return (at(row, from) * p[0] + at(row, from + 1) * p[g.ldb]) +
                 (at(row, from + 2) * p[2 * g.ldb] + at(row, from + 3) * p[3 * g.ldb]);
        };
        for (; k + 8 <= bottom; k += 8) {
          TESSERA_SIMD
          for (Index j = 0; j < count; ++j) part[j] = (part[j] + four(k, j)) + four(k + 4, j);
        }
        for (; k < bottom; ++k) {
          const T *const p = matrix + k * g.ldb, w = at(row, k);
          TESSERA_SIMD
          for (Index j = 0; j < count; ++j) part[j] += w * p[j];
        }
        TESSERA_SIMD
        for (Index j = 0; j < count; ++j) total[j] += part[j];
      }
      for (Index j = 0; j < count; ++j) to[j] = total[j];
    });
  }
  TESSERA_INLINE T at(const T* row, Index k) const { return row[k * g.a_column]; }
};

/// All products of a batch.
template <class T>
void row_times_matrix(const GemmShape& g, bool add, const T* a, const T* b, T* c) {
  using Kernel = RowTimesMatrix<T>;
  const Index each = max_of(256, round_up(ceil_div(g.n, host_threads()), 16));
  const Index width = min_of(Kernel::most, each), strips = ceil_div(g.n, width);
  launch_on_host("tessera::gemm", g.batches * strips,
                 max_of(1, 65536 / max_of(1, saturating_mul(width, g.k))),
                 Kernel{g, add, width, strips, a, b, c});
}

}  // namespace tessera::detail
