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
#include <tessera/kernel/detail/join_apart.hpp>
#include <tessera/kernel/detail/reduce_shape.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

inline constexpr Index line_chunk_elements = 65536;
inline constexpr Index strip_chunk_rows = 4096;
/// The most outputs of a strip. Long rows of a strip are read faster, and half types are widened to
/// four rows of float, which stay in the first cache.
template <class T> inline constexpr Index strip_width = std::is_same_v<T, half> ? 512 : 2048;

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

template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
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

/// Reduces chunk c of the line that starts at p. Vectors of 32 bytes are joined in the order of
/// memory: CPUs fetch lines of which the second half is read right after the first by a third
/// faster (measured on an AMD EPYC 9004). Where there are fewer than 256 elements, quarters of 64
/// are joined.
template <Reduction R, class T, class Out>
TESSERA_INLINE inline typename Accumulator<R, T, Out>::Total line_chunk(const OffsetBox& reduced,
                                                                        const T* line, Index c) {
  using C = typename Accumulator<R, T, Out>::Part;
  using F = Fold<R, C>;
  using Total = typename Accumulator<R, T, Out>::Total;
  using Joined = Fold<R, Total>;
  constexpr Index block = 256, lanes = is_half_type<T> ? 16 : max_of(1, 32 / sizeof(C));
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
    Index done = 0;
#if defined(TESSERA_AVX512)
    if constexpr (is_half_type<T>)
      if (rows.stride == 1 && has_avx512())
        for (; done + block <= rows.row; done += block) {
          C few[short_lanes];
          join_short<F, block / short_lanes>(from + done, few);
          total = Joined::join(total, static_cast<Total>(join_apart<F, C, short_lanes>(few, 1)));
        }
#endif
    for (; done < rows.row; done += block) {
      const Index count = min_of(block, rows.row - done);
      const auto* p = readable_row(
          side_by_side(from + done * rows.stride, count, rows.stride, buffer), count, wide);
      C rest = F::start(), joined[block / 4];
      if constexpr (R == Reduction::sum && ComplexElement<T>)
        if (count == block) {
          total = Joined::join(total, static_cast<Total>(sum_complex<block>(p)));
          continue;
        }
      if (sizeof(C) <= 8 && count == block) {  // all loops of constant length
        C few[lanes];
        for (Index group = 0; group < block; group += 8 * lanes) {
          TESSERA_SIMD
          for (Index j = 0; j < lanes; ++j)
            joined[group / 8 + j] = join_apart<F, C, 8>(p + group + j, lanes);
        }
        TESSERA_SIMD
        for (Index j = 0; j < lanes; ++j)
          few[j] = join_apart<F, C, block / 8 / lanes>(joined + j, lanes);
        total = Joined::join(total, static_cast<Total>(join_apart<F, C, lanes>(few, 1)));
        continue;
      }
      // Quarters of groups of 64 elements, so that memory is read in order, and of what is left.
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
  alignas(64) C part[strip_width<T>];
  alignas(64) T buffer[strip_width<T>];
  alignas(64) ReadType<T> wide[widened ? 4 : 1][widened ? strip_width<T> : 1];
  enum { no_zeros, no_nans, any } seen = is_extreme<R, C> ? no_zeros : any;
  for (Index r = begin; r < end;) {
    for (Index j = 0; j < width; ++j) part[j] = F::start();
    const Index stop = min_of(end, r + 16), top = r;
    bool again = false;  // from the first of the 16 rows on
    if constexpr (!widened && !is_extreme<R, C>)
      for (; stride == 1 && r + 8 <= stop; r += 8) {  // eight streams, joined by four
        const ReadType<T>* row[8];
        for (int k = 0; k < 8; ++k, walk.next())
          row[k] = readable_row(p + walk.offset, width, wide[0]);
        const auto four = [&](int k, Index j) TESSERA_INLINE {
          return F::join(F::join(static_cast<C>(row[k][j]), static_cast<C>(row[k + 1][j])),
                         F::join(static_cast<C>(row[k + 2][j]), static_cast<C>(row[k + 3][j])));
        };
        TESSERA_SIMD
        for (Index j = 0; j < width; ++j)
          part[j] = F::join(F::join(part[j], four(0, j)), four(4, j));
      }
    for (; stride == 1 && r + 4 <= stop; r += 4) {
      const ReadType<T>* row[4];
      for (int k = 0; k < 4; ++k, walk.next())
        row[k] = readable_row(p + walk.offset, width, wide[widened ? k : 0]);
      const auto *a = row[0], *b = row[1], *c = row[2], *d = row[3];  // four streams from memory
      if constexpr (is_extreme<R, C>)
        if (seen != any) {
          // The greater of two floats that are no NaN, or the lesser. Equal ones differ in the
          // signs of zeros alone, of which `and` keeps +0, and `or` -0.
          const auto extreme = [](C u, C v, bool zeros) TESSERA_INLINE {
            constexpr bool least = R == Reduction::min;
            const C one = (least ? u < v : u > v) ? u : v;
            if (!zeros) return one;
            const C other = (least ? v < u : v > u) ? v : u;
            const auto s = Kokkos::bit_cast<BitsOf<C>>(one), t = Kokkos::bit_cast<BitsOf<C>>(other);
            return Kokkos::bit_cast<C>(least ? s | t : s & t);
          };
          BitsOf<C> nans = 0;
          const auto join_rows = [&](bool zeros) TESSERA_INLINE {
            TESSERA_SIMD_OR(nans)
            for (Index j = 0; j < width; ++j) {
              const C w = static_cast<C>(a[j]), x = static_cast<C>(b[j]), y = static_cast<C>(c[j]),
                      z = static_cast<C>(d[j]);
              nans |= BitsOf<C>{std::isunordered(w, x)} | BitsOf<C>{std::isunordered(y, z)};
              part[j] = extreme(part[j], extreme(extreme(w, x, zeros), extreme(y, z, zeros), zeros),
                                zeros);
            }
          };
          if (seen == no_zeros)  // each is compiled by itself
            join_rows(false);
          else
            join_rows(true);
          if (nans == 0) continue;
          seen = any;
          again = true;
          break;
        }
      TESSERA_SIMD
      for (Index j = 0; j < width; ++j)
        part[j] = F::join(part[j], F::join(F::join(static_cast<C>(a[j]), static_cast<C>(b[j])),
                                           F::join(static_cast<C>(c[j]), static_cast<C>(d[j]))));
    }
    for (; r < stop && !again; ++r, walk.next()) {
      const auto* row =
          readable_row(side_by_side(p + walk.offset, width, stride, buffer), width, wide[0]);
      TESSERA_SIMD
      for (Index j = 0; j < width; ++j) part[j] = F::join(part[j], static_cast<C>(row[j]));
    }
    if (seen == no_zeros) {  // a zero may have the wrong sign
      BitsOf<C> zeros = 0;
      TESSERA_SIMD_OR(zeros)
      for (Index j = 0; j < width; ++j) zeros |= BitsOf<C>{part[j] == C{}};
      if (zeros != 0) {
        seen = no_nans;
        again = true;
      }
    }
    if (again) {
      r = top;
      walk.move_to(top);
      continue;
    }
    TESSERA_SIMD
    for (Index j = 0; j < width; ++j)
      totals[j] = Fold<R, Total>::join(totals[j], static_cast<Total>(part[j]));
  }
}

}  // namespace tessera::detail
