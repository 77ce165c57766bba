// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One dimension of a convolution as plain convolutions, which libraries accept: no dilated base,
/// no cropping, no windows over padding alone. With a dilated base, the results of one residue
/// modulo the dilation read only each n-th tap, and form a convolution with their own stride and
/// dilation (GShard, Appendix A.4).
///
///     bool covered = true;
///     for (const ConvolveSide& side : sides_of(reads, covered)) ...
///
/// Laws: the sides' results are disjoint; results on no side read nothing, and `covered` says that
/// there are none.
#include <vector>

#include <tessera/kernel/detail/convolve_shape.hpp>

namespace tessera::detail {

struct ConvolveSide {
  Index at = 0, step = 1, count = 1;      ///< results
  Index tap = 0, tap_step = 1, taps = 1;  ///< within the kernel
  Index element = 0, elements = 1;        ///< the elements of the input that are read
  Index stride = 1, dilation = 1, low = 0, high = 0;

  /// Returns whether the other side differs only in its place.
  bool reads_as(const ConvolveSide& o) const {
    return count == o.count && elements == o.elements && low == o.low && high == o.high;
  }
};

/// Returns results j0 to j1-1 of a side, with the padding that remains.
inline ConvolveSide part_of_side(const ConvolveSide& whole, Index elements, Index j0, Index j1) {
  ConvolveSide part = whole;
  const Index from = whole.element - whole.low + j0 * whole.stride;
  const Index to = from + (j1 - j0 - 1) * whole.stride + (whole.taps - 1) * whole.dilation + 1;
  part.at += j0 * whole.step;
  part.count = j1 - j0;
  part.low = max_of(0, -from);
  part.high = max_of(0, to - elements);
  part.element = max_of(0, from);
  part.elements = min_of(elements, to) - part.element;
  return part;
}

/// Returns the sides of a dimension; sets `covered` to false if there are results on no side.
inline std::vector<ConvolveSide> sides_of(const WindowReads& dim, bool& covered) {
  std::vector<ConvolveSide> sides;
  const Index step = dim.by_result.step;
  for (Index residue = 0; residue < min_of(step, dim.results); ++residue) {
    const Index position = residue * dim.stride - dim.low;
    const Index tap = dim.by_tap.least(position);
    Index begin = 0, end = 0;
    const Index count = ceil_div(dim.results - residue, step);
    if (tap >= 0 && tap < dim.taps) {
      const ConvolveSide side{.at = residue,
                              .step = step,
                              .tap = tap,
                              .tap_step = dim.by_tap.step,
                              .taps = ceil_div(dim.taps - tap, dim.by_tap.step),
                              .element = (position + tap * dim.dilation) / dim.by_tap.base,
                              .stride = dim.by_result.hop,
                              .dilation = dim.by_tap.hop};
      const Index last = side.element + (side.taps - 1) * side.dilation;
      begin = last < 0 ? ceil_div(-last, side.stride) : 0;
      end = side.element >= dim.elements
                ? 0
                : min_of(count, (dim.elements - 1 - side.element) / side.stride + 1);
      if (begin < end) sides.push_back(part_of_side(side, dim.elements, begin, end));
    }
    covered = covered && begin == 0 && end == count;
  }
  return sides;
}

/// Appends a side of one result without the taps over padding, if any taps remain; else sets
/// `covered` to false.
inline void add_single_side(ConvolveSide side, std::vector<ConvolveSide>& sides, bool& covered) {
  const Index first = ceil_div(side.low, side.dilation);
  const Index left = side.taps - first - ceil_div(side.high, side.dilation);
  covered = covered && left > 0;
  if (left <= 0) return;
  const Index from = side.element - side.low + first * side.dilation;
  side.tap += first * side.tap_step;
  side.taps = left;
  side.dilation = left == 1 ? 1 : side.dilation;
  side.element = from;
  side.elements = (left - 1) * side.dilation + 1;
  side.low = side.high = 0;
  side.stride = 1;
  sides.push_back(side);
}

/// Appends the same results as sides with equal padding at both ends, or with so little excess at
/// the upper end that it makes no further result (or, in a gradient `by_kernel`, where taps and
/// results have changed places, no further tap). Results at the ends that prevent this become sides
/// of their own, without padding. Returns false where there would be too many.
inline bool add_symmetric_sides(ConvolveSide side, Index elements, bool by_kernel, int most_singles,
                                std::vector<ConvolveSide>& sides, bool& covered) {
  if (side.taps == 1) side.dilation = 1;
  for (int singles = 0; side.count > 1; ++singles) {
    // A library makes (elements + 2 * low - span) / stride + 1 results, rounded down.
    const Index excess = side.low - side.high;
    if (excess >= 0 && excess < (by_kernel ? side.dilation : side.stride)) {
      sides.push_back(side);
      return true;
    }
    if (singles >= most_singles) return false;
    const Index last = side.count - 1;
    const bool low = excess > 0;
    add_single_side(part_of_side(side, elements, low ? 0 : last, low ? 1 : last + 1), sides,
                    covered);
    side = part_of_side(side, elements, low ? 1 : 0, low ? last + 1 : last);
  }
  add_single_side(side, sides, covered);
  return true;
}

}  // namespace tessera::detail
