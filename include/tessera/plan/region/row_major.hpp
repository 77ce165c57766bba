// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The elements that a block of a tensor and a block of its reshape share, whichever dimensions are
/// split, as arithmetic.
///
/// Within a group of dimensions that hold the same elements, a block is a set of row-major indices:
/// those i for which i / unit % extent lies in an interval, for each dimension. Where the units of
/// both sides have a common multiple below the group's size, the indices are digits of that unit,
/// and a block is at most three products of ranges of digits; where they have none, the runs of the
/// side with fewer are cut out of the other side one by one.
///
///     // Columns 2 and 3 of 12 x 8, and rows 4 to 7 of 16 x 6.
///     const detail::RowMajorBlock columns{{12, 8, {0, 12}, 2}, {8, 1, {2, 4}, 1}}, rows{{96, 1, {24, 48}, 1}};
///     Index shared = 0;
///     detail::for_each_shared(columns, rows, 96, [&](const detail::SharedElements& s) { shared += s.size(); });
///     shared == 6;
///
/// Laws: the parts are disjoint and are exactly the shared elements; the same two blocks give the
/// same parts in the same order on every process.
#include <numeric>

#include <tessera/plan/region/region.hpp>

namespace tessera::detail {

/// One dimension of a block in row-major order: the indices i with i / unit % extent in `in`, which
/// are `step` elements apart in memory.
struct RowMajorDim {
  Index extent = 1;
  Index unit = 1;
  Interval in{0, 1};
  Index step = 1;
};
/// A block in row-major order, outermost dimension first; the last has unit 1. Dimensions that are
/// whole are one with the dimension before them.
using RowMajorBlock = FixedVector<RowMajorDim, max_dims>;

/// Elements of two blocks, the source's and the result's: nested loops, outermost first, and the
/// place of the first element in the memory of each.
struct SharedElements {
  struct Loop {
    Index count;
    Index steps[2];
  };
  FixedVector<Loop, 2 * max_dims> loops;
  Index offsets[2] = {0, 0};

