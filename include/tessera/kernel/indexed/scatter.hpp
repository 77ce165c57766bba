// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Joins updates into rows of a table at indices. A counting sort first orders the updates by their
/// target row (detail/row_order.hpp); then each row joins its own updates in their order. Few
/// updates of a table in place need no sort (detail/scatter_chains.hpp).
///
///     detail::scatter(DType::f32, Reduction::sum, work, operand, indices, types, updates, integers, out);
///
/// Laws: the bits depend only on operand, indices and updates, not on threads; a row's float sums
/// are kept in double and rounded once; when several updates set one place, the last one stays.
#include <algorithm>
#include <type_traits>

#include <tessera/base/local_index.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/reduce_shape.hpp>
#include <tessera/kernel/device/packs.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/indexed/detail/index_box.hpp>
#include <tessera/kernel/indexed/detail/row_order.hpp>
#include <tessera/kernel/indexed/detail/scatter_chains.hpp>
#include <tessera/kernel/prefetch.hpp>

namespace tessera::detail {

/// Joins a strip of a row's elements.
template <Reduction R, class T> struct ScatterRows {
  static constexpr Index width = kernels_on_host ? 256 : 1;
  using S = Scattering<R, T>;
  using Total = typename S::Total;
  IndexBox box;
  RowBox row;
  RowOrder order;
  Index strips;  // of a row
  OffsetBox table;
  ScatterStart begin;
  T nothing;
  const T* operand;
  const T* updates;
  T* out;
  bool in_place;   // rows without updates are there already
  bool by_tuples;  // an index is a tuple, of which each row is one's; else a row

  KOKKOS_FUNCTION void run(Index first, Index end) const {
    if (by_tuples) return run_tuples(first, end);
    Index r = first / strips, s = first % strips;
    for (Index i = first; i < end;) {
      if (in_place && order.begin(r) == order.ends[r]) {  // to the next row
        i += strips - s;
        s = 0;
        ++r;
        continue;
      }
      if constexpr (kernels_on_host)
        if (s == 0) request_next(r);
      strip(r, s * width);
      ++i;
      if (++s == strips) {
        s = 0;
        ++r;
      }
    }
  }

  KOKKOS_FUNCTION bool is_owner(Index r, Index tuple) const {
    const Index begins = order.begin(r), count = order.ends[r] - begins;
    return order.places[begins + (count > 1 ? r % count : 0)] == tuple;
  }
  /// What a row of updates is joined with where the operand is not there: a sum's -0 where another
  /// process has the operand, since -0 + 0 is 0.
  KOKKOS_FORCEINLINE_FUNCTION Total start() const {
    return begin == ScatterStart::nothing ? static_cast<Total>(nothing) : S::start();
  }
  KOKKOS_FORCEINLINE_FUNCTION const T* update(Index i) const {
    Index at[max_dims];
    box.start(order.places[i], at);
    return updates + box.offset(at);
  }

 private:
  /// In the order of the updates, which lie side by side in memory where rows lie anywhere. A row
  /// with several tuples is joined when one of them comes, whichever its number says, so that
  /// threads have as much to do.
  KOKKOS_FUNCTION void run_tuples(Index first, Index end) const {
    Index at[max_dims], r = 0, next = 0;
    Index tuple = first / strips, s = first % strips;
    box.start(tuple, at);
    bool here = box.find(at, r) == IndexBox::here;
    for (Index i = first; i < end; ++tuple, s = 0, r = next) {
      const Index stop = min_of(end, i + strips - s);
      bool next_here = false;
      if (stop < end) {
        box.next(at);
        next_here = box.find(at, next) == IndexBox::here;
        if constexpr (kernels_on_host)
          if (next_here && row.contiguous())
            prefetch_row(out + table.offset(next), row.size * static_cast<Index>(sizeof(T)));
      }
      if (here && is_owner(r, tuple))
        for (; i < stop; ++i, ++s) strip(r, s * width);
      i = stop;
      here = next_here;
    }
  }
  /// Requests the updates that come after row r's: they lie anywhere.
  void request_next(Index r) const {
    const Index next = order.ends[r];
    if (next >= order.ends[order.rows - 1] || !row.contiguous()) return;
    prefetch_row(update(next), row.size * static_cast<Index>(sizeof(T)));
  }
  KOKKOS_FUNCTION void strip(Index r, Index j) const {
    const Index to = table.offset(r);
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
    Total total[width] = {};
    row.visit(j, stop, [&](Index k, Index, Index t) {
      total[k] = begin == ScatterStart::operand ? static_cast<Total>(operand[to + t]) : start();
    });
    for (Index i = first; i < last; ++i) {
      const T* from = update(i);
      row.visit(j, stop, [&](Index k, Index u, Index) { total[k] = S::join(total[k], from[u]); });
    }
    row.visit(j, stop, [&](Index k, Index, Index t) { out[to + t] = static_cast<T>(total[k]); });
  }
  /// Makes `count` elements that follow each other, from element j of a row on.
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
      if constexpr (R == Reduction::sum && std::is_floating_point_v<T>)
        if (last - first == 1 && begin == ScatterStart::operand)  // as a sum in double, rounded
          return add_one(operand + to, update(first) + j, count, made);
      if (count == width)  // loops of constant length
        join_strip(to, j, std::integral_constant<Index, width>{}, first, last);
      else
        join_strip(to, j, count, first, last);
    });
  }
  TESSERA_INLINE static void add_one(const T* from, const T* more, Index count, T* to) {
    TESSERA_SIMD
    for (Index k = 0; k < count; ++k) to[k] = from[k] + more[k];
  }
  template <class Count>
  TESSERA_INLINE void join_strip(Index to, Index j, Count count, Index first, Index last) const {
    Total total[width];
    if (begin == ScatterStart::operand)
      widen(operand + to, count, total);
    else
      std::fill_n(total, Index{count}, start());
    for (Index i = first; i < last; ++i) join_loop(update(i) + j, count, total);
    narrow(total, count, out + to);
  }
  template <class Count>
  TESSERA_INLINE static void widen(const T* from, Count count, Total* total) {
    TESSERA_SIMD
    for (Index k = 0; k < count; ++k) total[k] = static_cast<Total>(from[k]);
  }
  template <class Count>
  TESSERA_INLINE static void join_loop(const T* from, Count count, Total* total) {
    TESSERA_SIMD
    for (Index k = 0; k < count; ++k) total[k] = S::join(total[k], from[k]);
  }
  template <class Count> TESSERA_INLINE static void narrow(const Total* total, Count count, T* to) {
    TESSERA_SIMD
    for (Index k = 0; k < count; ++k) to[k] = static_cast<T>(total[k]);
  }
};

