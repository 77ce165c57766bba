// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Host loops of means and variances. Elements are read once: of a piece of a line, or of eight
/// rows of lines side by side, the distances to a number near its mean are summed, and their
/// squares. Pieces are joined by the formula of Chan, Golub and LeVeque, "Updating formulae and a
/// pairwise algorithm for computing sample variances" (1979): digits do not cancel.
///
///     line_moments<float, false>(shape.reduced, from, 0, {})
///
/// Laws: those of reduce_loops.hpp, which cuts lines and strips into the same chunks.
#include <type_traits>

#include <tessera/kernel/detail/reduce_loops.hpp>
#include <tessera/kernel/functions/complex.hpp>

namespace tessera::detail {

/// c, or 0 where it is no finite number.
template <class C> KOKKOS_FORCEINLINE_FUNCTION C finite_or_zero(C c) {
  if constexpr (ComplexElement<C>)
    return c.re - c.re == 0 && c.im - c.im == 0 ? c : C{};
  else
    return c - c == 0 ? c : C{};
}
/// Returns what the elements of a line are counted from: its first element. So no digits are lost
/// where means are large beside deviations.
template <class T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> base_of(const T* line) {
  return finite_or_zero(static_cast<ComputeType<T>>(*line));
}

/// The number of some elements of a line, the sum of their distances to its base, and the sum of
/// their squared distances to their own mean; or of squared distances alone, to another mean, which
/// are only added.
template <class Sum> struct Moments {
  double count = 0;
  Sum sum{};
  double squares = 0;

  void join(const Moments& b, bool about) {
    if (!about && count > 0 && b.count > 0) {
      const Sum apart = times(b.sum, 1 / b.count) - times(sum, 1 / count);
      squares += squared_size(apart) * (count * b.count / (count + b.count));
    }
    squares += b.squares;
    sum = sum + b.sum;
    count += b.count;
  }
  /// The mean and the variance of a line of 1 / over_n elements.
  template <class C> C mean(C base, double over_n) const {
    return static_cast<C>(static_cast<Sum>(base) + times(sum, over_n));
  }
  double variance(double over_n) const { return squares * over_n; }
};

/// Returns the sum of `count` values at(i), at(i + apart), ... in pairs.
template <Index count, class At>
TESSERA_INLINE inline auto sum_in_pairs(const At& at, Index i, Index apart) {
  if constexpr (count == 1)
    return at(i);
  else
    return sum_in_pairs<count / 2>(at, i, apart) +
           sum_in_pairs<count / 2>(at, i + count / 2 * apart, apart);
}

/// Distances to a number, and their squares, summed.
template <class C> struct Distances {
  using Square = PartType<C>;
  C sum{};
  Square squares{};
  static KOKKOS_FORCEINLINE_FUNCTION Distances of(C d) { return {d, squared_size(d)}; }
  friend KOKKOS_FORCEINLINE_FUNCTION Distances operator+(Distances a, Distances b) {
    return {a.sum + b.sum, a.squares + b.squares};
  }
};
/// The distances of values that lie side by side.
template <class C, Index lanes> struct DistanceLanes {
  C sum[lanes];
  typename Distances<C>::Square squares[lanes];
  TESSERA_INLINE void put(Index j, Distances<C> d) {
    sum[j] = d.sum;
    squares[j] = d.squares;
  }
  TESSERA_INLINE Distances<C> operator()(Index j) const { return {sum[j], squares[j]}; }
};

/// The most elements of a piece: 8 KiB of floats.
inline constexpr Index moments_piece = 2048;

/// Returns the distances of n elements to `centre`, n at most moments_piece: lanes are summed
/// apart, eight vectors at a time, and joined at the end.
template <class Sum, class C, class E>
TESSERA_INLINE inline Moments<Sum> distances(const E* row, Index n, const C centre) {
  using D = Distances<C>;
  constexpr Index lanes = ComplexElement<C> ? 4 : 64 / sizeof(C), group = 8 * lanes;
  const auto at = [row, centre](Index i)
                      TESSERA_INLINE { return D::of(static_cast<C>(row[i]) - centre); };
  DistanceLanes<C, lanes> lane{};
  const Index groups = n / group * group, vectors = n / lanes * lanes;
  for (Index i = 0; i < groups; i += group) {
    TESSERA_SIMD
    for (Index j = 0; j < lanes; ++j) lane.put(j, lane(j) + sum_in_pairs<8>(at, i + j, lanes));
  }
  for (Index i = groups; i < vectors; i += lanes) {
    TESSERA_SIMD
    for (Index j = 0; j < lanes; ++j) lane.put(j, lane(j) + at(i + j));
  }
  D rest;
  for (Index i = vectors; i < n; ++i) rest = rest + at(i);
  const D all = sum_in_pairs<lanes>(lane, 0, 1) + rest;
  return {static_cast<double>(n), static_cast<Sum>(all.sum), static_cast<double>(all.squares)};
}

/// The state of a line that is read piece by piece. Distances are counted from another mean, if one
/// is given, or from the mean of what came before, or of the first elements. (It need not be near:
/// what a distant one loses is small beside the variance that the distance makes.)
template <class T, bool About> struct LineMoments {
  using C = ComputeType<T>;
  using Sum = TotalType<T>;
  C base;
  Moments<Sum> whole{};

  /// Takes n elements that follow each other, at most moments_piece.
  TESSERA_INLINE void take(const T* p, Index n) {
    constexpr Index few = 128;
    alignas(64) ReadType<T> wide[moments_piece];
    const auto* const row = readable_row(p, n, wide);
    if constexpr (About) {
      whole.squares += distances<Sum, C>(row, n, base).squares;
    } else {
      Moments<Sum> before = whole;
      if (whole.count == 0) before = distances<Sum, C>(row, min_of(few, n), base);
      const C away = finite_or_zero(static_cast<C>(times(before.sum, 1 / before.count)));
      const C centre = base + away;
      Moments<Sum> made = distances<Sum, C>(row, n, centre);
      const double less = squared_size(made.sum) / made.count;
      // Infinities have no variance.
      made.squares = made.squares > less || !(less - less == 0) ? made.squares - less : 0;
      made.sum += times(static_cast<Sum>(centre) - static_cast<Sum>(base), made.count);
      whole.join(made, false);
    }
  }
  /// Takes n elements that follow each other, piece by piece.
  TESSERA_INLINE void take_row(const T* p, Index n) {
    for (Index i = 0; i < n; i += moments_piece) take(p + i, min_of(moments_piece, n - i));
  }
};

/// Returns the moments of chunk c of the line that starts at p. Short rows are collected.
template <class T, bool About>
TESSERA_INLINE inline Moments<TotalType<T>> line_moments(const OffsetBox& reduced, const T* line,
                                                         Index c, ComputeType<T> base) {
  LineMoments<T, About> made{base};
  if (reduced.size == 0) return made.whole;
  alignas(64) T collected[moments_piece];
  const LineRows rows = line_rows(reduced, c);
  const bool alone = rows.end - rows.begin == 1;
  RowWalk walk(reduced, rows.begin);
  Index held = 0;
  const auto finish = [&]() TESSERA_INLINE {
    if (held > 0) made.take(collected, held);
    held = 0;
  };
  for (Index at = rows.begin; at < rows.end; ++at, walk.next()) {
    const T* const from = line + walk.offset + rows.first;
    for (Index done = 0; done < rows.row;) {
      const Index left = rows.row - done;
      if (rows.stride == 1 && held == 0 && (left >= moments_piece || alone)) {
        const Index over = alone ? 0 : left % moments_piece;
        made.take_row(from + done, left - over);
        done += left - over;
        continue;
      }
      const Index n = min_of(moments_piece - held, left);
      for (Index i = 0; i < n; ++i) collected[held + i] = from[(done + i) * rows.stride];
      done += n;
      held += n;
      if (held == moments_piece) finish();
    }
  }
  finish();
  return made.whole;
}

/// The most lines of a strip, and the rows of it that are read together.
inline constexpr Index moments_strip = 512, moments_rows = 8;

/// Writes the moments of rows [begin, end) of the reduced box for `width` lines side by side.
template <class T, bool About>
TESSERA_INLINE inline void strip_moments(const OffsetBox& reduced, const T* p, Index stride,
                                         Index width, Index begin, Index end,
                                         const ComputeType<T>* about, Moments<TotalType<T>>* made) {
  using C = ComputeType<T>;
  using Sum = TotalType<T>;
  using D = Distances<C>;
  if (begin >= end) {  // an empty block has no memory
    for (Index j = 0; j < width; ++j) made[j] = {};
    return;
  }
  OffsetBox rows = reduced;  // one more dimension, so that each element is a row
  rows.extent[rows.rank] = 1;
  rows.stride[rows.rank++] = 0;
  constexpr bool widened = std::is_same_v<T, half>;
  alignas(64) C base[moments_strip];
  alignas(64) Sum sum[moments_strip];
  alignas(64) double squares[moments_strip];
  alignas(64) T gathered[moments_rows][moments_strip];
  alignas(64) ReadType<T> wide[widened ? moments_rows : 1][widened ? moments_strip : 1];
  for (Index j = 0; j < width; ++j) {
    sum[j] = Sum{};
    squares[j] = 0;
    base[j] = !About ? base_of(p + j * stride) : about == nullptr ? C{} : about[j];
  }
  RowWalk walk(rows, begin);
  // Joins `count` rows, as LineMoments does.
  const auto join = [&](auto count, Index before) TESSERA_INLINE {
    constexpr Index n = decltype(count)::value;
    const ReadType<T>* row[n];
    for (Index r = 0; r < n; ++r, walk.next())
      row[r] = readable_row(side_by_side(p + walk.offset, width, stride, gathered[r]), width,
                            wide[widened ? r : 0]);
    const double over = 1.0 / n, over_before = before > 0 ? 1 / static_cast<double>(before) : 0;
    const double weight = static_cast<double>(before) * n / static_cast<double>(before + n);
    TESSERA_SIMD
    for (Index j = 0; j < width; ++j) {
      const Sum mean = times(sum[j], over_before);
      const C centre = About ? base[j] : base[j] + finite_or_zero(static_cast<C>(mean));
      const D few = sum_in_pairs<n>(
          [&](Index r) TESSERA_INLINE { return D::of(static_cast<C>(row[r][j]) - centre); }, 0, 1);
      squares[j] += static_cast<double>(few.squares);
      if constexpr (!About) {
        const Sum away = static_cast<Sum>(centre) - static_cast<Sum>(base[j]);
        const Sum part = static_cast<Sum>(few.sum);
        const double less = squared_size(part) * over;
        squares[j] += squared_size(times(part, over) + away - mean) * weight - less;
        sum[j] = sum[j] + part + times(away, double{n});
      }
    }
  };
  Index at = begin;
  for (; at + moments_rows <= end; at += moments_rows)
    join(std::integral_constant<Index, moments_rows>{}, at - begin);
  for (; at < end; ++at) join(std::integral_constant<Index, 1>{}, at - begin);
  for (Index j = 0; j < width; ++j)
    made[j] = {static_cast<double>(end - begin), sum[j],
               About || squares[j] > 0 || !(squares[j] == squares[j]) ? squares[j] : 0};
}

}  // namespace tessera::detail
