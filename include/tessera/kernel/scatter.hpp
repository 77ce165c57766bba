// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Joins updates into rows of a table at indices. A counting sort first orders the updates by their
/// target row; then each row joins its own updates in their order.
///
///     detail::scatter(DType::f32, Reduction::sum, work, operand, indices, types, updates, integers, out);
///
/// Laws: the bits depend only on operand, indices and updates, not on threads; a row's float sums
/// are kept in double and rounded once; when several updates set one place, the last one stays.
#include <algorithm>
#include <cstdint>
#include <utility>

#include <tessera/kernel/detail/index_box.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/fill.hpp>

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

/// How updates are joined; for R none, the last one is set.
template <Reduction R, class T> struct Scattering {
  using Total = typename Fold<R, T>::Total;
  KOKKOS_FORCEINLINE_FUNCTION static Total start() { return Fold<R, Total>::start(); }
  KOKKOS_FORCEINLINE_FUNCTION static Total join(Total a, T b) {
    return Fold<R, Total>::join(a, static_cast<Total>(b));
  }
};
template <class T> struct Scattering<Reduction::none, T> {
  using Total = T;
  KOKKOS_FORCEINLINE_FUNCTION static Total start() { return T{}; }
  KOKKOS_FORCEINLINE_FUNCTION static Total join(Total, T b) { return b; }
};

/// Joins a strip of a row's elements.
template <Reduction R, class T> struct ScatterRows {
  static constexpr Index width = kernels_on_host ? 64 : 1;
  using S = Scattering<R, T>;
  IndexBox box;
  RowBox row;
  RowOrder order;
  Index strips;  // of a row
  int table_rank;
  Index table_extent[max_dims], table_stride[max_dims];
  ScatterStart begin;
  T nothing;
  const T* operand;
  const T* updates;
  T* out;
  bool in_place;  // rows without updates are there already

  KOKKOS_FUNCTION void run(Index first, Index end) const {
    for (Index i = first; i < end; ++i) {
      const Index r = i / strips;
      if (!in_place || order.begin(r) < order.ends[r])
        strip(r, i % strips * width);
      else
        i = r * strips + strips - 1;  // to the next row
    }
  }

 private:
  KOKKOS_FUNCTION void strip(Index r, Index j) const {
    Index to = 0, rest = r;
    for (int d = table_rank - 1; d >= 0; --d) {
      to += rest % table_extent[d] * table_stride[d];
      rest /= table_extent[d];
    }
    const Index stop = min_of(row.size, j + width);
    const Index first = order.begin(r), last = order.ends[r];
    if constexpr (kernels_on_host)
      if (row.contiguous()) return contiguous_strip(to + j, j, stop - j, first, last);
    if (first == last)
      return row.visit(j, stop, [&](Index, Index, Index t) {
        out[to + t] = begin == ScatterStart::operand    ? operand[to + t]
                      : begin == ScatterStart::identity ? static_cast<T>(S::start())
                                                        : nothing;
      });
    typename S::Total total[width] = {};
    row.visit(j, stop, [&](Index k, Index, Index t) {
      total[k] = begin == ScatterStart::operand ? static_cast<typename S::Total>(operand[to + t])
                                                : S::start();
    });
    Index at[max_dims];
    for (Index i = first; i < last; ++i) {
      box.start(order.places[i], at);
      const T* from = updates + box.offset(at);
      row.visit(j, stop, [&](Index k, Index u, Index) { total[k] = S::join(total[k], from[u]); });
    }
    row.visit(j, stop, [&](Index k, Index, Index t) { out[to + t] = static_cast<T>(total[k]); });
  }
  /// The same for `count` elements that follow each other, from element j of a row on.
  void contiguous_strip(Index to, Index j, Index count, Index first, Index last) const {
    T* const made = out + to;
    if (first == last) {
      if (begin == ScatterStart::operand)
        std::copy_n(operand + to, count, made);
      else
        std::fill_n(made, count,
                    begin == ScatterStart::identity ? static_cast<T>(S::start()) : nothing);
      return;
    }
    with_wide_vectors([&]() TESSERA_INLINE {
      if (count == width)  // loops of constant length
        join_strip(to, j, std::integral_constant<Index, width>{}, first, last);
      else
        join_strip(to, j, count, first, last);
    });
  }
  template <class Count>
  TESSERA_INLINE void join_strip(Index to, Index j, Count count, Index first, Index last) const {
    typename S::Total total[width];
    if (begin == ScatterStart::operand)
      widen(operand + to, count, total);
    else
      std::fill_n(total, Index{count}, S::start());
    Index at[max_dims];
    for (Index i = first; i < last; ++i) {
      box.start(order.places[i], at);
      join_loop(updates + box.offset(at) + j, count, total);
    }
    narrow(total, count, out + to);
  }
  template <class Count>
  TESSERA_INLINE static void widen(const T* from, Count count, typename S::Total* total) {
    TESSERA_SIMD
    for (Index k = 0; k < count; ++k) total[k] = static_cast<typename S::Total>(from[k]);
  }
  template <class Count>
  TESSERA_INLINE static void join_loop(const T* from, Count count, typename S::Total* total) {
    TESSERA_SIMD
    for (Index k = 0; k < count; ++k) total[k] = S::join(total[k], from[k]);
  }
  template <class Count>
  TESSERA_INLINE static void narrow(const typename S::Total* total, Count count, T* to) {
    TESSERA_SIMD
    for (Index k = 0; k < count; ++k) to[k] = static_cast<T>(total[k]);
  }
};

