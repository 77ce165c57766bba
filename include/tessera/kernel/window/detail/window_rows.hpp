// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Walks windows over a block with any number of dimensions: on the host part of a row of results
/// at a time, tap by tap, on a device one result.
///
///     RowTaps walk(shape, row, lo, hi);
///     for (RowTap t; walk.next(t);)
///       for (Index j = 0; j < t.count; ++j) sum[t.to + j * t.step] += in[t.from + j * t.hop];
///
/// Laws: a result meets its taps in row-major order, each once, and only taps that read an element.
#include <tessera/kernel/detail/window_reads.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

struct WindowRows {
  /// Results of a row that are walked together.
  static constexpr Index most = 256;

  int rank;  // at least 1
  Index rows, pieces, results, taps;
  WindowReads dim[max_dims];
  Index stride[max_dims];  // of the elements

  Index width() const { return dim[rank - 1].results; }
  /// The number of indices of a launch, and the least for a thread.
  Index indices() const { return kernels_on_host ? rows * pieces : results; }
  Index grain() const {
    return max_of(1, 32768 / max_of(1, saturating_mul(min_of(width(), most), taps)));
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

/// One tap of part of a row: results to + j * step of the part, j < count, read the elements at
/// from + j * hop.
struct RowTap {
  Index tap, from, hop, to, step, count;
};

/// The taps of results lo to hi-1 of a row. Not templates, so that they are compiled once.
class RowTaps {
 public:
  RowTaps(const WindowRows& shape, Index row, Index lo, Index hi) : s_(shape), lo_(lo), hi_(hi) {
    const int last = s_.rank - 1;
    for (int d = last - 1; d >= 0; --d) {
      reads_[d] = s_.dim[d].taps_of(row % s_.dim[d].results);
      row /= s_.dim[d].results;
      done_ = done_ || reads_[d].count == 0;
    }
    step_to(last);
  }

  [[gnu::noinline]] bool next(RowTap& t) {
    const int last = s_.rank - 1;
    const WindowReads& along = s_.dim[last];
    while (!done_) {
      while (tap_ < along.taps) {
        const Progression p = along.results_of(tap_++, lo_, hi_);
        if (p.count == 0) continue;
        t = {outer_ * along.taps + tap_ - 1,
             from_ + p.value * s_.stride[last],
             along.by_result.hop * s_.stride[last],
             p.first - lo_,
             along.by_result.step,
             p.count};
        return true;
      }
      int d = last - 1;
      for (; d >= 0; --d) {
        if (++at_[d] < reads_[d].count) break;
        at_[d] = 0;
      }
      done_ = d < 0;
      step_to(last);
    }
    return false;
  }

 private:
  void step_to(int last) {
    tap_ = outer_ = from_ = 0;
    for (int d = 0; d < last; ++d) {
      outer_ = outer_ * s_.dim[d].taps + reads_[d].first + at_[d] * s_.dim[d].by_tap.step;
      from_ += (reads_[d].value + at_[d] * s_.dim[d].by_tap.hop) * s_.stride[d];
    }
  }
  const WindowRows& s_;
  Index lo_, hi_, tap_ = 0, outer_ = 0, from_ = 0;
  bool done_ = false;
  Progression reads_[max_dims];
  Index at_[max_dims] = {};
};

/// The taps of one result, on a device.
class ResultTaps {
 public:
  KOKKOS_FUNCTION ResultTaps(const WindowRows& shape, Index result) : s_(shape) {
    for (int d = s_.rank - 1; d >= 0; --d) {
      reads_[d] = s_.dim[d].taps_of(result % s_.dim[d].results);
      result /= s_.dim[d].results;
      at_[d] = 0;
      done_ = done_ || reads_[d].count == 0;
    }
  }
  KOKKOS_FUNCTION bool next(Index& tap, Index& from) {
    if (done_) return false;
    tap = from = 0;
    for (int d = 0; d < s_.rank; ++d) {
      tap = tap * s_.dim[d].taps + reads_[d].first + at_[d] * s_.dim[d].by_tap.step;
      from += (reads_[d].value + at_[d] * s_.dim[d].by_tap.hop) * s_.stride[d];
    }
    int d = s_.rank - 1;
    for (; d >= 0; --d) {
      if (++at_[d] < reads_[d].count) break;
      at_[d] = 0;
    }
    done_ = d < 0;
    return true;
  }

 private:
  const WindowRows& s_;
  Progression reads_[max_dims];
  Index at_[max_dims];
  bool done_ = false;
};

}  // namespace tessera::detail
