// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The free parts of a range of offsets: allocation is best fit, and free neighbours are joined.
/// Kernels of some lanes may still use a range that was given back; it is then for these alone.
///
///     FreeRanges free;  free.give(0, 1024);
///     free.take(256) == 0;   free.take(4096) == -1
///
/// Laws: ranges are sorted and disjoint, and those that the same lanes use never touch; no memory
/// is allocated once the vector has grown.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <tessera/base/math.hpp>

namespace tessera::detail {

class FreeRanges {
 public:
  struct Range {
    Index offset;
    Index bytes;
    std::uint64_t lanes = 0;  ///< that may still use it, a bit each
  };

  /// Returns the offset of `bytes` free bytes that no lane but `own` uses, cut from the smallest
  /// range that holds them (the lowest among equals), or -1.
  Index take(Index bytes, std::uint64_t own = 0) {
    auto best = ranges_.end();
    for (auto range = ranges_.begin(); range != ranges_.end(); ++range)
      if (range->bytes >= bytes && (range->lanes & ~own) == 0 &&
          (best == ranges_.end() || range->bytes < best->bytes))
        best = range;
    if (best == ranges_.end()) return -1;
    const Index offset = best->offset;
    if (best->bytes == bytes) {
      ranges_.erase(best);
    } else {
      best->offset += bytes;
      best->bytes -= bytes;
    }
    return offset;
  }

  /// Frees the range [offset, offset + bytes), which was not free before and which `lanes` use.
  void give(Index offset, Index bytes, std::uint64_t lanes = 0) {
    auto after = std::lower_bound(ranges_.begin(), ranges_.end(), offset,
                                  [](const Range& range, Index at) { return range.offset < at; });
    const bool joins_after =
        after != ranges_.end() && offset + bytes == after->offset && lanes == after->lanes;
    const bool joins_before = after != ranges_.begin() && lanes == (after - 1)->lanes &&
                              (after - 1)->offset + (after - 1)->bytes == offset;
    if (joins_before && joins_after) {
      (after - 1)->bytes += bytes + after->bytes;
      ranges_.erase(after);
    } else if (joins_before) {
      (after - 1)->bytes += bytes;
    } else if (joins_after) {
      after->offset = offset;
      after->bytes += bytes;
    } else {
      ranges_.insert(after, {offset, bytes, lanes});
    }
  }

  /// Returns the lanes that use some range.
  std::uint64_t lanes() const {
    std::uint64_t all = 0;
    for (const Range& range : ranges_) all |= range.lanes;
    return all;
  }
  /// Says that no lane uses a range any more.
  void settle() {
    std::vector<Range> before;
    before.swap(ranges_);
    ranges_.reserve(before.capacity());
    for (const Range& range : before) give(range.offset, range.bytes);
  }
  void clear() { ranges_.clear(); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace tessera::detail
