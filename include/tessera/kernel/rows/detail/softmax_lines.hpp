// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The loops of kernel/rows/softmax.hpp: on the host by strips (softmax_strip.hpp), short lines and
/// half types in a buffer; on a device a line by each thread, or by each team where its elements
/// follow each other. Few long lines are cut (softmax_parts.hpp).
#include <limits>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/device/packs.hpp>
#include <tessera/kernel/device/row_teams.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/kernel/rows/detail/softmax_strip.hpp>

namespace tessera::detail {

template <class T> class SoftmaxParts;

/// On a device: a line whose elements follow each other. Its greatest element and its sum may be
/// known; the sum, the softmax, or both are wanted.
template <class T> struct SoftmaxRow {
  using C = ComputeType<T>;
  using Total = TotalType<C>;
  struct Found {
    C greatest;
    Total sum;
  };
  static constexpr int phases = 2;
  Index n;
  const T *from, *greatest;
  const C* sums;
  C* made_sums;
  T* to;
  bool logarithm;

  KOKKOS_FORCEINLINE_FUNCTION static C larger(C a, C b) { return a > b ? a : b; }
  template <int K>
  KOKKOS_FUNCTION Found find(Index line, Index lane, Index lanes, const Found& known) const {
    const T* const x = from + line * n;
    if constexpr (K == 0) {
      if (greatest != nullptr) return {static_cast<C>(greatest[line]), 0};
      Found found{-std::numeric_limits<C>::infinity(), 0};
      each_of_lane(x, n, lane, lanes,
                   [&](T e, Index) { found.greatest = larger(static_cast<C>(e), found.greatest); });
      return found;
    } else {
      Found found{known.greatest, 0};
      if (sums != nullptr) {
        if (lane == 0) found.sum = static_cast<Total>(sums[line]);
        return found;
      }
      found.sum = sum_of_lane<Total>(
          x, n, lane, lanes, [&](T e) { return exp_below(static_cast<C>(e) - known.greatest); });
      return found;
    }
  }
  template <int K> KOKKOS_FUNCTION static Found join(const Found& a, const Found& b) {
    if constexpr (K == 0)
      return {larger(a.greatest, b.greatest), 0};
    else
      return {a.greatest, a.sum + b.sum};
  }
  KOKKOS_FUNCTION void finish(Index line, Index lane, Index lanes, const Found& known) const {
    const C sum = static_cast<C>(known.sum);
    if (made_sums != nullptr && lane == 0) made_sums[line] = sum;
    if (to == nullptr) return;
    const C scale = logarithm ? log_of(sum) : 1 / sum;
    map_lane(from + line * n, to + line * n, n, lane, lanes, [&](T x, Index) {
      const C below = static_cast<C>(x) - known.greatest;
      return static_cast<T>(logarithm ? below - scale : exp_below(below) * scale);
    });
  }
};

/// Lines of elements T, and the largest element of each, unless that is still to be found.
template <class T> class SoftmaxLines {
 public:
  using C = ComputeType<T>;
  using Total = TotalType<C>;

  SoftmaxLines(const LocalScan& lines, const T* from, const T* greatest)
      : lines_(lines), from_(from), greatest_(greatest) {
    const Index block = saturating_mul(lines.n, lines.inner);
    if (kernels_on_host && block > 0 && block < width) batch_ = width / lines.inner;
    strips_ = kernels_on_host ? ceil_div(lines.inner, width) : lines.inner;
  }

  /// Writes the sum of each line's exponentials.
  void sum(const char* label, C* to) const {
    SoftmaxLines body = *this;
    body.made_sums_ = to;
    SoftmaxParts<T>::start(label, body);
  }
  /// Writes the softmax of each line, by its sum where that is known.
  void softmax(const char* label, bool logarithm, const C* sums, T* to) const {
    SoftmaxLines body = *this;
    body.logarithm_ = logarithm;
    body.sums_ = sums;
    body.to_ = to;
    SoftmaxParts<T>::start(label, body);
  }

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    if constexpr (kernels_on_host)
      with_wide_vectors<computes_much>([&]() TESSERA_INLINE {
        for (Index i = begin; i < end; ++i)
          if (batch_ > 0)
            blocks(i * batch_, min_of(batch_, lines_.outer - i * batch_));
          else
            strip(i / parts_ / strips_, i / parts_ % strips_ * width, i % parts_);
      });
    else
      for (Index i = begin; i < end; ++i) line(i / parts_, i % parts_);
  }

