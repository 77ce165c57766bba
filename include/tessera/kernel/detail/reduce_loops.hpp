// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Host loops of reductions. A *line* is one output whose elements follow each other; a *strip* is
/// a row of outputs reduced together, element by element. Both cut the reduced elements into chunks
/// of a fixed length, sum a chunk in blocks of 256 (lines) or 16 (strips) in the element's type of
/// computation and the blocks in Total, and join the chunks in order. So the bits depend only on
/// the shape, never on the number of threads.
///
///     line_chunk<Reduction::sum, float, float>(shape, from, 0)
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/reduce_shape.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

inline constexpr Index line_chunk_elements = 65536;
inline constexpr Index strip_chunk_rows = 4096;
inline constexpr Index strip_width = 512;

/// Returns how many chunks a line has: pieces of one row, or groups of rows.
inline Index line_chunks(const OffsetBox& reduced) {
  if (reduced.rank == 0 || reduced.size == 0) return 1;
  const Index row = reduced.extent[reduced.rank - 1];
  if (reduced.rank == 1) return ceil_div(row, line_chunk_elements);
  return ceil_div(reduced.size / row, max_of(1, line_chunk_elements / row));
}

/// Returns n elements, `stride` apart, as contiguous ones: in place, or in `buffer`.
template <class T> const T* side_by_side(const T* p, Index n, Index stride, T* buffer) {
  if (stride == 1) return p;
  for (Index i = 0; i < n; ++i) buffer[i] = p[i * stride];
  return buffer;
}

/// Reduces n elements in a row, in sixteen lanes.
template <Reduction R, class T, class Out>
typename Accumulator<R, T, Out>::Total fold_row(const T* from, Index n, Index stride) {
  using C = typename Accumulator<R, T, Out>::Part;
  using F = Fold<R, C>;
  using Total = typename Accumulator<R, T, Out>::Total;
  constexpr Index lanes = 16, block = 256;
  T buffer[block];
  Total total = Fold<R, Total>::start();
  for (Index done = 0; done < n; done += block) {
    const Index count = min_of(block, n - done);
    const T* p = side_by_side(from + done * stride, count, stride, buffer);
    C lane[lanes];
    Index i = 0;
    C rest = F::start();
    if (count >= lanes) {
      for (Index l = 0; l < lanes; ++l) lane[l] = static_cast<C>(p[l]);
      for (i = lanes; i + lanes <= count; i += lanes) {
        TESSERA_SIMD
        for (Index l = 0; l < lanes; ++l) lane[l] = F::join(lane[l], static_cast<C>(p[i + l]));
      }
      for (Index half = lanes / 2; half > 0; half /= 2)
        for (Index l = 0; l < half; ++l) lane[l] = F::join(lane[l], lane[l + half]);
      rest = lane[0];
    }
    for (; i < count; ++i) rest = F::join(rest, static_cast<C>(p[i]));
    total = Fold<R, Total>::join(total, static_cast<Total>(rest));
  }
  return total;
}

/// Reduces chunk c of the line that starts at p.
template <Reduction R, class T, class Out>
typename Accumulator<R, T, Out>::Total line_chunk(const OffsetBox& reduced, const T* p, Index c) {
  using Total = typename Accumulator<R, T, Out>::Total;
  Total total = Fold<R, Total>::start();
  if (reduced.size == 0) return total;
  const int last = reduced.rank - 1;
  const Index stride = last >= 0 ? reduced.stride[last] : 1;
  Index row = last >= 0 ? reduced.extent[last] : 1;
  const Index group = max_of(1, line_chunk_elements / row);
  Index begin = c * group, end = min_of(begin + group, reduced.size / row);
  if (last == 0) {  // a piece of the only row
    const Index first = c * line_chunk_elements;
    p += first * stride;
    row = min_of(line_chunk_elements, row - first);
    begin = 0;
    end = 1;
  }
  RowWalk walk(reduced, begin);
  for (Index r = begin; r < end; ++r, walk.next())
    total = Fold<R, Total>::join(total, fold_row<R, T, Out>(p + walk.offset, row, stride));
  return total;
}

/// Joins four rows at once to a fifth: four streams from memory.
template <class F, class C, class T> void join_rows(Index width, C* part, const T* const* rows) {
  const T *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  TESSERA_SIMD
  for (Index j = 0; j < width; ++j)
    part[j] = F::join(part[j], F::join(F::join(static_cast<C>(a[j]), static_cast<C>(b[j])),
                                       F::join(static_cast<C>(c[j]), static_cast<C>(d[j]))));
}

/// Reduces rows [begin, end) of the reduced box for `width` outputs side by side into totals.
template <Reduction R, class T, class Out>
void strip_chunk(const OffsetBox& reduced, const T* p, Index stride, Index width, Index begin,
                 Index end, typename Accumulator<R, T, Out>::Total* totals) {
  using C = typename Accumulator<R, T, Out>::Part;
  using F = Fold<R, C>;
  using Total = typename Accumulator<R, T, Out>::Total;
  for (Index j = 0; j < width; ++j) totals[j] = Fold<R, Total>::start();
  if (begin >= end) return;
  OffsetBox rows = reduced;  // one more dimension, so that each element is a row
  rows.extent[rows.rank] = 1;
  rows.stride[rows.rank++] = 0;
  RowWalk walk(rows, begin);
  C part[strip_width];
  T buffer[strip_width];
  for (Index r = begin; r < end;) {
    for (Index j = 0; j < width; ++j) part[j] = F::start();
    const Index stop = min_of(end, r + 16);
    for (; stride == 1 && r + 4 <= stop; r += 4) {
      const T* row[4];
      for (int k = 0; k < 4; ++k, walk.next()) row[k] = p + walk.offset;
      join_rows<F>(width, part, row);
    }
    for (; r < stop; ++r, walk.next()) {
      const T* row = side_by_side(p + walk.offset, width, stride, buffer);
      TESSERA_SIMD
      for (Index j = 0; j < width; ++j) part[j] = F::join(part[j], static_cast<C>(row[j]));
    }
    TESSERA_SIMD
    for (Index j = 0; j < width; ++j)
      totals[j] = Fold<R, Total>::join(totals[j], static_cast<Total>(part[j]));
  }
}

}  // namespace tessera::detail
