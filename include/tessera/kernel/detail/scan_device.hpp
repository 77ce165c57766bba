// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running joins on a device: lines are cut into pieces until there is work for all threads. The
/// pieces' totals are found, and run along in turn; then each piece is run along from what comes
/// before it.
///
///     scan_device("tessera::scan", join, {.outer = 2, .n = 3}, from, earlier, to);
///
/// Laws: the shape alone gives the pieces, so the order of joins is fixed.
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_device.hpp>
#include <tessera/kernel/scratch.hpp>

namespace tessera::detail {

/// How the elements of a line follow each other.
struct ScanOrder {
  Index n;
  bool backwards;  ///< the last comes first
  bool exclusive;  ///< an element's result is the join of those before it
};

/// An index is a piece of a line. Writes results, from `starts` or from what is earlier than the
/// line; or, where `totals` is not null, the join of the piece alone.
template <class Join, class T, class Early, class Out> struct ScanPieces {
  using Total = typename Join::Total;
  Join join;
  LocalScan work;
  ScanOrder order;
  Index pieces, length;
  const T* from;
  const Early* earlier;
  const Total* starts;
  Out* to;
  Total* totals;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index column = i % work.inner, outer = i / work.inner / pieces;
      const Index first = i / work.inner % pieces * length, last = min_of(order.n, first + length);
      Total total = starts != nullptr   ? starts[i]
                    : totals != nullptr ? join.start()
                                        : before(outer, column);
      for (Index k = first; k < last; ++k) {
        const Index row = order.backwards ? order.n - 1 - k : k;
        const Index at = (outer * order.n + row) * work.inner + column;
        const Total joined = join(total, static_cast<Total>(from[at]));
        if (totals == nullptr) to[at] = static_cast<Out>(order.exclusive ? total : joined);
        total = joined;
      }
      if (totals != nullptr) totals[i] = total;
    }
  }
  KOKKOS_FUNCTION Total before(Index outer, Index column) const {
    Total total = join.start();
    for (Index k = work.earlier.lo; k < work.earlier.hi; ++k) {
      const Index part = work.reverse ? work.earlier.lo + work.earlier.hi - 1 - k : k;
      total = join(total,
                   static_cast<Total>(earlier[(outer * work.parts + part) * work.inner + column]));
    }
    return total;
  }
};

template <class Join, class T, class Early, class Out>
void scan_device(const char* label, const Join& join, const LocalScan& work, const ScanOrder& order,
                 const T* from, const Early* earlier, Out* to) {
  using Total = typename Join::Total;
  using Pieces = ScanPieces<Join, T, Early, Out>;
  const Index lines = work.outer * work.inner;
  if (lines == 0 || order.n == 0) return;
  Index pieces = min_of(order.n / 64, device_threads / lines);
  if (pieces <= 1)
    return launch(label, lines, 1,
                  Pieces{join, work, order, 1, order.n, from, earlier, nullptr, to, nullptr});
  const Index length = ceil_div(order.n, pieces);
  pieces = ceil_div(order.n, length);
  const Scratch<Total> totals(lines * pieces), starts(lines * pieces);
  launch(label, lines * pieces, 1,
         Pieces{join, work, order, pieces, length, from, earlier, nullptr, to, totals.data()});
  scan_device(label, join, work, ScanOrder{pieces, false, true}, totals.data(), earlier,
              starts.data());
  launch(label, lines * pieces, 1,
         Pieces{join, work, order, pieces, length, from, earlier, starts.data(), to, nullptr});
}

}  // namespace tessera::detail