 private:
  template <class> friend class SoftmaxParts;
  static constexpr Index width = SoftmaxStrip::width, room = width * width;
  static constexpr C lowest = -std::numeric_limits<C>::infinity();

  LocalScan lines_;
  const T* from_;
  const T* greatest_;
  const C* sums_ = nullptr;
  T* to_ = nullptr;
  C* made_sums_ = nullptr;
  Index strips_;     // in a row of lines
  Index batch_ = 0;  // blocks of n x inner, if they are short, that are computed side by side
  bool logarithm_ = false;
  Index parts_ = 1;  // of each line
  T* greatest_parts_ =
      nullptr;  // where the largest element of each part goes; nothing else is done

  /// Launches all lines on a device, where the elements of each follow each other.
  void rows(const char* label) const {
    launch_rows<T>(label, lines_.outer, lines_.n,
                   SoftmaxRow<T>{lines_.n, from_, greatest_, sums_, made_sums_, to_, logarithm_});
  }
  /// Launches all lines, or all their parts.
  void start(const char* label) const {
    const Index each =
        saturating_mul(ceil_div(lines_.n, parts_), min_of(max_of(1, batch_) * lines_.inner, width));
    const Index count = batch_ > 0 ? ceil_div(lines_.outer, batch_) : lines_.outer * strips_;
    launch(label, count * parts_, max_of(1, 16384 / max_of(1, each)), *this);
  }

  /// Computes short blocks in a buffer, where all their lines lie side by side.
  TESSERA_INLINE void blocks(Index outer, Index count) const {
    const Index n = lines_.n, inner = lines_.inner, columns = count * inner;
    C buffer[room];
    const T* const x = from_ + outer * n * inner;
    const auto first = [&](Index j) TESSERA_INLINE { return j / inner * n * inner + j % inner; };
    for (Index j = 0; j < columns; ++j) {
      const T* const line = x + first(j);
      for (Index k = 0; k < n; ++k) buffer[k * columns + j] = static_cast<C>(line[k * inner]);
    }
    compute(SoftmaxStrip{n, columns, columns, 1}, outer * inner, outer * inner, buffer,
            to_ == nullptr ? nullptr : buffer);
    if (to_ == nullptr) return;
    T* const y = to_ + outer * n * inner;
    for (Index j = 0; j < columns; ++j) {
      T* const line = y + first(j);
      for (Index k = 0; k < n; ++k) line[k * inner] = static_cast<T>(buffer[k * columns + j]);
    }
  }

  /// Computes the lines from `column` on, as many as lie side by side; of half types in a buffer,
  /// if they fit.
  TESSERA_INLINE void strip(Index outer, Index column, Index part) const {
    const Index inner = lines_.inner, columns = min_of(width, inner - column);
    const Index rows = ceil_div(lines_.n, parts_), row = min_of(lines_.n, part * rows);
    const Index n = min_of(rows, lines_.n - row);
    const Index group = columns < inner ? 1 : max_of(1, min_of(width / columns, n));
    const Index first = (outer * lines_.n + row) * inner + column;
    const Index line = outer * inner + column, made = part * lines_.outer * inner + line;
    const T* const x = from_ + first;
    T* const y = to_ == nullptr ? nullptr : to_ + first;
    if constexpr (!std::is_same_v<T, C>)
      if (n * columns <= room)
        return buffered(SoftmaxStrip{n, inner, columns, group}, line, made, x, y);
    compute(SoftmaxStrip{n, inner, columns, group}, line, made, x, y);
  }
  TESSERA_INLINE void buffered(const SoftmaxStrip& rows, Index line, Index made, const T* x,
                               T* y) const {
    const Index n = rows.n, inner = rows.inner, columns = rows.columns;
    // All elements are one row where they follow each other.
    const Index many = columns == inner ? 1 : n, row = n * columns / max_of(1, many);
    C buffer[room];
    for (Index k = 0; k < many; ++k) convert_row(x + k * inner, row, buffer + k * row);
    compute(SoftmaxStrip{n, columns, columns, rows.group}, line, made, buffer,
            y == nullptr ? nullptr : buffer);
    for (Index k = 0; y != nullptr && k < many; ++k)
      convert_row(buffer + k * row, row, y + k * inner);
  }

