// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A strip of `width` elements that follow each other in memory, whose lines a softmax computes
/// together: one row of as many lines, or several rows of few lines, whose partial results are
/// joined at the end.
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/math.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

/// Lines that are computed side by side.
struct SoftmaxStrip {
  Index n, inner;        // rows, and the elements between two of them
  Index columns, group;  // lines side by side, and rows in one visit
  static constexpr Index width = 64;

  KOKKOS_FUNCTION Index lanes() const { return columns * group; }
  /// Calls visit(offset, lanes) for the rows, from the first to the last.
  template <class Visit> TESSERA_INLINE void each(const Visit& visit) const {
    Index row = 0;
    for (; lanes() == width && row + group <= n; row += group)
      visit(row * inner, std::integral_constant<Index, width>{});
    for (; row < n; row += group) visit(row * inner, min_of(group, n - row) * columns);
  }
  /// Joins the lanes of each line to its first lane, by halves.
  template <class T, class Join> TESSERA_INLINE void fold(T* lane, const Join& join) const {
    for (Index rest = group; rest > 1;) {
      const Index upper = (rest + 1) / 2, count = (rest - upper) * columns;
      TESSERA_SIMD
      for (Index j = 0; j < count; ++j) lane[j] = join(lane[j], lane[upper * columns + j]);
      rest = upper;
    }
  }
  /// Copies the first lane of each line to its other lanes.
  template <class T> TESSERA_INLINE void spread(T* lane) const {
    for (Index filled = columns; filled < lanes();) {
      const Index count = min_of(filled, lanes() - filled);
      TESSERA_SIMD
      for (Index j = 0; j < count; ++j) lane[filled + j] = lane[j];
      filled += count;
    }
  }
};

}  // namespace tessera::detail