/// Puts the tuples in order by rows.
inline void order_tuples(const LocalScatter& work, const IndexBox& box, const RowOrder& order) {
  const Index chunks = ceil_div(order.rows, LocalScatter::chunk);
  const bool alone = kernels_on_host && host_threads() == 1;
  tessera::detail::fill(order.ends, order.rows + 1, Index{0});
  if (!work.updates || box.size == 0) return;
  launch("tessera::scatter::count", box.size, 16384, CountTuples{box, order, alone, false});
  launch("tessera::scatter::sum", chunks, 4, SumCounts{order, 0});
  launch("tessera::scatter::sum", 1, 1, SumCounts{order, 1});
  launch("tessera::scatter::sum", chunks, 4, SumCounts{order, 2});
  launch("tessera::scatter::place", box.size, 16384, CountTuples{box, order, alone, true});
  if (!alone) launch("tessera::scatter::sort", order.rows, 4096, SortTuples{order});
}

template <Reduction R, class T>
void scatter_rows(const LocalScatter& work, const IndexBox& box, const RowOrder& order,
                  const void* operand, const void* updates, void* out) {
  ScatterRows<R, T> kernel{box,
                           row_box(work.rows),
                           order,
                           1,
                           work.table.size(),
                           {},
                           {},
                           work.start,
                           T{},
                           static_cast<const T*>(operand),
                           static_cast<const T*>(updates),
                           static_cast<T*>(out),
                           work.start == ScatterStart::operand && operand == out};
  if constexpr (R == Reduction::sum && !std::is_integral_v<T>) kernel.nothing = -T{};
  if constexpr (R != Reduction::sum && R != Reduction::none) kernel.nothing = Fold<R, T>::start();
  for (int d = 0; d < work.table.size(); ++d) {
    kernel.table_extent[d] = work.table[d];
    kernel.table_stride[d] = work.table_strides[d];
  }
  const Index width = ScatterRows<R, T>::width;
  kernel.strips = ceil_div(kernel.row.size, width);
  const Index each = max_of(1, min_of(kernel.row.size, width));
  launch("tessera::scatter", order.rows * kernel.strips, max_of(1, 16384 / each), kernel);
}

template <class T>
void scatter_elements(Reduction reduction, const LocalScatter& work, const void* operand,
                      const void* const* indices, const DType* types, const void* updates,
                      void* integers, void* out) {
  if (work.bins() == 0 || volume(work.rows.row) == 0) return;
  const IndexBox box = index_box(work.rows, indices, types);
  const RowOrder order = row_order(work, integers);
  order_tuples(work, box, order);
  if (reduction == Reduction::none)
    return scatter_rows<Reduction::none, Stored<T>>(work, box, order, operand, updates, out);
  with_reduction<T>(reduction, [&](auto r) {
    scatter_rows<decltype(r)::value, Stored<T>>(work, box, order, operand, updates, out);
  });
}

/// Writes the operand (or nothing, as work.start says) joined with the updates; `none` sets them.
/// `out` may be the operand's own memory; `integers` has work.integers() 64-bit integers.
/// Communication: none.
inline void scatter(DType type, Reduction reduction, const LocalScatter& work, const void* operand,
                    const void* const* indices, const DType* types, const void* updates,
                    void* integers, void* out) {
  detail::indexed_kernels_of(type).scatter(reduction, work, operand, indices, types, updates,
                                           integers, out);
}
}  // namespace tessera::detail