  /// Computes lines of elements E, or a part of each; the first of them is `line` of all, and
  /// `made` is its place in what is made of parts. Exponentials that need no rounding are kept in y
  /// until their sum is known.
  template <class E>
  TESSERA_INLINE void compute(const SoftmaxStrip& rows, Index line, Index made, const E* x,
                              E* y) const {
    C greatest[width], sum[width];
    find_greatest(rows, line, x, greatest);
    if (greatest_parts_ != nullptr) {
      for (Index j = 0; j < rows.columns; ++j)
        greatest_parts_[made + j] = static_cast<T>(greatest[j]);
      return;
    }
    const bool stores = std::is_same_v<E, C> && y != nullptr && sums_ == nullptr && !logarithm_;
    if (sums_ != nullptr)
      for (Index j = 0; j < rows.columns; ++j) sum[j] = sums_[line + j];
    else if (stores)
      add<true>(rows, x, y, greatest, sum);
    else
      add<false>(rows, x, y, greatest, sum);
    if (made_sums_ != nullptr)
      for (Index j = 0; j < rows.columns; ++j) made_sums_[made + j] = sum[j];
    if (y == nullptr) return;
    for (Index j = 0; j < rows.columns; ++j) sum[j] = logarithm_ ? log_of(sum[j]) : 1 / sum[j];
    rows.spread(sum);
    finish(rows, x, y, stores, greatest, sum);
  }

  /// Returns elements that can be read as C: in place, or widened into `buffer`.
  template <class E>
  TESSERA_INLINE static const auto* readable(const E* x, Index lanes, C* buffer) {
    if constexpr (std::is_same_v<E, half>)
      return computed_row(x, lanes, buffer);
    else  // in place: writes to a buffer would delay reads of rows 4 KiB apart
      return readable_row(x, lanes, static_cast<ReadType<E>*>(nullptr));
  }
  /// Writes made(j) to lane j of y, rounded if it is of a half type.
  template <class E, class Lanes, class Make>
  TESSERA_INLINE static void write(E* y, Lanes lanes, const Make& made) {
    if constexpr (std::is_same_v<E, C>) {
      TESSERA_SIMD
      for (Index j = 0; j < lanes; ++j) y[j] = made(j);
    } else {
      C buffer[width];
      TESSERA_SIMD
      for (Index j = 0; j < lanes; ++j) buffer[j] = made(j);
      convert_row(buffer, lanes, y);
    }
  }

  /// A NaN is not found; it comes out in the sum.
  template <class E>
  TESSERA_INLINE void find_greatest(const SoftmaxStrip& rows, Index line, const E* x,
                                    C* greatest) const {
    if (greatest_ != nullptr) {
      for (Index j = 0; j < rows.columns; ++j) greatest[j] = static_cast<C>(greatest_[line + j]);
    } else {
      for (Index j = 0; j < rows.lanes(); ++j) greatest[j] = lowest;
      C buffer[width];
      rows.each([&](Index at, auto lanes) TESSERA_INLINE {
        const auto* const row = readable(x + at, lanes, buffer);
        TESSERA_SIMD
        for (Index j = 0; j < lanes; ++j) greatest[j] = larger(static_cast<C>(row[j]), greatest[j]);
      });
      rows.fold(greatest, [](C a, C b) TESSERA_INLINE { return larger(a, b); });
    }
    rows.spread(greatest);
  }
  KOKKOS_FORCEINLINE_FUNCTION static C larger(C a, C b) { return a > b ? a : b; }