/// On a device: an index is a pack of a row, all of whose elements follow each other, in the table
/// and in the updates.
template <Reduction R, class T> struct ScatterPacks {
  static constexpr int width = pack_size<T> < 8 ? pack_size<T> : 8;
  using Rows = ScatterRows<R, T>;
  using S = Scattering<R, T>;
  using Total = typename S::Total;
  Rows rows;
  Index packs;  // of a row

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      Index r = i / packs;
      const Index first = (i - r * packs) * width;
      if (rows.by_tuples) {
        const Index tuple = r;
        Index at[max_dims];
        rows.box.start(tuple, at);
        if (rows.box.find(at, r) != IndexBox::here || !rows.is_owner(r, tuple)) continue;
      }
      pack(r, first, min_of(width, rows.row.size - first));
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static Pack<T, width> read(const T* from, Index count) {
    if (count == width && is_packed<width>(from)) return load_pack<width>(from);
    Pack<T, width> x;
    for (int j = 0; j < width; ++j) x.of[j] = from[j < count ? j : 0];
    return x;
  }
  KOKKOS_FORCEINLINE_FUNCTION void pack(Index r, Index first, Index count) const {
    const Index begins = rows.order.begin(r), ends = rows.order.ends[r];
    if (rows.in_place && begins == ends) return;
    const Index to = rows.table.offset(r) + first;
    Pack<T, width> made;
    if (rows.begin == ScatterStart::operand) {
      made = read(rows.operand + to, count);
    } else {
      for (int j = 0; j < width; ++j)
        made.of[j] = rows.begin == ScatterStart::identity && begins == ends
                         ? static_cast<T>(S::start())
                         : rows.nothing;
    }
    if (begins < ends) {
      Total total[width];
      for (int j = 0; j < width; ++j)
        total[j] =
            rows.begin == ScatterStart::operand ? static_cast<Total>(made.of[j]) : rows.start();
      for (Index i = begins; i < ends; ++i) {
        const Pack<T, width> more = read(rows.update(i) + first, count);
        for (int j = 0; j < width; ++j) total[j] = S::join(total[j], more.of[j]);
      }
      for (int j = 0; j < width; ++j) made.of[j] = static_cast<T>(total[j]);
    }
    T* const y = rows.out + to;
    if (count == width && is_packed<width>(y)) return store_pack<width>(y, made);
    for (int j = 0; j < width; ++j)
      if (j < count) y[j] = made.of[j];
  }
};

