// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Work on one process's own memory at places that are known only at run time: elements taken at
/// indices, elements scattered to them, a slice that starts anywhere. Planners describe it, kernels
/// carry it out. All offsets and strides count elements.
///
///     detail::clamped_start(7, 8, 3) == 5;             // 3 of 8, from 7
///     detail::clamped_start(-2, 8, 3) == 0             // from -2
///
/// Laws: the work stays within the process's blocks, whatever the indices.
#include <cstdint>

#include <tessera/base/local_work.hpp>

namespace tessera {

/// How an index outside its dimension is treated (negative indices lie outside; nothing wraps). An
/// index that begins a window lies outside where the window does not lie in the dimension whole.
enum class OutOfRange : std::uint8_t {
  clamp,  ///< the nearest index within the dimension replaces it
  drop,   ///< a take gives zero there, a scatter leaves its update out
};

namespace detail {

/// Most tensors of indices, or columns of one such tensor, that one operator takes.
inline constexpr int max_indices = 6;

/// Indices into a dimension, of which the process holds `held`; an index advances by `step`
/// elements of the table. They lie in one tensor of indices, from element `offset` on. Where an
/// index begins a window, `window` is the dimension of the tuples along it, and `held` is counted
/// from the window's first element that this process has.
struct LocalIndex {
  Index extent = 0;  ///< indices from 0 to extent - 1 lie within; of windows, their beginnings
  Interval held{};
  Index step = 0;
  Extents strides{};  ///< by the dimensions of the tuples
  int tensor = 0;
  Index offset = 0;
  int window = -1;
  constexpr bool operator==(const LocalIndex&) const = default;
};

/// Tuples of indices, each of which names a row of a table: a take reads it, a scatter writes it.
/// There are dimensions of the tuples and dimensions of a row; where a dimension belongs to both
/// the tuples and the table, both advance along it together. A row lies at table[sum tuple *
/// in_table + sum (index + place in the window - held.lo) * step].
struct LocalIndexed {
  Extents tuples{};
  Extents strides{};   ///< of the tuples, in a take's result or a scatter's updates
  Extents in_table{};  ///< the same in the table: 0 for dimensions that only indices have
  FixedVector<LocalIndex, max_indices> indices{};
  Extents row{};
  Extents row_strides{};
  Extents row_in_table{};
  OutOfRange out_of_range = OutOfRange::clamp;
  constexpr bool operator==(const LocalIndexed&) const = default;
};

/// What a scatter begins with: the elements of its operand, the identity of the reduction, or
/// nothing at all, where another process's part begins with the operand.
enum class ScatterStart : std::uint8_t { operand, identity, nothing };

/// Joins updates into the rows of a table. Steps and in_table of `rows` count rows of the table in
/// row-major order, not elements: row i is at sum i * table_strides.
struct LocalScatter {
  LocalIndexed rows{};
  Extents table{};
  Extents table_strides{};
  ScatterStart start = ScatterStart::operand;
  bool updates = true;  ///< this process's part includes the updates

  constexpr Index bins() const { return volume(table); }
  /// Returns how many integers the kernel needs to order the updates by their rows.
  constexpr Index integers() const {
    return bins() == 0 ? 0
                       : saturating_add(saturating_add(bins() + 1, ceil_div(bins(), chunk)),
                                        volume(rows.tuples));
  }
  static constexpr Index chunk = 4096;  ///< rows whose tuples are counted together
  constexpr bool operator==(const LocalScatter&) const = default;
};

/// Writes one where an index says, zero elsewhere: along dimension `along` of a contiguous block of
/// `extents`, which begins at `first`.
struct LocalOneHot {
  Extents extents{};
  Extents strides{};  ///< of the indices; 0 along `along`
  int along = 0;
  Index first = 0;
  constexpr bool operator==(const LocalOneHot&) const = default;
};

/// A slice of `size` elements within `extent`, and this process's blocks of the whole and of the
/// slice (in the slice's own coordinates); the whole's block lies with `strides` or, without
/// strides, row-major.
struct LocalSlide {
  Extents extent{};
  Extents size{};
  Box whole{};
  Box window{};
  Extents strides{};
  constexpr bool operator==(const LocalSlide&) const = default;
};

/// Returns where a slice of `size` begins when it is asked to begin at `start`: it stays within the
/// extent (XLA's rule).
constexpr Index clamped_start(Index start, Index extent, Index size) {
  return max_of(0, min_of(start, extent - size));
}

/// Returns the copy, from the whole's block to the slice's, of the elements that this process holds
/// of both when the slice begins at `start`; with `back`, in the other direction.
constexpr StridedCopy slide_copy(const LocalSlide& work, const Extents& start, bool back) {
  StridedCopy copy;
  Extents in_whole = work.strides.empty() ? row_major_strides(work.whole.extents()) : work.strides;
  Extents in_window = row_major_strides(work.window.extents());
  Index whole_offset = 0, window_offset = 0;
  for (int d = 0; d < work.whole.rank(); ++d) {
    const Index begin = clamped_start(start[d], work.extent[d], work.size[d]);
    const Interval whole = work.whole[d], window = work.window[d];
    const Interval both = intersect({window.lo + begin, window.hi + begin}, whole);
    copy.extents.push_back(both.size());
    if (both.size() == 0) continue;
    whole_offset += (both.lo - whole.lo) * in_whole[d];
    window_offset += (both.lo - begin - window.lo) * in_window[d];
  }
  copy.from_offset = back ? window_offset : whole_offset;
  copy.from_strides = back ? in_window : in_whole;
  copy.to_offset = back ? whole_offset : window_offset;
  copy.to_strides = back ? in_whole : in_window;
  return copy;
}

}  // namespace detail
}  // namespace tessera
