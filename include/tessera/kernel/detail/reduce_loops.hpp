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
#include <bit>
#include <cmath>
#include <cstdint>

#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/extreme_row.hpp>
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

/// A bfloat16 that is read without a look for NaN: arithmetic and the last rounding make it quiet.
struct BrainBits {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }  // NOLINT
};
// The type as which a loop reads elements T: half is widened before, bfloat16 where it is read.
template <class T> T read_type(const T*);
float read_type(const half*);
BrainBits read_type(const bfloat16*);
template <class T> using ReadType = decltype(read_type(static_cast<const T*>(nullptr)));
template <class T> const T* readable_row(const T* from, Index, T*) { return from; }
inline const float* readable_row(const half* from, Index n, float* wide) {
  return computed_row(from, n, wide);
}
inline const BrainBits* readable_row(const bfloat16* from, Index, BrainBits*) {
  return reinterpret_cast<const BrainBits*>(from);
}

template <Reduction R, class C>
inline constexpr bool is_extreme = std::is_floating_point_v<C> &&
                                   (R == Reduction::max || R == Reduction::min);

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
  alignas(64) T buffer[block];
  alignas(64) ReadType<T> wide[block];
  Total whole = Joined::start();
  if (reduced.size == 0) return whole;
  const LineRows rows = line_rows(reduced, c);
  RowWalk walk(reduced, rows.begin);
  for (Index at = rows.begin; at < rows.end; ++at, walk.next()) {
    const T* const from = line + walk.offset + rows.first;
    Total total = Joined::start();
    if constexpr (is_extreme<R, C>)
      if (C found; rows.stride == 1 && extreme_row(from, rows.row, R == Reduction::min, found)) {
        whole = Joined::join(whole, static_cast<Total>(found));
        continue;
      }
    for (Index done = 0; done < rows.row; done += block) {
      const Index count = min_of(block, rows.row - done);
      const auto* p = readable_row(
          side_by_side(from + done * rows.stride, count, rows.stride, buffer), count, wide);
      C rest = F::start(), joined[block / 4];
      // Quarters of groups of 64 elements, so that memory is read in order, and of what is left.
      if (sizeof(C) <= 4 && count == block) {  // all loops of constant length
        for (Index group = 0; group < block; group += 64) {
          const auto* const x = p + group;
          C* const to = joined + group / 4;
          TESSERA_SIMD
          for (Index j = 0; j < 16; ++j)
            to[j] = F::join(F::join(static_cast<C>(x[j]), static_cast<C>(x[16 + j])),
                            F::join(static_cast<C>(x[32 + j]), static_cast<C>(x[48 + j])));
        }
        C few[16], last[4];
        TESSERA_SIMD
        for (Index j = 0; j < 16; ++j)
          few[j] =
              F::join(F::join(joined[j], joined[16 + j]), F::join(joined[32 + j], joined[48 + j]));
        TESSERA_SIMD
        for (Index j = 0; j < 4; ++j)
          last[j] = F::join(F::join(few[j], few[4 + j]), F::join(few[8 + j], few[12 + j]));
        rest = F::join(rest, F::join(F::join(last[0], last[1]), F::join(last[2], last[3])));
        total = Joined::join(total, static_cast<Total>(rest));
        continue;
      }
      for (Index i = count / 4 * 4; i < count; ++i) rest = F::join(rest, static_cast<C>(p[i]));
      Index left = 0;
      for (Index group = 0; group < count; group += 64) {
        const Index quarter = min_of(64, count - group) / 4;
        const auto *first = p + group, *second = first + quarter, *third = second + quarter,
                   *fourth = third + quarter;
        C* const to = joined + left;
        const auto join_four = [&](Index j) TESSERA_INLINE {
          to[j] = F::join(F::join(static_cast<C>(first[j]), static_cast<C>(second[j])),
                          F::join(static_cast<C>(third[j]), static_cast<C>(fourth[j])));
        };
        if (quarter == 16) {  // a loop of constant length
          TESSERA_SIMD
          for (Index j = 0; j < 16; ++j) join_four(j);
        } else {
          for (Index j = 0; j < quarter; ++j) join_four(j);
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
  constexpr bool widened = std::is_same_v<T, half>;
  alignas(64) C part[strip_width];
  alignas(64) T buffer[strip_width];
  alignas(64) ReadType<T> wide[widened ? 4 : 1][widened ? strip_width : 1];
  bool plain = is_extreme<R, C>;  // until there is a NaN
  for (Index r = begin; r < end;) {
    for (Index j = 0; j < width; ++j) part[j] = F::start();
    const Index stop = min_of(end, r + 16);
    const Index top = r;
    for (; stride == 1 && r + 4 <= stop; r += 4) {
      const ReadType<T>* row[4];
      for (int k = 0; k < 4; ++k, walk.next())
        row[k] = readable_row(p + walk.offset, width, wide[widened ? k : 0]);
      const auto *a = row[0], *b = row[1], *c = row[2], *d = row[3];  // four streams from memory
      if constexpr (is_extreme<R, C>)
        if (plain) {
          // The greater of two floats that are no NaN, or the lesser; equal ones differ in the
          // signs of zeros alone, of which `and` keeps +0, and `or` -0.
          const auto extreme = [](C u, C v) TESSERA_INLINE {
            constexpr bool least = R == Reduction::min;
            const C s = (least ? u < v : u > v) ? u : v, t = (least ? v < u : v > u) ? v : u;
            const auto first = Kokkos::bit_cast<BitsOf<C>>(s),
                       second = Kokkos::bit_cast<BitsOf<C>>(t);
            return Kokkos::bit_cast<C>(least ? first | second : first & second);
          };
          BitsOf<C> nans = 0;
          TESSERA_SIMD_OR(nans)
          for (Index j = 0; j < width; ++j) {
            const C w = static_cast<C>(a[j]), x = static_cast<C>(b[j]), y = static_cast<C>(c[j]),
                    z = static_cast<C>(d[j]);
            nans |= BitsOf<C>{std::isunordered(w, x)} | BitsOf<C>{std::isunordered(y, z)};
            part[j] = extreme(part[j], extreme(extreme(w, x), extreme(y, z)));
          }
          plain = nans == 0;
          if (plain) continue;
          r = top - 4;  // from the first of the 16 rows on
          walk.move_to(top);
          for (Index j = 0; j < width; ++j) part[j] = F::start();
          continue;
        }
      TESSERA_SIMD
      for (Index j = 0; j < width; ++j)
        part[j] = F::join(part[j], F::join(F::join(static_cast<C>(a[j]), static_cast<C>(b[j])),
                                           F::join(static_cast<C>(c[j]), static_cast<C>(d[j]))));
    }
    for (; r < stop; ++r, walk.next()) {
      const auto* row =
          readable_row(side_by_side(p + walk.offset, width, stride, buffer), width, wide[0]);
      TESSERA_SIMD
      for (Index j = 0; j < width; ++j) part[j] = F::join(part[j], static_cast<C>(row[j]));
    }
    TESSERA_SIMD
    for (Index j = 0; j < width; ++j)
      totals[j] = Fold<R, Total>::join(totals[j], static_cast<Total>(part[j]));
  }
}

}  // namespace tessera::detail