template <Reduction R, class T>
void scatter_rows(const LocalScatter& work, const IndexBox& box, const RowOrder& order,
                  const void* operand, const void* updates, void* out) {
  ScatterRows<R, T> kernel{box,
                           row_box(work.rows),
                           order,
                           1,
                           offset_box(work.table, work.table_strides, false),
                           work.start,
                           T{},
                           static_cast<const T*>(operand),
                           static_cast<const T*>(updates),
                           static_cast<T*>(out),
                           work.start == ScatterStart::operand && operand == out,
                           false};
  kernel.by_tuples = kernel.in_place && work.updates && box.size <= order.rows;
  if constexpr (R == Reduction::sum && !std::is_integral_v<T>) kernel.nothing = -T{};
  if constexpr (R != Reduction::sum && R != Reduction::none) kernel.nothing = Fold<R, T>::start();
  if constexpr (!kernels_on_host)
    if (kernel.row.contiguous() && kernel.row.size > 1) {
      const Index packs = ceil_div(kernel.row.size, ScatterPacks<R, T>::width);
      return launch("tessera::scatter", (kernel.by_tuples ? box.size : order.rows) * packs, 1,
                    ScatterPacks<R, T>{kernel, packs});
    }
  const Index width = ScatterRows<R, T>::width;
  kernel.strips = ceil_div(kernel.row.size, width);
  const Index each = max_of(1, min_of(kernel.row.size, width));
  launch("tessera::scatter", (kernel.by_tuples ? box.size : order.rows) * kernel.strips,
         max_of(1, 16384 / each), kernel);
}

/// Whether the updates are few and joined in place: then they need no order.
inline bool has_chains(const LocalScatter& work, const IndexBox& box, const void* operand,
                       const void* out) {
  return work.start == ScatterStart::operand && operand == out && work.updates &&
         box.size <= work.bins() && row_box(work.rows).contiguous() && counted_alone(box);
}
template <Reduction R, class T>
void scatter_chains(const LocalScatter& work, const IndexBox& box, const Chains& chains,
                    const void* updates, void* out) {
  using Kernel = ScatterChains<R, T>;
  const Index size = volume(work.rows.row);
  const Kernel kernel{box,
                      chains,
                      size,
                      ceil_div(size, Kernel::width),
                      offset_box(work.table, work.table_strides, false),
                      static_cast<const T*>(updates),
                      static_cast<T*>(out)};
  launch_on_host("tessera::scatter", box.size * kernel.strips,
                 max_of(1, 16384 / min_of(size, Kernel::width)), kernel);
}

template <class T>
void scatter_elements(Reduction reduction, const LocalScatter& work, const void* operand,
                      const void* const* indices, const DType* types, const void* updates,
                      void* integers, void* out) {
  if (work.bins() == 0 || volume(work.rows.row) == 0) return;
  const IndexBox box = index_box(work.rows, indices, types);
  const RowOrder order = row_order(work, integers);
  const bool chained = has_chains(work, box, operand, out);
  const Chains chains{order.rows, order.ends, order.places};
  if (chained)
    chain_tuples(box, chains);
  else
    order_tuples(work, box, order);
  const auto join = [&](auto r) {
    constexpr Reduction R = decltype(r)::value;
    if constexpr (kernels_on_host)
      if (chained) return scatter_chains<R, Stored<T>>(work, box, chains, updates, out);
    scatter_rows<R, Stored<T>>(work, box, order, operand, updates, out);
  };
  if (reduction == Reduction::none)
    join(std::integral_constant<Reduction, Reduction::none>{});
  else
    with_reduction<T>(reduction, join);
}

struct ScatterKernels {
  void (*run)(Reduction reduction, const LocalScatter& work, const void* operand,
              const void* const* indices, const DType* types, const void* updates, void* integers,
              void* out);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr ScatterKernels of() { return {&scatter_elements<T>}; }
};

/// Writes the operand (or nothing, as work.start says) joined with the updates; `none` sets them.
/// `out` may be the operand's own memory; `integers` has work.integers() 64-bit integers.
/// Communication: none.
inline void scatter(DType type, Reduction reduction, const LocalScatter& work, const void* operand,
                    const void* const* indices, const DType* types, const void* updates,
                    void* integers, void* out) {
  kernels_of<ScatterKernels>(type).run(reduction, work, operand, indices, types, updates, integers,
                                       out);
}
}  // namespace tessera::detail
