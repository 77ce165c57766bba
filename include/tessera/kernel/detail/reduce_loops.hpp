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
#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/extreme_block.hpp>
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

/// The rows of a chunk of a line: [begin, end) of the reduced box, of `row` elements from `first`
/// on.
struct LineRows {
  Index first, row, stride, begin, end;
};
/// Returns the rows of chunk c of a box that is not empty.
inline LineRows line_rows(const OffsetBox& reduced, Index c) {
  const int last = reduced.rank - 1;
  const Index stride = last >= 0 ? reduced.stride[last] : 1;
  const Index row = last >= 0 ? reduced.extent[last] : 1;
  if (last == 0) {  // a piece of the only row
    const Index first = c * line_chunk_elements;
    return {first * stride, min_of(line_chunk_elements, row - first), stride, 0, 1};
  }
  const Index group = max_of(1, line_chunk_elements / row), begin = c * group;
  return {0, row, stride, begin, min_of(begin + group, reduced.size / row)};
}

/// Reduces chunk c of the line that starts at p. Of each 64 elements in a row quarters are joined
/// element by element; then, of each 256, the quarters of these.
template <Reduction R, class T, class Out>
TESSERA_INLINE inline typename Accumulator<R, T, Out>::Total line_chunk(const OffsetBox& reduced,
                                                                        const T* line, Index c) {
  using C = typename Accumulator<R, T, Out>::Part;
  using F = Fold<R, C>;
  using Total = typename Accumulator<R, T, Out>::Total;
  using Joined = Fold<R, Total>;
  constexpr Index block = 256;
  T buffer[block];
  ComputeType<T> wide[block];
  Total whole = Joined::start();
  if (reduced.size == 0) return whole;
  const LineRows rows = line_rows(reduced, c);
  RowWalk walk(reduced, rows.begin);
  for (Index at = rows.begin; at < rows.end; ++at, walk.next()) {
    const T* const from = line + walk.offset + rows.first;
    Total total = Joined::start();
    for (Index done = 0; done < rows.row; done += block) {
      const Index count = min_of(block, rows.row - done);
      const auto* p = computed_row(
          side_by_side(from + done * rows.stride, count, rows.stride, buffer), count, wide);
      if constexpr ((R == Reduction::max || R == Reduction::min) && std::is_floating_point_v<C>)
        if (C found; count == extreme_count && extreme_block<C>(p, R == Reduction::min, found)) {
          total = Joined::join(total, static_cast<Total>(found));
          continue;
        }
      C rest = F::start(), joined[block / 4];
      for (Index i = count / 4 * 4; i < count; ++i) rest = F::join(rest, static_cast<C>(p[i]));
      // Quarters of groups of 64 elements, so that memory is read in order, and of what is left.
      Index left = 0;
      for (Index group = 0; group < count; group += 64) {
        const Index quarter = min_of(64, count - group) / 4;
        const auto *first = p + group, *second = first + quarter, *third = second + quarter,
                   *fourth = third + quarter;
        C* const to = joined + left;
        if (quarter == 16) {  // a loop of constant length
          TESSERA_SIMD
          for (Index j = 0; j < 16; ++j)
            to[j] = F::join(F::join(static_cast<C>(first[j]), static_cast<C>(second[j])),
                            F::join(static_cast<C>(third[j]), static_cast<C>(fourth[j])));
        } else {
          for (Index j = 0; j < quarter; ++j)
            to[j] = F::join(F::join(static_cast<C>(first[j]), static_cast<C>(second[j])),
                            F::join(static_cast<C>(third[j]), static_cast<C>(fourth[j])));
        }
        left += quarter;
      }
      while (left >= 4) {
        for (Index i = left / 4 * 4; i < left; ++i) rest = F::join(rest, joined[i]);
        const Index quarter = left / 4;
        TESSERA_SIMD
        for (Index j = 0; j < quarter; ++j)
          joined[j] = F::join(F::join(joined[j], joined[quarter + j]),
                              F::join(joined[2 * quarter + j], joined[3 * quarter + j]));
        left = quarter;
      }
      for (Index i = 0; i < left; ++i) rest = F::join(rest, joined[i]);
      total = Joined::join(total, static_cast<Total>(rest));
    }
    whole = Joined::join(whole, total);
  }
  return whole;
}

/// Reduces rows [begin, end) of the reduced box for `width` outputs side by side into totals.
template <Reduction R, class T, class Out>
TESSERA_INLINE inline void strip_chunk(const OffsetBox& reduced, const T* p, Index stride,
                                       Index width, Index begin, Index end,
                                       typename Accumulator<R, T, Out>::Total* totals) {
  using C = typename Accumulator<R, T, Out>::Part;
  using F = Fold<R, C>;
  using Total = typename Accumulator<R, T, Out>::Total;
  for (Index j = 0; j < width; ++j) totals[j] = Fold<R, Total>::start();
  if (begin >= end) return;
  OffsetBox rows = reduced;  // one more dimension, so that each element is a row
  rows.extent[rows.rank] = 1;
  rows.stride[rows.rank++] = 0;
  RowWalk walk(rows, begin);
  constexpr bool short_type = !std::is_same_v<T, ComputeType<T>>;
  C part[strip_width];
  T buffer[strip_width];
  ComputeType<T> wide[short_type ? 4 : 1][short_type ? strip_width : 1];
  for (Index r = begin; r < end;) {
    for (Index j = 0; j < width; ++j) part[j] = F::start();
    const Index stop = min_of(end, r + 16);
    for (; stride == 1 && r + 4 <= stop; r += 4) {
      const ComputeType<T>* row[4];
      for (int k = 0; k < 4; ++k, walk.next())
        row[k] = computed_row(p + walk.offset, width, wide[short_type ? k : 0]);
      const auto *a = row[0], *b = row[1], *c = row[2], *d = row[3];  // four streams from memory
      TESSERA_SIMD
      for (Index j = 0; j < width; ++j)
        part[j] = F::join(part[j], F::join(F::join(static_cast<C>(a[j]), static_cast<C>(b[j])),
                                           F::join(static_cast<C>(c[j]), static_cast<C>(d[j]))));
    }
    for (; r < stop; ++r, walk.next()) {
      const ComputeType<T>* row =
          computed_row(side_by_side(p + walk.offset, width, stride, buffer), width, wide[0]);
      TESSERA_SIMD
      for (Index j = 0; j < width; ++j) part[j] = F::join(part[j], static_cast<C>(row[j]));
    }
    TESSERA_SIMD
    for (Index j = 0; j < width; ++j)
      totals[j] = Fold<R, Total>::join(totals[j], static_cast<Total>(part[j]));
  }
}

}  // namespace tessera::detail
