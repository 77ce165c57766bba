// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Joins few updates into a table in place, on the host. The tuples that name one row make a chain,
/// in a ring: no sort, and one pass over the tuples. Each row is joined when the first tuple of its
/// chain comes, or the last one, by turns, so that threads have as much to do; rows are requested
/// before their tuple comes, since they lie anywhere.
///
///     chain_tuples(box, chains);
///     launch("tessera::scatter", n * strips, grain, ScatterChains<Reduction::sum, float>{…});
///
/// Laws: each row joins its updates in their order, whoever joins it.
#include <algorithm>
#include <type_traits>

#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/reduce_shape.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/indexed/detail/index_box.hpp>
#include <tessera/kernel/prefetch.hpp>

namespace tessera::detail {

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

/// Each row's last tuple, or -1; and the tuple that comes after each one in its chain: after the
/// last one, the first.
struct Chains {
  Index rows;
  Index* last;
  Index* next;
};

inline void chain_tuples(const IndexBox& box, const Chains& chains) {
  tessera::detail::fill(chains.last, chains.rows, Index{-1});
  Index at[max_dims], row = 0;
  box.start(0, at);
  for (Index i = 0; i < box.size; ++i, box.next(at))
    if (box.find(at, row) == IndexBox::here) {
      Index& last = chains.last[row];
      chains.next[i] = last < 0 ? i : chains.next[last];
      if (last >= 0) chains.next[last] = i;
      last = i;
    }
}

/// An index is a strip of the row that a tuple names; rows are contiguous, and the updates' too.
template <Reduction R, class T> struct ScatterChains {
  static constexpr Index width = 256;
  using S = Scattering<R, T>;
  using Total = typename S::Total;
  IndexBox box;
  Chains chains;
  Index size, strips;  // of a row
  OffsetBox table;
  const T* updates;
  T* out;

  /// Places are found for many tuples at once, apart from the vectors' loops.
  void run(Index first, Index end) const {
    constexpr Index block = 60;
    const Index tuples = ceil_div(end, strips);
    for (Index tuple = first / strips; tuple < tuples; tuple += block) {
      Place places[block + ahead];
      const Index last = min_of(tuples, tuple + block);
      find(tuple, min_of(tuples, last + ahead), places);
      with_wide_vectors([&]() TESSERA_INLINE {
        for (Index i = tuple; i < last; ++i) {
          if (i + ahead < tuples && places[i + ahead - tuple].to >= 0)
            prefetch_row(out + places[i + ahead - tuple].to, size * Index{sizeof(T)});
          const Place at = places[i - tuple];
          if (at.to < 0) continue;
          const Index begin = max_of(0, first - i * strips) * width,
                      stop = min_of(size, (end - i * strips) * width);
          if (at.update >= 0)
            join_one(updates + at.update, begin, stop, out + at.to);
          else
            join_chain(chains.last[~at.update], begin, stop, out + at.to);
        }
      });
    }
  }

 private:
  static constexpr Index ahead = 4;
  /// Where the row of a tuple begins, or -1 when another one joins it; and the only update, or
  /// ~row.
  struct Place {
    Index to, update;
  };
  [[gnu::noinline]] void find(Index first, Index end, Place* places) const {
    Index at[max_dims], row = 0;
    box.start(first, at);
    for (Index i = first; i < end; ++i, ++places, box.next(at)) {
      *places = {-1, 0};
      if (box.find(at, row) != IndexBox::here) continue;
      // A chain of one says so itself: what `last` holds of a row lies anywhere.
      const bool one = chains.next[i] == i;
      const Index last = one ? i : chains.last[row];
      if (i == (row % 2 == 0 ? chains.next[last] : last))
        *places = {table.offset(row), one ? box.offset(at) : ~row};
    }
  }
  TESSERA_INLINE static void join_one(const T* more, Index begin, Index end, T* to) {
    TESSERA_SIMD
    for (Index j = begin; j < end; ++j) {
      if constexpr (R == Reduction::sum && std::is_floating_point_v<T>)
        to[j] += more[j];  // as a sum in double, rounded
      else
        to[j] = static_cast<T>(S::join(static_cast<Total>(to[j]), more[j]));
    }
  }
  /// Elements begin to end-1 of a row that several tuples name.
  [[gnu::noinline]] void join_chain(Index last, Index begin, Index end, T* to) const {
    Index at[max_dims];
    for (Index j = begin; j < end; j += width) {
      const Index count = min_of(width, end - j);
      Total total[width];
      for (Index k = 0; k < count; ++k) total[k] = static_cast<Total>(to[j + k]);
      for (Index tuple = chains.next[last];; tuple = chains.next[tuple]) {
        box.start(tuple, at);
        const T* const more = updates + box.offset(at) + j;
        with_wide_vectors([&]() TESSERA_INLINE {
          TESSERA_SIMD
          for (Index k = 0; k < count; ++k) total[k] = S::join(total[k], more[k]);
        });
        if (tuple == last) break;
      }
      for (Index k = 0; k < count; ++k) to[j + k] = static_cast<T>(total[k]);
    }
  }
};

}  // namespace tessera::detail