  /// Adds the exponentials of a line up, in C for sixteen rows and then in Total; `Stores` keeps
  /// them too.
  template <bool Stores, class E>
  TESSERA_INLINE void add(const SoftmaxStrip& rows, const E* x, E* y, const C* greatest,
                          C* sum) const {
    C part[width];
    Total total[width];
    for (Index j = 0; j < rows.lanes(); ++j) part[j] = 0;
    for (Index j = 0; j < rows.lanes(); ++j) total[j] = 0;
    const auto carry = [&]() TESSERA_INLINE {
      TESSERA_SIMD
      for (Index j = 0; j < rows.lanes(); ++j) {
        total[j] += static_cast<Total>(part[j]);
        part[j] = 0;
      }
    };
    int visits = 0;
    C buffer[width];
    rows.each([&](Index at, auto lanes) TESSERA_INLINE {
      const auto* const row = readable(x + at, lanes, buffer);
      TESSERA_SIMD
      for (Index j = 0; j < lanes; ++j) {
        const C e = exp_below(static_cast<C>(row[j]) - greatest[j]);
        if constexpr (Stores) y[at + j] = static_cast<E>(e);
        part[j] += e;
      }
      if (++visits % 16 == 0) carry();
    });
    carry();
    rows.fold(total, [](Total a, Total b) TESSERA_INLINE { return a + b; });
    for (Index j = 0; j < rows.columns; ++j) sum[j] = static_cast<C>(total[j]);
  }

  /// `sum` holds logarithms where these are wanted, else inverses, which take less than divisions.
  template <class E>
  TESSERA_INLINE void finish(const SoftmaxStrip& rows, const E* x, E* y, bool stored,
                             const C* greatest, const C* sum) const {
    C buffer[width];
    rows.each([&](Index at, auto lanes) TESSERA_INLINE {
      const auto* const row = readable(stored ? y + at : x + at, lanes, buffer);
      if (stored)
        write(y + at, lanes,
              [&](Index j) TESSERA_INLINE { return static_cast<C>(row[j]) * sum[j]; });
      else if (logarithm_)
        write(y + at, lanes, [&](Index j) TESSERA_INLINE {
          return static_cast<C>(row[j]) - greatest[j] - sum[j];
        });
      else
        write(y + at, lanes, [&](Index j) TESSERA_INLINE {
          return exp_below(static_cast<C>(row[j]) - greatest[j]) * sum[j];
        });
    });
  }

  /// A part of one line, by one thread of a device: every parts_-th element.
  KOKKOS_FUNCTION void line(Index i, Index part) const {
    const Index first = i / strips_ * lines_.n * lines_.inner + i % strips_;
    const Index made = part * lines_.outer * lines_.inner + i;
    const auto at = [&](Index k) { return static_cast<C>(from_[first + k * lines_.inner]); };
    C greatest = greatest_ == nullptr ? lowest : static_cast<C>(greatest_[i]);
    if (greatest_ == nullptr)
      for (Index k = part; k < lines_.n; k += parts_) greatest = larger(at(k), greatest);
    if (greatest_parts_ != nullptr) {
      greatest_parts_[made] = static_cast<T>(greatest);
      return;
    }
    C sum = 0;
    if (sums_ == nullptr) {
      Total total = 0;
      for (Index k = part; k < lines_.n;) {  // in blocks, whose errors do not add up
        Total some = 0;
        for (int b = 0; b < 256 && k < lines_.n; ++b, k += parts_)
          some += static_cast<Total>(exp_below(at(k) - greatest));
        total += some;
      }
      sum = static_cast<C>(total);
    } else {
      sum = sums_[i];
    }
    if (made_sums_ != nullptr) made_sums_[made] = sum;
    if (to_ == nullptr) return;
    const C scale = logarithm_ ? log_of(sum) : 1 / sum;
    for (Index k = part; k < lines_.n; k += parts_) {
      const C below = at(k) - greatest;
      to_[first + k * lines_.inner] =
          static_cast<T>(logarithm_ ? below - scale : exp_below(below) * scale);
    }
  }
};

}  // namespace tessera::detail
