// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Walks windows over a block of any rank: on the host a piece of a row of results at a time, tap
/// by tap, on a device one result.
///
///     shape.walk_row(row, lo, hi, [&](Index tap, Index from, Index hop, Index to, Index step, Index count) {
///       for (Index j = 0; j < count; ++j) sum[to + j * step] += in[from + j * hop];
///     });
///
/// Laws: a result meets its taps in row-major order, each once, and none that reads no element.
#include <tessera/kernel/detail/window_reads.hpp>

namespace tessera::detail {

struct WindowRows {
  /// Results of a row that are walked together.
  static constexpr Index most = 256;

  int rank;  // at least 1
  Index rows, pieces, results, taps;
  WindowReads dim[max_dims];
  Index stride[max_dims];  // of the elements

  Index width() const { return dim[rank - 1].results; }

  /// Calls f(tap, from, hop, to, step, count) for each tap: results lo + to + j * step of the row,
  /// j < count, read the elements at from + j * hop.
  template <class F> void walk_row(Index row, Index lo, Index hi, const F& f) const {
    const int last = rank - 1;
    Progression reads[max_dims];
    for (int d = last - 1; d >= 0; --d) {
      reads[d] = dim[d].taps_of(row % dim[d].results);
      row /= dim[d].results;
      if (reads[d].count == 0) return;
    }
    const WindowReads& along = dim[last];
    Index at[max_dims] = {};
    for (;;) {
      Index tap = 0, from = 0;
      for (int d = 0; d < last; ++d) {
        tap = tap * dim[d].taps + reads[d].first + at[d] * dim[d].by_tap.step;
        from += (reads[d].value + at[d] * dim[d].by_tap.hop) * stride[d];
      }
      for (Index t = 0; t < along.taps; ++t) {
        const Progression p = along.results_of(t, lo, hi);
        if (p.count > 0)
          f(tap * along.taps + t, from + p.value * stride[last], along.by_result.hop * stride[last],
            p.first - lo, along.by_result.step, p.count);
      }
      int d = last - 1;
      for (; d >= 0; --d) {
        if (++at[d] < reads[d].count) break;
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }

  /// Calls f(tap, from) for each element that a result reads.
  template <class F> KOKKOS_FUNCTION void walk_result(Index result, const F& f) const {
    Progression reads[max_dims];
    Index at[max_dims] = {};
    for (int d = rank - 1; d >= 0; --d) {
      reads[d] = dim[d].taps_of(result % dim[d].results);
      result /= dim[d].results;
      if (reads[d].count == 0) return;
    }
    for (;;) {
      Index tap = 0, from = 0;
      for (int d = 0; d < rank; ++d) {
        tap = tap * dim[d].taps + reads[d].first + at[d] * dim[d].by_tap.step;
        from += (reads[d].value + at[d] * dim[d].by_tap.hop) * stride[d];
      }
      f(tap, from);
      int d = rank - 1;
      for (; d >= 0; --d) {
        if (++at[d] < reads[d].count) break;
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }
};

inline WindowRows window_rows(const Extents& elements, const Extents& strides,
                              const Extents& results, const WindowList& windows) {
  WindowRows w{0, 1, 0, 1, 1, {}, {}};
  for (int d = 0; d < windows.size(); ++d) {
    w.dim[w.rank] = window_reads(elements[d], results[d], windows[d]);
    w.stride[w.rank++] = strides[d];
    w.results *= results[d];
    w.taps *= windows[d].size;
  }
  if (w.rank == 0) {
    w.dim[0] = window_reads(1, 1, {});
    w.stride[w.rank++] = 1;
  }
  w.rows = w.results == 0 ? 0 : w.results / w.width();
  w.pieces = ceil_div(w.width(), WindowRows::most);
  return w;
}

}  // namespace tessera::detail
