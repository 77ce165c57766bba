// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Finds where each row has a given value: the second half of an arg-max, of which the first half
/// is a reduction; or does both, and reads memory once.
///
///     detail::find(DType::f32, work, x, best, out);
///     detail::find_extreme(DType::f32, Reduction::max, work, x, best, out);   // writes best too
///
/// Laws: out[i] is the first place of the row's value, or the largest 64-bit integer where the row
/// does not have it; NaN is found as NaN. find_extreme writes what a reduction and find() write.
#include <cstdint>

#include <tessera/base/local_work.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/rows/detail/row_pieces.hpp>

namespace tessera::detail {

inline constexpr std::int64_t not_found = std::numeric_limits<std::int64_t>::max();

template <class T> struct FindOp {
  struct State {
    T value;
    std::int64_t place;
  };
  const T* best;
  std::int64_t* out;
  Index first;
  static constexpr Index block = 256;

  KOKKOS_FUNCTION State start(Index output) const { return {best[output], not_found}; }
  KOKKOS_FUNCTION void take(State& state, T x, Index place) const {
    if (state.place == not_found &&
        (x == state.value || (!(x == x) && !(state.value == state.value))))
      state.place = first + place;
  }
  /// Looks through n elements that follow each other: first whether 256 of them have the value at
  /// all, then 16.
  void take_row(State& state, const T* p, Index n, Index place, Index step) const {
    constexpr Index few = 16;
    if (state.place != not_found) return;
    with_wide_vectors([&]() TESSERA_INLINE {
      Index i = 0;
      if (state.value == state.value)  // in loops of constant length
        while (i + block <= n && !any_in_block(p + i, state.value)) i += block;
      while (i + few <= n && any_equal(p + i, few, state.value) == 0) i += few;
      for (; i < n && state.place == not_found; ++i) take(state, p[i], place + i * step);
    });
  }
  /// Flags are as wide as elements, so that compares become vector instructions.
  using Flag = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  TESSERA_INLINE static Flag any_equal(const T* p, Index n, const T value) {
    Flag found = 0;
    const Flag nan = value == value ? 0 : 1;
    TESSERA_SIMD_OR(found)
    for (Index i = 0; i < n; ++i)
      found |= static_cast<Flag>(p[i] == value) | (static_cast<Flag>(p[i] != p[i]) & nan);
    return found;
  }
  /// Whether one of a block's elements is a value that is no NaN; half types are compared as
  /// integers.
  TESSERA_INLINE static bool any_in_block(const T* p, const T value) {
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
      const auto all = static_cast<std::uint16_t>(value == T{} ? 0x7fffu : 0xffffu);  // both zeros
      const auto wanted = static_cast<std::uint16_t>(Kokkos::bit_cast<std::uint16_t>(value) & all);
      return any_of<std::uint16_t>(reinterpret_cast<const std::uint16_t*>(p),
                                   [=](std::uint16_t x) TESSERA_INLINE {
                                     return static_cast<std::uint16_t>((x & all) == wanted);
                                   });
    } else {
      return any_of<Flag>(p, [=](T x) TESSERA_INLINE { return static_cast<Flag>(x == value); });
    }
  }
  /// Vectors of 32 bytes are read in the order of memory, as by line_chunk.
  template <class Bits, class E, class Is>
  TESSERA_INLINE static bool any_of(const E* p, const Is is) {
    constexpr Index lanes = 32 / sizeof(E);
    Bits some[lanes] = {}, found = 0;
    for (Index i = 0; i < block; i += 4 * lanes) {
      const E* const x = p + i;
      TESSERA_SIMD
      for (Index j = 0; j < lanes; ++j)
        some[j] = static_cast<Bits>(
            some[j] | (is(x[j]) | is(x[lanes + j]) | is(x[2 * lanes + j]) | is(x[3 * lanes + j])));
    }
    for (Index j = 0; j < lanes; ++j) found = static_cast<Bits>(found | some[j]);
    return found != 0;
  }
  KOKKOS_FUNCTION void put(Index output, const State& state, bool whole) const {
    if (whole)
      out[output] = state.place;
    else
      Kokkos::atomic_min(&out[output], state.place);
  }
};

template <class T>
void find_elements(const LocalFind& work, const void* from, const void* best, std::int64_t* out) {
  using Bits = Stored<T>;
  const Rows rows = rows_of(work.rows, work.steps);
  if (rows.chunks > 1) tessera::detail::fill(out, rows.kept.size, not_found);
  row_pieces("tessera::find", rows, static_cast<const Bits*>(from),
             FindOp<Bits>{static_cast<const Bits*>(best), out, work.first});
}

/// Host: an index is a row. Floats are compared once, which keeps the place too, unless there is a
/// NaN; of other types rows are reduced, and searched while a cache holds them.
template <Reduction R, class T> struct ExtremeRows {
  HostReduce reduce;
  RowPieces<T, FindOp<T>> pieces;
  T* best;
  void run(Index begin, Index end) const {
    if constexpr (std::is_floating_point_v<T>)
      with_wide_vectors([&]() TESSERA_INLINE {
        for (Index i = begin; i < end; ++i) {
          Index place = 0;
          if (extreme_place(pieces.from + pieces.rows.kept.offset(i), pieces.rows.reduced.size,
                            R == Reduction::min, best[i], place))
            pieces.op.out[i] = pieces.op.first + place * pieces.rows.step[0];
          else
            search(i, i + 1);
        }
      });
    else
      search(begin, end);
  }
  [[gnu::noinline]] void search(Index begin, Index end) const {
    const Index bytes = pieces.rows.reduced.size * static_cast<Index>(sizeof(T));
    const Index together = max_of(1, 16384 / bytes);
    for (Index i = begin; i < end; i += together) {
      const Index stop = min_of(end, i + together);
      reduce_part<R, T, T>(reduce, i, stop);
      pieces.run(i, stop);
    }
  }
};

