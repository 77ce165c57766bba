// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tessera's own matrix product: for integers, for shapes that BLAS does not support, for products
/// too small to be worth a call of BLAS, and for devices without one. On the host it is blocked for
/// the caches; on a device each element is a thread.
///
///     gemm_tiles<float>(batches, beta, a, b, c);
///
/// Sums run over k in order; integers wrap (the element type is unsigned); half types, only on a
/// device, are summed in float.
#include <tessera/kernel/detail/gemm_shape.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>

namespace tessera::detail {

/// The type in which a sum of products is kept.
template <class T> struct ProductSumOf { using type = Wrapping<T>; };
template <class Format> struct ProductSumOf<ShortFloat<Format>> { using type = float; };
template <class T> using ProductSum = typename ProductSumOf<T>::type;

/// Host: C rows [begin, end) of a column times a row, whose elements follow each other.
template <class T>
void outer_loop(const GemmShape& g, const T* a, const T* b, T* c, Index begin, Index end) {
  with_wide_vectors([&]() TESSERA_INLINE {
    for (Index i = begin; i < end; ++i) {
      const T x = a[i * g.a_row];
      T* const to = c + i * g.ldc;
      TESSERA_SIMD
      for (Index j = 0; j < g.n; ++j) to[j] = x * b[j];
    }
  });
}
// No templates, so that a source with products compiles none of it again.
inline void outer_rows(const GemmShape& g, const float* a, const float* b, float* c, Index begin,
                       Index end) {
  outer_loop(g, a, b, c, begin, end);
}
inline void outer_rows(const GemmShape& g, const double* a, const double* b, double* c, Index begin,
                       Index end) {
  outer_loop(g, a, b, c, begin, end);
}

/// Host: C rows [begin, end) of one product. Four rows of B at a time pass over a row of C.
template <class T>
void gemm_rows(const GemmShape& g, const T* a, const T* b, T* c, bool add, Index begin, Index end) {
  constexpr Index depth = 64;
  constexpr Index width = 2048 / sizeof(T);
  using W = Wrapping<T>;
  if constexpr (std::is_floating_point_v<T>)
    if (g.k == 1 && !add && g.b_column == 1) return outer_rows(g, a, b, c, begin, end);
  T packed[depth * width];  // 128 KiB: half of a common second-level cache
  for (Index j0 = 0; j0 < g.n; j0 += width) {
    const Index columns = min_of(width, g.n - j0);
    for (Index k0 = 0; k0 < g.k; k0 += depth) {
      const Index inner = min_of(depth, g.k - k0);
      const T* block = b + k0 * g.b_row + j0 * g.b_column;
      Index pitch = g.b_row;
      if (g.b_column != 1) {
        for (Index j = 0; j < columns; ++j)
          for (Index k = 0; k < inner; ++k)
            packed[k * columns + j] = block[k * g.b_row + j * g.b_column];
        block = packed;
        pitch = columns;
      }
      for (Index i = begin; i < end; ++i) {
        T* to = c + i * g.ldc + j0;
        const T* from = a + i * g.a_row + k0 * g.a_column;
        if (g.k == 1 && !add) {  // a column times a row
          const W x = from[0];
          TESSERA_SIMD
          for (Index j = 0; j < columns; ++j) to[j] = static_cast<T>(x * block[j]);
          continue;
        }
        if (k0 == 0 && !add)
          for (Index j = 0; j < columns; ++j) to[j] = T{};
        Index k = 0;
        for (; k + 4 <= inner; k += 4) {
          const W x0 = from[k * g.a_column], x1 = from[(k + 1) * g.a_column];
          const W x2 = from[(k + 2) * g.a_column], x3 = from[(k + 3) * g.a_column];
          const T* y0 = block + k * pitch;
          const T* y1 = y0 + pitch;
          const T* y2 = y1 + pitch;
          const T* y3 = y2 + pitch;
          TESSERA_SIMD
          for (Index j = 0; j < columns; ++j)
            to[j] = static_cast<T>(to[j] + ((x0 * y0[j] + x1 * y1[j]) + (x2 * y2[j] + x3 * y3[j])));
        }
        for (; k < inner; ++k) {
          const W x = from[k * g.a_column];
          const T* y = block + k * pitch;
          TESSERA_SIMD
          for (Index j = 0; j < columns; ++j) to[j] = static_cast<T>(to[j] + x * y[j]);
        }
      }
    }
  }
}

/// Host: zeros in C rows [begin, end) of one product.
template <class T> void clear_rows(const GemmShape& g, T* c, Index begin, Index end) {
  for (Index i = begin; i < end; ++i)
    for (Index j = 0; j < g.n; ++j) c[i * g.ldc + j] = T{};
}

/// All products of a batch; an index is a row of some product on the host, an element, of type R,
/// on a device.
template <class T, class R = T> struct GemmTiles {
  GemmShape g;
  bool add;
  const T* a;
  const T* b;
  R* c;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    if constexpr (kernels_on_host) {
      while (begin < end) {
        const Index batch = begin / g.m, row = begin % g.m;
        const Index rows = min_of(g.m - row, end - begin);
        if (g.k == 0)  // then a and b are nowhere
          clear_rows(g, c + g.c_offset(batch), row, row + rows);
        else
          gemm_rows(g, a + g.a_offset(batch), b + g.b_offset(batch), c + g.c_offset(batch), add,
                    row, row + rows);
        begin += rows;
      }
    } else {
      for (Index e = begin; e < end; ++e) {
        const Index batch = e / (g.m * g.n), i = e / g.n % g.m, j = e % g.n;
        const T* x = a + g.a_offset(batch) + i * g.a_row;
        const T* y = b + g.b_offset(batch) + j * g.b_column;
        R* to = c + g.c_offset(batch) + i * g.ldc + j;
        using W = ProductSum<T>;
        W sum = add ? static_cast<W>(*to) : W{};
        for (Index k = 0; k < g.k; ++k)
          sum += static_cast<W>(x[k * g.a_column]) * static_cast<W>(y[k * g.b_row]);
        *to = static_cast<R>(sum);
      }
    }
  }
};

template <class T, class R = T>
void gemm_tiles(const GemmShape& g, bool add, const void* a, const void* b, void* c) {
  const GemmTiles<T, R> kernel{g, add, static_cast<const T*>(a), static_cast<const T*>(b),
                               static_cast<R*>(c)};
  if (g.n == 0 || (g.k == 0 && add)) return;
  const Index row_work = max_of(1, saturating_mul(g.n, g.k));
  const Index indices = kernels_on_host ? g.batches * g.m : g.batches * g.m * g.n;
  launch("tessera::gemm", indices, max_of(1, 65536 / row_work), kernel);
}

}  // namespace tessera::detail
