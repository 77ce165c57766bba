// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Products of a row and a column on the host: a Gemm of one row and one column. A long product is
/// cut into chunks for threads, and a chunk into blocks of 2048; each block is summed in the type
/// of computation, by BLAS or in parallel lanes, and blocks and chunks are summed in order in
/// Total. So the bits depend only on the length, never on the number of threads.
///
///     dot_host<float>(shape, false, a, b, c);   // c[batch] = sum of a[k] b[k]
#include <tessera/kernel/detail/gemm_shape.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_loops.hpp>
#include <tessera/kernel/product/detail/blas.hpp>

namespace tessera::detail {

/// The sum of n products in independent lanes; n is a multiple of `lanes`.
template <class S, Index lanes, class T>
TESSERA_INLINE inline S dot_lanes(const T* a, const T* b, Index n) {
  S lane[lanes] = {};
  for (Index i = 0; i < n; i += lanes) {
    TESSERA_SIMD
    for (Index l = 0; l < lanes; ++l)
      lane[l] += static_cast<S>(a[i + l]) * static_cast<S>(b[i + l]);
  }
  for (Index half = lanes / 2; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

/// The sum of n products of contiguous elements.
template <class T> TotalType<T> dot_block(const T* a, const T* b, Index n) {
  using S = Wrapping<ComputeType<T>>;
  constexpr Index lanes = 128 / static_cast<Index>(sizeof(S));
  if constexpr (!std::is_integral_v<T> && sizeof(T) > 2)
    if (n >= lanes) return static_cast<TotalType<T>>(blas_dot(static_cast<int>(n), a, b));
  const Index whole = n / lanes * lanes;
  S sum{};
  with_wide_vectors([&]() TESSERA_INLINE { sum = dot_lanes<S, lanes>(a, b, whole); });
  for (Index i = whole; i < n; ++i) sum += static_cast<S>(a[i]) * static_cast<S>(b[i]);
  return static_cast<TotalType<T>>(sum);
}

template <class T> struct Dot {
  static constexpr Index block = 2048;
  const T* a;
  const T* b;
  Index a_stride, b_stride;

  /// The sum over elements [begin, end).
  TotalType<T> sum(Index begin, Index end) const {
    using Total = TotalType<T>;
    using F = Fold<Reduction::sum, Total>;
    constexpr Index apart = 256;
    T left[apart], right[apart];
    const Index most = a_stride == 1 && b_stride == 1 ? block : apart;
    Total total{};
    for (Index i = begin; i < end; i += most) {
      const Index n = min_of(most, end - i);
      total = F::join(total, dot_block(side_by_side(a + i * a_stride, n, a_stride, left),
                                       side_by_side(b + i * b_stride, n, b_stride, right), n));
    }
    return total;
  }
};

/// An index is a chunk of one long product.
template <class T> struct DotChunks {
  Dot<T> dot;
  Index length, chunk;
  TotalType<T>* totals;
  void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i)
      totals[i] = dot.sum(i * chunk, min_of(length, (i + 1) * chunk));
  }
};
/// An index is a product of the batch; results are R.
template <class T, class R = T> struct DotBatch {
  const GemmShape& g;
  bool add;
  const T* a;
  const T* b;
  R* c;
  Dot<T> at(Index i) const { return {a + g.a_offset(i), b + g.b_offset(i), g.a_column, g.b_row}; }
  void put(Index i, TotalType<T> total) const {
    using F = Fold<Reduction::sum, TotalType<T>>;
    R* const to = c + g.c_offset(i);
    *to = static_cast<R>(add ? F::join(static_cast<TotalType<T>>(*to), total) : total);
  }
  void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) put(i, at(i).sum(0, g.k));
  }
};

/// All products of a batch.
template <class T, class R>
void dot_host(const GemmShape& g, bool add, const T* a, const T* b, R* c) {
  const DotBatch<T, R> batch{g, add, a, b, c};
  constexpr Index most = 512, least = 65536;
  if (g.k < 2 * least || g.batches >= 2 * host_threads())
    return launch_on_host("tessera::gemm", g.batches, max_of(1, 32768 / max_of(1, g.k)), batch);
  const Index chunk = max_of(least, round_up(ceil_div(g.k, most), Dot<T>::block));
  const Index chunks = ceil_div(g.k, chunk);
  for (Index i = 0; i < g.batches; ++i) {
    TotalType<T> totals[most], total{};
    launch_on_host("tessera::gemm", chunks, 1, DotChunks<T>{batch.at(i), g.k, chunk, totals});
    for (Index j = 0; j < chunks; ++j)
      total = Fold<Reduction::sum, TotalType<T>>::join(total, totals[j]);
    batch.put(i, total);
  }
}

}  // namespace tessera::detail
