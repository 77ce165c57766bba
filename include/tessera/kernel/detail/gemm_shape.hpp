// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Gemm made small: batch dimensions of extent 1 are dropped, neighbours are joined, and a batch
/// that only continues the rows of A or the columns of B becomes part of the matrix, so that the
/// fewest and largest products remain.
///
///     // eight products with one B, A and C contiguous: one product with eight times the rows
///     gemm_shape({.m = 4, .n = 5, .k = 6, .lda = 6, .ldb = 5, .ldc = 5,
///                 .batch = {8}, .batch_a = {24}, .batch_b = {0}, .batch_c = {20}}).m == 32
#include <Kokkos_Core.hpp>

#include <tessera/base/local_work.hpp>

namespace tessera::detail {

class ProductTable;

struct GemmShape {
  Index m, n, k;
  Index a_row, a_column, b_row, b_column, ldc;
  bool transpose_a, transpose_b;
  Index lda, ldb;
  int rank;  // of the batch
  Index batches;
  Index batch[max_dims], a_stride[max_dims], b_stride[max_dims], c_stride[max_dims];
  const ProductTable* products;  ///< which library multiplies on the host; null: the fixed rule

  KOKKOS_FUNCTION Index offset(Index i, const Index* strides) const {
    if (rank == 1) return i * strides[0];
    Index at = 0;
    for (int d = rank - 1; d >= 0; --d) {
      at += i % batch[d] * strides[d];
      i /= batch[d];
    }
    return at;
  }
  KOKKOS_FUNCTION Index a_offset(Index i) const { return offset(i, a_stride); }
  KOKKOS_FUNCTION Index b_offset(Index i) const { return offset(i, b_stride); }
  KOKKOS_FUNCTION Index c_offset(Index i) const { return offset(i, c_stride); }

  /// BLAS needs rows that do not overlap.
  bool fits_blas() const {
    return lda >= (transpose_a ? m : k) && ldb >= (transpose_b ? k : n) && ldc >= n;
  }
};

inline GemmShape gemm_shape(const Gemm& g, const ProductTable* products = nullptr) {
  GemmShape s;
  s.products = products;
  s.m = g.m;
  s.n = g.n;
  s.k = g.k;
  s.transpose_a = g.transpose_a;
  s.transpose_b = g.transpose_b;
  s.rank = 0;
  s.batches = max_of(0, volume(g.batch));
  for (int d = 0; d < g.batch.size(); ++d) {
    if (g.batch[d] == 1) continue;
    const int last = s.rank - 1;
    if (last >= 0 && s.a_stride[last] == g.batch[d] * g.batch_a[d] &&
        s.b_stride[last] == g.batch[d] * g.batch_b[d] &&
        s.c_stride[last] == g.batch[d] * g.batch_c[d])
      --s.rank, s.batch[last] *= g.batch[d];
    else
      s.batch[s.rank] = g.batch[d];
    s.a_stride[s.rank] = g.batch_a[d];
    s.b_stride[s.rank] = g.batch_b[d];
    s.c_stride[s.rank++] = g.batch_c[d];
  }
  // A matrix of one row (or column) may be stored with any leading dimension.
  s.lda = (g.transpose_a ? g.k : g.m) <= 1 ? max_of(g.lda, g.transpose_a ? g.m : g.k) : g.lda;
  s.ldb = (g.transpose_b ? g.n : g.k) <= 1 ? max_of(g.ldb, g.transpose_b ? g.k : g.n) : g.ldb;
  s.ldc = g.m <= 1 ? max_of(g.ldc, g.n) : g.ldc;
  if (s.rank > 0 && s.m == 1) {
    const int last = s.rank - 1;
    if (!s.transpose_a && s.a_stride[last] >= s.k) s.lda = s.a_stride[last];
    if (s.c_stride[last] >= s.n) s.ldc = s.c_stride[last];
  }
  for (; s.rank > 0; --s.rank) {
    const int last = s.rank - 1;
    const Index extent = s.batch[last], sa = s.a_stride[last], sb = s.b_stride[last],
                sc = s.c_stride[last];
    const Index rows = s.m * extent, columns = s.n * extent;
    if (sb == 0 && sa == s.m * (s.transpose_a ? 1 : s.lda) && sc == s.m * s.ldc &&
        (!s.transpose_a || s.lda >= rows || s.k == 1))
      s.m = rows;
    else if (sa == 0 && sb == s.n * (s.transpose_b ? s.ldb : 1) && sc == s.n &&
             (s.ldc >= columns || s.m == 1) && (s.transpose_b || s.ldb >= columns || s.k == 1))
      s.n = columns;
    else
      break;
    s.batches /= extent > 0 ? extent : 1;
  }
  if (s.transpose_a && s.k == 1) s.lda = max_of(s.lda, s.m);
  if (!s.transpose_b && s.k == 1) s.ldb = max_of(s.ldb, s.n);
  if (s.m == 1) s.ldc = max_of(s.ldc, s.n);
  s.a_row = s.transpose_a ? 1 : s.lda;
  s.a_column = s.transpose_a ? s.lda : 1;
  s.b_row = s.transpose_b ? 1 : s.ldb;
  s.b_column = s.transpose_b ? s.ldb : 1;
  return s;
}

}  // namespace tessera::detail
