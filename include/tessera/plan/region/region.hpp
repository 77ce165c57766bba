// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Regions: the elements that each process needs of a tensor that others own, and their location,
/// as arithmetic. Windows, halos, slices, pads, reversals, rolls, concatenations and reshapes are
/// all regions; plan/region/region_transfer.hpp says who sends what to whom.
///
/// A process needs one interval in each dimension, in coordinates of the region: the block of the
/// result that it makes, or all elements that a window reads for that block. A map gives, for each
/// coordinate of the region, an element of the source or none; coordinates without an element are
/// filled.
///
///     detail::RegionDim d = detail::slice_dim(100, 3, 2, 40);      // elements 3, 5, 7 ... (plan/region/shape.hpp)
///     detail::needed(d, mesh, at);   detail::for_each_strand(d, {10, 20}, {0, 40}, visit)
///
/// Laws: every coordinate of a region maps to at most one element; strands of disjoint intervals of
/// the source are disjoint, and the strands of the whole source cover all coordinates that are not
/// filled.
#include <tessera/base/lazy_vector.hpp>
#include <tessera/base/window.hpp>
#include <tessera/spec/halo.hpp>

namespace tessera::detail {

/// One dimension of a region.
struct RegionDim {
  enum class Rule : std::uint8_t {
    block,     ///< the interval is the process's block of the result
    window,    ///< the elements that the window reads for the block; coordinates are the source's
    extended,  ///< the block, window.low more below and window.high more above, unless it is empty
    readers,   ///< all windows that read an element of the block; coordinates are the windows'
    neighbours,  ///< all elements that those windows read
    taps         ///< the taps that reach an element from the block; coordinates are the kernel's
  };
  /// Which of the block's results a window makes: all; those that read only the process's own
  /// elements of the source (inner); or those before or after these.
  enum class Part : std::uint8_t { all, inner, low, high };
  /// The turn in which a region is taken along this dimension, when it is taken by several
  /// exchanges in turn.
  enum class Turn : std::uint8_t {
    now,
    before,  ///< each process already has all that it needs, and others take from that
    later    ///< each process needs, for now, only elements that it owns
  };
  Rule rule = Rule::block;
  Part part = Part::all;
  Boundary boundary = Boundary::none;
  // The result: `extent` elements in units of `unit` coordinates, split over `axes`; a window's
  // taps are split over `tap_axes`.
  AxisList axes{};
  AxisList tap_axes{};
  Index extent = 0;
  Index unit = 1;
  Window window{};
  // The source: `source_extent` elements in units of `source_unit`, split over `source_axes`.
  AxisList source_axes{};
  Index source_extent = 0;
  Index source_unit = 1;
  // Coordinate v lies at position q = v * stride + offset of the source, which has an element at
  // every multiple of `dilation`. stride is 1 unless dilation is 1 and the boundary a plain one.
  Index stride = 1;
  Index offset = 0;
  Index dilation = 1;
  /// Coordinates outside this interval stay unfilled: it is the part of the result into which the
  /// source is put.
  Interval within{-everywhere, everywhere};
  Turn turn = Turn::now;
  /// This dimension of source and result is, in row-major order, within the dimension before it:
  /// they are one group, whose sides have as many elements, in the same order, and other extents
  /// (plan/region/regroup.hpp). Groups are plain blocks.
  bool inner = false;

