// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running joins along contiguous lines on the host: four lines side by side, so that a join need
/// not wait for the one before it. Few long lines are cut into pieces, whose totals are known
/// before the pieces are run, so that threads share a line.
///
///     scan_rows("tessera::scan", join, {.outer = 2, .n = 3}, from, earlier, to);
///
/// Laws: the bits depend only on the shape.
#include <memory>
#include <type_traits>
#include <utility>

#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/launch.hpp>

namespace tessera::detail {

template <class Join, class T, class Out> struct ScanRows {
  using Total = typename Join::Total;
  static constexpr Index side = 4;
  static constexpr bool converts = std::is_same_v<T, Out> && !std::is_same_v<T, ComputeType<T>> &&
                                   std::is_floating_point_v<Total>;
  Join join;
  LocalScan work;
  Index length, in_line;  // of a piece; pieces in a line
  const T* from;
  Out* to;              // or null: totals alone
  const Total* starts;  // of the pieces, or null: the join's own
  Total* totals;        // of the pieces, or null

  Index pieces() const { return work.outer * in_line; }
  /// An index is a group of pieces.
  void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index first = i * side, last = min_of(pieces(), first + side);
      bool same = last - first == side;
      for (Index p = first; p < last; ++p) same = same && length_of(p) == length_of(first);
      if (same)
        together(std::make_integer_sequence<Index, side>{}, first);
      else
        for (Index p = first; p < last; ++p) together(std::integer_sequence<Index, 0>{}, p);
    }
  }

 private:
  Index length_of(Index piece) const { return min_of(length, work.n - piece % in_line * length); }
  /// Runs along the pieces first + J. (Each J is written out, so that totals stay in registers
  /// without loops that only -O3 unrolls.)
  template <Index... J> void together(std::integer_sequence<Index, J...>, Index first) const {
    const Index n = length_of(first), step = work.reverse ? -1 : 1;
    const T* const x[] = {from + start_of(first + J)...};
    Out* const y[] = {to + (to == nullptr ? 0 : start_of(first + J))...};
    Total total[] = {starts == nullptr ? join.start() : starts[first + J]...};
    Index at = work.reverse ? n - 1 : 0;
    if constexpr (converts)
      in_blocks<J...>(total, n, x, y);
    else if (to == nullptr)
      for (Index k = 0; k < n; ++k, at += step)
        ((total[J] = join(total[J], static_cast<Total>(x[J][at]))), ...);
    else if (work.exclusive)
      for (Index k = 0; k < n; ++k, at += step) (put_before(total[J], x[J][at], y[J][at]), ...);
    else
      for (Index k = 0; k < n; ++k, at += step)
        ((y[J][at] = static_cast<Out>(total[J] = join(total[J], static_cast<Total>(x[J][at])))),
         ...);
    if (totals != nullptr) ((totals[first + J] = total[J]), ...);
  }
  /// Scans half types block by block: elements are widened, and results rounded, in vector
  /// instructions.
  template <Index... J>
  void in_blocks(Total* total, Index n, const T* const* x, Out* const* y) const {
    constexpr Index block = 256;
    float wide[side][block];
    Total made[side][block];
    for (Index done = 0; done < n; done += block) {
      const Index count = min_of(block, n - done), begin = work.reverse ? n - done - count : done;
      (convert_row(x[J] + begin, count, wide[J]), ...);
      for (Index k = 0; k < count; ++k) {
        const Index at = work.reverse ? count - 1 - k : k;
        (put(total[J], static_cast<Total>(wide[J][at]), made[J][at]), ...);
      }
      if (to != nullptr) (round_row(made[J], count, wide[J], y[J] + begin), ...);
    }
  }
  void put(Total& total, Total element, Total& made) const {
    const Total joined = join(total, element);
    made = work.exclusive ? total : joined;
    total = joined;
  }
  void put_before(Total& total, const T& element, Out& result) const {
    const Total joined = join(total, static_cast<Total>(element));
    result = static_cast<Out>(total);
    total = joined;
  }
  Index start_of(Index piece) const { return piece / in_line * work.n + piece % in_line * length; }
};

/// Runs along lines of work.n contiguous elements; `earlier` as in scan.hpp.
template <class Join, class T, class Out>
void scan_rows(const char* label, const Join& join, const LocalScan& work, const T* from,
               const Out* earlier, Out* to) {
  using Total = typename Join::Total;
  using Pieces = ScanRows<Join, T, Out>;
  constexpr Index few = 64, piece = 4096;  // of lines and of elements
  const Index length = work.outer < few && work.n >= 4 * piece ? piece : work.n;
  const Index in_line = ceil_div(work.n, length);
  Pieces rows{join, work, length, in_line, from, nullptr, nullptr, nullptr};
  const Index groups = ceil_div(rows.pieces(), Pieces::side);
  const Index grain = max_of(1, 32768 / (Pieces::side * length));
  std::unique_ptr<Total[]> starts, totals;  // Total may be bool
  if (in_line > 1) {
    totals.reset(new Total[static_cast<std::size_t>(rows.pieces())]);
    rows.totals = totals.get();
    launch(label, groups, grain, rows);
    rows.totals = nullptr;
  }
  if (in_line > 1 || work.parts > 0) {
    starts.reset(new Total[static_cast<std::size_t>(rows.pieces())]);
    for (Index line = 0; line < work.outer; ++line) {
      Total total = join.start();
      for (Index k = work.earlier.lo; k < work.earlier.hi; ++k) {
        const Index part = work.reverse ? work.earlier.lo + work.earlier.hi - 1 - k : k;
        total = join(total, static_cast<Total>(earlier[line * work.parts + part]));
      }
      for (Index c = 0; c < in_line; ++c) {
        const auto p =
            static_cast<std::size_t>(line * in_line + (work.reverse ? in_line - 1 - c : c));
        starts[p] = total;
        if (c + 1 < in_line) total = join(total, totals[p]);
      }
    }
    rows.starts = starts.get();
  }
  rows.to = to;
  launch(label, groups, grain, rows);
}

}  // namespace tessera::detail
