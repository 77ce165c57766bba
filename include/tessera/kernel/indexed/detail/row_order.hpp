// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A counting sort of tuples by the row of a table that they name: on one thread it is stable by
/// itself; where several count, each row's tuples are sorted behind it.
///
///     const RowOrder order = row_order(work, integers);
///     order_tuples(work, box, order);       // row r: places[begin(r)] to places[ends[r] - 1]
///
/// Laws: the order depends only on the indices, not on threads.
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/device/scan.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/indexed/detail/index_box.hpp>

namespace tessera::detail {

/// The order of tuples by the table's rows. `ends` has one integer for each row and one more;
/// `sums` one for each chunk of rows; `places` one for each tuple. At the end, row r has the tuples
/// places[ends[r - 1]] to places[ends[r] - 1], ascending.
struct RowOrder {
  Index rows;
  Index* ends;
  Index* sums;
  Index* places;
  KOKKOS_FUNCTION Index begin(Index row) const { return row > 0 ? ends[row - 1] : 0; }
};
inline RowOrder row_order(const LocalScatter& work, void* integers) {
  const Index rows = work.bins();
  Index* const first = static_cast<Index*>(integers);
  Index* const sums = first + rows + 1;
  return {rows, first, sums, sums + ceil_div(rows, LocalScatter::chunk)};
}

/// Counts each row's tuples, in ends[row + 1]; or, when placing, records them.
struct CountTuples {
  IndexBox box;
  RowOrder order;
  bool alone;  // no other thread counts
  bool placing;
  KOKKOS_FUNCTION Index next(Index row) const {
    Index& counter = order.ends[placing ? row : row + 1];
    return alone ? counter++ : Kokkos::atomic_fetch_add(&counter, Index{1});
  }
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    Index at[max_dims], row = 0;
    box.start(begin, at);
    for (Index i = begin; i < end; ++i, box.next(at))
      if (box.find(at, row) == IndexBox::here) {
        const Index place = next(row);
        if (placing) order.places[place] = i;
      }
  }
};

/// Sums the counts of a chunk of rows; then, once the sums are summed, the counts.
struct SumCounts {
  RowOrder order;
  int pass;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index c = begin; c < end; ++c) {
      const Index first = c * LocalScatter::chunk + 1;
      const Index stop = min_of(order.rows + 1, first + LocalScatter::chunk);
      Index sum = 0;
      if (pass == 0) {
        for (Index r = first; r < stop; ++r) sum += order.ends[r];
        order.sums[c] = sum;
      } else if (pass == 1) {  // one chunk of chunks
        for (Index k = 0; k < ceil_div(order.rows, LocalScatter::chunk); ++k) {
          const Index count = order.sums[k];
          order.sums[k] = sum;
          sum += count;
        }
      } else {
        sum = order.sums[c];
        for (Index r = first; r < stop; ++r) order.ends[r] = sum += order.ends[r];
      }
    }
  }
};

/// How a device sums the counts.
struct AddCounts {
  using Total = Index;
  KOKKOS_FORCEINLINE_FUNCTION Index start() const { return 0; }
  KOKKOS_FORCEINLINE_FUNCTION Index operator()(Index a, Index b) const { return a + b; }
};
inline void sum_counts(const RowOrder& order) {
  if constexpr (!kernels_on_host)
    return scan_device("tessera::scatter::sum", AddCounts{}, LocalScan{},
                       {order.rows + 1, false, false}, order.ends,
                       static_cast<const Index*>(nullptr), order.ends);
  const Index chunks = ceil_div(order.rows, LocalScatter::chunk);
  launch("tessera::scatter::sum", chunks, 4, SumCounts{order, 0});
  launch("tessera::scatter::sum", 1, 1, SumCounts{order, 1});
  launch("tessera::scatter::sum", chunks, 4, SumCounts{order, 2});
}

/// Sorts each row's tuples by heap sort in place, where several threads have recorded them in any
/// order.
struct SortTuples {
  RowOrder order;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index r = begin; r < end; ++r) {
      Index* const p = order.places + order.begin(r);
      const Index n = order.ends[r] - order.begin(r);
      bool sorted = true;
      for (Index i = 1; i < n; ++i) sorted = sorted && p[i - 1] < p[i];
      if (sorted) continue;
      for (Index i = n / 2; i-- > 0;) sift(p, i, n);
      for (Index last = n - 1; last > 0; --last) {
        exchange(p[0], p[last]);
        sift(p, 0, last);
      }
    }
  }
  KOKKOS_FUNCTION static void exchange(Index& a, Index& b) {
    const Index old = a;
    a = b;
    b = old;
  }
  KOKKOS_FUNCTION static void sift(Index* p, Index i, Index n) {
    for (Index child = 2 * i + 1; child < n; child = 2 * i + 1) {
      if (child + 1 < n && p[child] < p[child + 1]) ++child;
      if (p[i] >= p[child]) return;
      exchange(p[i], p[child]);
      i = child;
    }
  }
};

/// Returns whether one thread counts them all: so few stay in their order.
inline constexpr Index least_tuples = 16384;
inline bool counted_alone(const IndexBox& box) {
  return kernels_on_host && (host_threads() == 1 || box.size < 2 * least_tuples);
}

/// Puts the tuples in order by rows.
inline void order_tuples(const LocalScatter& work, const IndexBox& box, const RowOrder& order) {
  const bool alone = counted_alone(box);
  tessera::detail::fill(order.ends, order.rows + 1, Index{0});
  if (!work.updates || box.size == 0) return;
  launch("tessera::scatter::count", box.size, least_tuples, CountTuples{box, order, alone, false});
  sum_counts(order);
  launch("tessera::scatter::place", box.size, least_tuples, CountTuples{box, order, alone, true});
  if (!alone) launch("tessera::scatter::sort", order.rows, 4096, SortTuples{order});
}

}  // namespace tessera::detail