  /// Goes through elements first, first + 1, ... of a dimension with these steps.
  constexpr void add(Interval of, Index source_step, Index step) {
    if (of.size() > 1) loops.push_back({of.size(), {source_step, step}});
    offsets[0] += of.lo * source_step;
    offsets[1] += of.lo * step;
  }
  constexpr Index size() const {
    Index product = 1;
    for (const Loop& loop : loops) product = saturating_mul(product, loop.count);
    return product;
  }
};

/// Cuts an interval into at most three products: rows of `unit` elements, and the part of each row;
/// visit(rows, part).
template <class Visit> constexpr void for_each_rows(Interval i, Index unit, const Visit& visit) {
  if (i.size() == 0) return;
  const Index first = quotient(i.lo, unit), last = quotient(i.hi - 1, unit);
  const Interval begins{i.lo - first * unit, first == last ? i.hi - first * unit : unit};
  const Index ends = i.hi - last * unit;
  if (first == last) return visit(Interval{first, first + 1}, begins);
  const Interval whole{begins.lo > 0 ? first + 1 : first, ends < unit ? last : last + 1};
  if (begins.lo > 0) visit(Interval{first, first + 1}, begins);
  if (whole.size() > 0) visit(whole, Interval{0, unit});
  if (ends < unit) visit(Interval{last, last + 1}, Interval{0, ends});
}

/// Visits the elements that a block of the source and one of the result share.
template <class Visit> class Intersection {
 public:
  constexpr explicit Intersection(const Visit& visit) : visit_(visit) {}

  /// Intersects blocks of a group of `length` elements.
  constexpr void meet(const RowMajorBlock& source, const RowMajorBlock& result, Index length,
                      const SharedElements& found) const {
    const RowMajorDim &a = source[0], &b = result[0];
    if (source.size() == 1) return cut(result, 1, 0, a.in, a.step, found);
    if (result.size() == 1) return cut(source, 0, 0, b.in, b.step, found);
    const Index unit = std::lcm(a.unit, b.unit);
    if (unit == length)
      return runs_of(source) <= runs_of(result) ? each_run(source, 0, 0, 0, result, found)
                                                : each_run(result, 1, 0, 0, source, found);
    for_each_rows(a.in, unit / a.unit, [&](Interval source_rows, Interval source_part) {
      for_each_rows(b.in, unit / b.unit, [&](Interval result_rows, Interval result_part) {
        const Interval rows = intersect(source_rows, result_rows);
        if (rows.size() == 0) return;
        SharedElements next = found;
        next.add(rows, unit / a.unit * a.step, unit / b.unit * b.step);
        meet(inside(source, unit, source_part), inside(result, unit, result_part), unit, next);
      });
    });
  }

 private:
  /// Returns a block within one row of `unit` elements of its first dimension.
  static constexpr RowMajorBlock inside(const RowMajorBlock& block, Index unit, Interval part) {
    RowMajorBlock row;
    if (const RowMajorDim& d = block[0]; unit > d.unit || block.size() == 1)
      row.push_back({unit / d.unit, d.unit, part, d.step});
    for (int k = 1; k < block.size(); ++k) row.push_back(block[k]);
    return row;
  }
  /// Returns how many runs of consecutive indices a block has.
  static constexpr Index runs_of(const RowMajorBlock& block) {
    Index runs = 1;
    for (int k = 0; k + 1 < block.size(); ++k) runs = saturating_mul(runs, block[k].in.size());
    return runs;
  }
  /// Cuts a run of the other side's indices out of dimensions k and more of `block`, of side
  /// `side`.
  constexpr void cut(const RowMajorBlock& block, int side, int k, Interval run, Index run_step,
                     const SharedElements& found) const {
    const RowMajorDim& d = block[k];
    for_each_rows(run, d.unit, [&](Interval rows, Interval part) {
      rows = intersect(rows, d.in);
      if (rows.size() == 0) return;
      SharedElements next = found;
      const Index step = d.unit * run_step;
      side == 0 ? next.add(rows, d.step, step) : next.add(rows, step, d.step);
      if (k + 1 == block.size())
        visit_(next);
      else
        cut(block, side, k + 1, part, run_step, next);
    });
  }
  /// Cuts each run of `block`, of side `side`, out of the other side's block.
  constexpr void each_run(const RowMajorBlock& block, int side, int k, Index base,
                          const RowMajorBlock& other, const SharedElements& found) const {
    const RowMajorDim& d = block[k];
    if (k + 1 == block.size()) {
      SharedElements next = found;
      next.offsets[side] -= base * d.step;
      return cut(other, 1 - side, 0, {base + d.in.lo, base + d.in.hi}, d.step, next);
    }
    for (Index row = d.in.lo; row < d.in.hi; ++row) {
      SharedElements next = found;
      next.offsets[side] += row * d.step;
      each_run(block, side, k + 1, base + row * d.unit, other, next);
    }
  }

  const Visit& visit_;
};

/// Visits the elements that two blocks of a group of `length` elements share, as SharedElements.
template <class Visit>
constexpr void for_each_shared(const RowMajorBlock& source, const RowMajorBlock& result,
                               Index length, const Visit& visit) {
  SharedElements found;
  for (const RowMajorDim& d : source) found.offsets[0] -= d.in.lo * d.step;
  for (const RowMajorDim& d : result) found.offsets[1] -= d.in.lo * d.step;
  Intersection<Visit>(visit).meet(source, result, length, found);
}
/// Returns how many elements these are; none where a block is empty.
constexpr Index shared_elements(const RowMajorBlock& source, const RowMajorBlock& result,
                                Index length) {
  Index shared = 0;
  if (!source.empty() && !result.empty())
    for_each_shared(source, result, length, [&](const SharedElements& s) { shared += s.size(); });
  return shared;
}
}  // namespace tessera::detail