/// On a device: a row whose elements follow each other, by a team, in one pass.
template <Reduction R, class T> struct ExtremeRow {
  using C = typename Fold<R, T>::Total;
  struct Found {
    C best;
    Index place;
  };
  static constexpr int phases = 1;
  OffsetBox kept;
  Index n, first, step;
  const T* from;
  T* best;
  std::int64_t* out;

  KOKKOS_FUNCTION static bool wins(C a, C b) { return R == Reduction::max ? a > b : a < b; }
  KOKKOS_FUNCTION static bool same(C a, C b) { return a == b || (!(a == a) && !(b == b)); }
  template <int>
  KOKKOS_FUNCTION Found find(Index row, Index lane, Index lanes, const Found&) const {
    const T* const x = from + kept.offset(row);
    Found found{Fold<R, C>::start(), n};
    each_of_lane(x, n, lane, lanes, [&](T e, Index i) {
      const C next = static_cast<C>(e);  // comes later than what is found
      if (found.place == n || wins(next, found.best))
        found = {next, i};
      else if (!wins(found.best, next))  // equal, or one of them is a NaN
        found = join<0>(found, {next, i});
    });
    return found;
  }
  template <int> KOKKOS_FUNCTION static Found join(const Found& a, const Found& b) {
    const C best = Fold<R, C>::join(a.best, b.best);
    if (!same(a.best, best)) return {best, b.place};
    return {best, same(b.best, best) ? min_of(a.place, b.place) : a.place};
  }
  KOKKOS_FUNCTION void finish(Index row, Index lane, Index, const Found& found) const {
    if (lane != 0) return;
    best[row] = static_cast<T>(found.best);
    out[row] = found.place < n ? first + found.place * step : not_found;
  }
};

template <Reduction R, class T>
void find_extremes(const LocalFind& work, const void* from, void* best, std::int64_t* out) {
  const ReduceShape shape = reduce_shape(work.rows);
  if constexpr (kernels_on_host) {
    constexpr Index most_bytes = Index{1} << 19;  // of a row, so that it stays in the second cache
    Rows rows = rows_of(work.rows, work.steps);
    const bool along = rows.reduced.rank == 1 && rows.reduced.stride[0] == 1 && rows.width == 1;
    const Index elements = rows.reduced.size;
    if (along && elements >= 16 && elements * Index{sizeof(T)} <= most_bytes &&
        rows.strips >= (elements > row_chunk ? host_threads() : 1)) {
      rows.chunk = elements;
      rows.chunks = 1;
      T* const values = static_cast<T*>(best);
      const ExtremeRows<R, T> body{divide_reduce(shape, from, best, 1, strip_width<T>),
                                   {rows, static_cast<const T*>(from), {values, out, work.first}},
                                   values};
      return launch_on_host("tessera::find", rows.strips, max_of(1, 32768 / elements), body);
    }
  }
  if constexpr (!kernels_on_host) {
    const Rows rows = rows_of(work.rows, work.steps);
    const Index n = rows.reduced.size;
    if (rows.reduced.rank == 1 && rows.reduced.stride[0] == 1 && row_parts(rows.kept.size, n) == 1)
      return launch_rows<T>(
          "tessera::find", rows.kept.size, n,
          ExtremeRow<R, T>{rows.kept, n, work.first, rows.step[0], static_cast<const T*>(from),
                           static_cast<T*>(best), out});
  }
  reduce_to<R, T, T>(shape, from, best, 1);
  find_elements<T>(work, from, best, out);
}
template <class T>
void find_extreme_elements(Reduction reduction, const LocalFind& work, const void* from, void* best,
                           std::int64_t* out) {
  if constexpr (OrderedElement<T>) {
    if (reduction == Reduction::max)
      find_extremes<Reduction::max, T>(work, from, best, out);
    else
      find_extremes<Reduction::min, T>(work, from, best, out);
  }
}

struct FindKernels {
  void (*find)(const LocalFind& work, const void* from, const void* best, std::int64_t* out);
  void (*find_extreme)(Reduction reduction, const LocalFind& work, const void* from, void* best,
                       std::int64_t* out);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr FindKernels of() {
    return {&find_elements<T>, &find_extreme_elements<T>};
  }
};

/// Writes a place for each row; `best` and `out` have an element for each row. Communication: none.
inline void find(DType type, const LocalFind& work, const void* from, const void* best,
                 std::int64_t* out) {
  kernels_of<FindKernels>(type).find(work, from, best, out);
}
/// Writes each row's maximum or minimum to `best`, and its place.
inline void find_extreme(DType type, Reduction reduction, const LocalFind& work, const void* from,
                         void* best, std::int64_t* out) {
  kernels_of<FindKernels>(type).find_extreme(reduction, work, from, best, out);
}
}  // namespace tessera::detail