  static constexpr Index everywhere = max_int64 / 4;
  constexpr Index source_size() const { return source_extent * source_unit; }
  constexpr AxisSet used() const { return axes.set() | tap_axes.set(); }
  constexpr bool operator==(const RegionDim&) const = default;
};

using Region = LazyVector<RegionDim, max_dims>;
/// The most regions of a plan.
inline constexpr int max_regions = 12;

/// Coordinates at, at + step, ... of a region, which map to the elements source, source +
/// source_step, ...; step > 0.
struct Strand {
  Index at = 0;
  Index step = 1;
  Index count = 0;
  Index source = 0;
  Index source_step = 1;
  constexpr Interval coordinates() const {
    return {at, count > 0 ? at + (count - 1) * step + 1 : at};
  }
  constexpr Interval elements() const {
    if (count <= 0) return {source, source};
    const Index last = source + (count - 1) * source_step;
    return {min_of(source, last), max_of(source, last) + 1};
  }
  /// Returns the part from the first-th to before the last-th pair.
  constexpr Strand part(Index first, Index last) const {
    first = max_of(0, first);
    last = min_of(count, last);
    if (last <= first) return {at, step, 0, source, source_step};
    return {at + first * step, step, last - first, source + first * source_step, source_step};
  }
  /// Returns the part whose coordinates are within `interval`.
  constexpr Strand within(Interval interval) const {
    return part(ceil_quotient(interval.lo - at, step),
                floor_quotient(interval.hi - 1 - at, step) + 1);
  }
  /// Returns the part whose elements are within `interval`.
  constexpr Strand of_elements(Interval interval) const {
    if (source_step > 0)
      return part(ceil_quotient(interval.lo - source, source_step),
                  floor_quotient(interval.hi - 1 - source, source_step) + 1);
    return part(ceil_quotient(source - interval.hi + 1, -source_step),
                floor_quotient(source - interval.lo, -source_step) + 1);
  }
  constexpr bool operator==(const Strand&) const = default;
};
/// A product of strands, one for each dimension. Where dimensions come in groups: loops, whose
/// coordinates and elements are places in the memory of the two blocks.
using RegionPiece = FixedVector<Strand, max_dims>;

/// Returns the coordinates needed to make the results `block`, with all or some of the taps.
constexpr Interval needed_for(const RegionDim& d, Interval block, Interval taps) {
  if (block.size() == 0 || taps.size() == 0) return {0, 0};
  switch (d.rule) {
    case RegionDim::Rule::block:
      break;
    case RegionDim::Rule::window:
      return reach(block, d.source_extent, d.window,
                   hitting(block, d.window, kernel_taps(d.window, taps)));
    case RegionDim::Rule::taps:
      return kernel_taps(d.window, hitting(block, d.window, kernel_taps(d.window, taps)));
    case RegionDim::Rule::extended:
      return {block.lo - d.window.low, block.hi + d.window.high};
    case RegionDim::Rule::readers:
      return read_by(block, result_extent(d.extent, d.window), d.window);
    case RegionDim::Rule::neighbours:
      return reach(read_by(block, result_extent(d.extent, d.window), d.window), d.extent, d.window);
  }
  return {block.lo * d.unit, block.hi * d.unit};
}
/// Returns the smallest interval with all results that need some of `coordinates`.
constexpr Interval results_that_need(const RegionDim& d, Interval coordinates, Interval taps) {
  Interval results;
  // Between the elements that two neighbours read there may be some that neither reads.
  const auto around = [](Interval i) { return Interval{i.lo - 1, i.hi + 1}; };
  switch (d.rule) {
    case RegionDim::Rule::block:
      results = {floor_quotient(coordinates.lo, d.unit), ceil_quotient(coordinates.hi, d.unit)};
      break;
    case RegionDim::Rule::window:
      taps = kernel_taps(d.window, taps);
      results = {ceil_quotient(coordinates.lo * d.window.base_dilation + d.window.low -
                                   (taps.hi - 1) * d.window.window_dilation,
                               d.window.stride),
                 floor_quotient((coordinates.hi - 1) * d.window.base_dilation + d.window.low -
                                    taps.lo * d.window.window_dilation,
                                d.window.stride) +
                     1};
      // Between two positions of a strided window a block may need elements that neither result
      // reads.
      results = {results.lo - 1, results.hi + 1};
      break;
    case RegionDim::Rule::taps:
      results = {0, d.extent};
      break;
    case RegionDim::Rule::extended:
      results = {coordinates.lo - d.window.high, coordinates.hi + d.window.low};
      break;
    case RegionDim::Rule::readers:
      results = around(reach(coordinates, d.extent, d.window));
      break;
    case RegionDim::Rule::neighbours:
      results =
          around(reach(around(read_by(coordinates, result_extent(d.extent, d.window), d.window)),
                       d.extent, d.window));
      break;
  }
  return intersect(results, {0, d.extent});
}
constexpr Interval taps_of(const RegionDim& d, const MeshShape& mesh, const Coordinates& at) {
  return block(d.window.size, d.tap_axes, mesh, at);
}

/// Returns the results that the process at `at` makes with the region: its block, or a part of it.
constexpr Interval results(const RegionDim& d, const MeshShape& mesh, const Coordinates& at) {
  const Interval all = block(d.extent, d.axes, mesh, at);
  if (d.part == RegionDim::Part::all) return all;
  const Interval own = block(d.source_extent, d.source_axes, mesh, at);
  const Window& w = d.window;
  const auto within = [](Index i, Index lo, Index hi) { return max_of(lo, min_of(i, hi)); };
  const Index first =
      own.lo == 0 ? all.lo : ceil_quotient((own.lo - 1) * w.base_dilation + 1 + w.low, w.stride);
  const Index last =
      own.hi == d.source_extent
          ? all.hi
          : floor_quotient(own.hi * w.base_dilation - 1 + w.low - (w.size - 1) * w.window_dilation,
                           w.stride) +
                1;
  const Index begin = own.size() == 0 ? all.lo : within(first, all.lo, all.hi);
  const Index end = own.size() == 0 ? all.lo : within(last, begin, all.hi);
  switch (d.part) {
    case RegionDim::Part::low:
      return {all.lo, begin};
    case RegionDim::Part::high:
      return {end, all.hi};
    default:
      return {begin, end};
  }
}

/// Returns the process's block of the source.
constexpr Interval source_block(const RegionDim& d, const MeshShape& mesh, const Coordinates& at) {
  const Interval mine = block(d.source_extent, d.source_axes, mesh, at);
  return {mine.lo * d.source_unit, mine.hi * d.source_unit};
}
constexpr Box source_block(const Region& region, const MeshShape& mesh, const Coordinates& at) {
  Box box;
  for (const RegionDim& d : region) box.side.push_back(source_block(d, mesh, at));
  return box;
}
/// Returns the coordinates that the process at `at` needs, in this turn; {0, 0} when its block is
/// empty.
constexpr Interval needed(const RegionDim& d, const MeshShape& mesh, const Coordinates& at) {
  const Interval all = detail::needed_for(d, results(d, mesh, at), detail::taps_of(d, mesh, at));
  return d.turn == RegionDim::Turn::later ? intersect(all, source_block(d, mesh, at)) : all;
}
constexpr Box needed(const Region& region, const MeshShape& mesh, const Coordinates& at) {
  Box box;
  for (const RegionDim& d : region) box.side.push_back(needed(d, mesh, at));
  return box;
}
/// Returns all coordinates that any process needs.
constexpr Interval needed_by_all(const RegionDim& d) {
  return detail::needed_for(d, {0, d.extent}, {0, d.window.size});
}
/// Returns the elements of the source that the process at `at` has and others may take.
constexpr Interval owned(const RegionDim& d, const MeshShape& mesh, const Coordinates& at) {
  return d.turn == RegionDim::Turn::now ? source_block(d, mesh, at) : needed(d, mesh, at);
}
constexpr Box owned(const Region& region, const MeshShape& mesh, const Coordinates& at) {
  Box box;
  for (const RegionDim& d : region) box.side.push_back(owned(d, mesh, at));
  return box;
}
/// Returns the axes that split the source along the dimensions taken in this turn.
constexpr AxisSet source_axes(const Region& region) {
  AxisSet axes;
  for (const RegionDim& d : region)
    if (d.turn == RegionDim::Turn::now) axes = axes | d.source_axes.set();
  return axes;
}
/// Returns the axes that split the needed coordinates.
constexpr AxisSet needing_axes(const Region& region) {
  AxisSet axes;
  for (const RegionDim& d : region) axes = axes | d.used();
  return axes;
}

/// Returns the strand of all that a process needs in a dimension that is not taken in this turn.
constexpr Strand kept_strand(Interval mine) { return {mine.lo, 1, mine.size(), mine.lo, 1}; }

/// Calls visit(strand) for each strand of `coordinates` that maps to `elements` of the source, in
/// order of the images of the source.
template <class Visit>
constexpr void for_each_strand(const RegionDim& d, Interval elements, Interval coordinates,
                               const Visit& visit) {
  coordinates = intersect(coordinates, d.within);
  if (elements.size() == 0 || coordinates.size() == 0) return;
  const Index n = d.source_size();
  const auto give = [&](const Strand& strand) {
    if (const Strand part = strand.within(coordinates); part.count > 0) visit(part);
  };
  // An image of the source: element i of [lo, hi) is at position `base` + i (or - i).
  const auto image = [&](Index base, Interval part, bool mirrored) {
    if (part.size() == 0) return;
    if (mirrored)
      give({base - (part.hi - 1) - d.offset, 1, part.size(), part.hi - 1, -1});
    else
      give({base + part.lo - d.offset, 1, part.size(), part.lo, 1});
  };
  const Interval positions{coordinates.lo + d.offset, coordinates.hi + d.offset};
  switch (d.boundary) {
    case Boundary::none:
    case Boundary::constant: {
      if (d.dilation > 1)
        return give(
            {elements.lo * d.dilation - d.offset, d.dilation, elements.size(), elements.lo, 1});
      const Index width = d.stride > 0 ? d.stride : -d.stride;
      const Index first = d.stride > 0 ? ceil_quotient(elements.lo - d.offset, width)
                                       : ceil_quotient(d.offset - elements.hi + 1, width);
      const Index last = d.stride > 0 ? floor_quotient(elements.hi - 1 - d.offset, width)
                                      : floor_quotient(d.offset - elements.lo, width);
      return give({first, 1, last - first + 1, first * d.stride + d.offset, d.stride});
    }
    case Boundary::periodic:
      for (Index m = floor_quotient(positions.lo, n); m * n < positions.hi; ++m)
        image(m * n, elements, false);
      return;
    case Boundary::reflected: {
      if (n == 1) {  // mirrors on both sides of a single element
        for (Index q = positions.lo; q < positions.hi; ++q) image(q, elements, false);
        return;
      }
      const Index period = 2 * (n - 1);
      const Interval inner = intersect(elements, {1, n - 1});
      for (Index m = floor_quotient(positions.lo, period); m * period < positions.hi + period;
           ++m) {
        image(m * period, inner, true);
        image(m * period, elements, false);
      }
      return;
    }
    case Boundary::symmetric:
      for (Index m = floor_quotient(positions.lo, 2 * n); m * 2 * n < positions.hi + 2 * n; ++m) {
        image(m * 2 * n - 1, elements, true);
        image(m * 2 * n, elements, false);
      }
      return;
  }
}
}  // namespace tessera::detail
