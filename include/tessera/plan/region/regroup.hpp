// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Regions whose dimensions come in groups: source and result hold the same elements in row-major
/// order under other extents (plan/op/shape/reshape.hpp), and any dimensions of both are split. Who
/// sends what to whom, as plan/region/region_transfer.hpp asks; a piece has its places in the
/// memory of the two blocks, since it may be no box of either.
///
///     detail::regroups(region) == false;     // a region of boxes
///
/// Laws: those of plan/region/region_transfer.hpp.
#include <tessera/plan/move/transfer.hpp>
#include <tessera/plan/region/row_major.hpp>

namespace tessera::detail {

/// Returns whether a region's dimensions come in groups, in row-major order.
constexpr bool regroups(const Region& region) {
  for (const RegionDim& d : region)
    if (d.inner) return true;
  return false;
}
/// Returns the first dimension of the group that ends before dimension `end`.
constexpr int group_before(const Region& region, int end) {
  int first = end - 1;
  while (region[first].inner) --first;
  return first;
}
/// Returns one side's block of dimensions [first, end) of a region, a group, on the process at
/// `at`; no dimensions where it is empty. `step`: between neighbours in memory, which becomes that
/// of the dimension before the group.
constexpr RowMajorBlock row_major_block(const Region& region, int first, int end, bool source,
                                        const MeshShape& mesh, const Coordinates& at, Index& step) {
  RowMajorBlock inner_first{{1, 1, {0, 1}, step}};
  Index unit = 1;
  for (int k = end - 1; k >= first; --k) {
    const RegionDim& d = region[k];
    const Index n = source ? d.source_extent : d.extent;
    const Interval in = block(n, source ? d.source_axes : d.axes, mesh, at);
    if (in.size() == 0) return {};
    RowMajorDim& last = inner_first.back();
    if (last.in.size() == last.extent)
      last = {n * last.extent, last.unit, {in.lo * last.extent, in.hi * last.extent}, last.step};
    else if (n > 1)
      inner_first.push_back({n, unit, in, step});
    unit *= n;
    step *= in.size();
  }
  RowMajorBlock block;
  for (int k = inner_first.size() - 1; k >= 0; --k) block.push_back(inner_first[k]);
  return block;
}
/// Returns the number of elements of the group of dimensions [first, end).
constexpr Index group_length(const Region& region, int first, int end) {
  Index length = 1;
  for (int k = first; k < end; ++k) length *= region[k].extent;
  return length;
}
/// Returns, as an upper limit, how many runs of the group of dimensions [first, end) are cut one by
/// one.
constexpr Index runs_of_group(const Region& region, int first, int end, const MeshShape& mesh) {
  const Coordinates origin(mesh.rank(), 0);
  RowMajorBlock sides[2];
  for (int side = 0; side < 2; ++side) {
    Index step = 1;
    sides[side] = row_major_block(region, first, end, side == 0, mesh, origin, step);
  }
  Index length = group_length(region, first, end);
  int heads[2] = {0, 0};
  const auto unit = [&](int side) { return sides[side][heads[side]].unit; };
  const auto run = [&](int side) { return heads[side] + 1 == sides[side].size(); };
  while (!run(0) && !run(1)) {
    const Index next = std::lcm(unit(0), unit(1));
    if (next == length)
      return min_of(quotient(length, sides[0].back().extent),
                    quotient(length, sides[1].back().extent));
    length = next;
    for (int side = 0; side < 2; ++side) heads[side] += unit(side) == length;
  }
  return 0;
}
/// Returns whether the process at `at` has all that it needs of the group of dimensions [first,
/// end).
constexpr bool has_its_group(const Region& region, int first, int end, const MeshShape& mesh,
                             const Coordinates& at) {
  Index source_step = 1, needs = 1;
  const RowMajorBlock source = row_major_block(region, first, end, true, mesh, at, source_step);
  const RowMajorBlock result = row_major_block(region, first, end, false, mesh, at, needs);
  if (result.empty()) return true;
  return shared_elements(source, result, group_length(region, first, end)) == needs;
}

/// Visits the pieces that the process at `self` sends (or receives), with their peers: those of the
/// groups from the last to the first, whose product a piece is.
template <class Visit> class RegroupedPieces {
 public:
  constexpr RegroupedPieces(const Region& region, const MeshShape& mesh, const Coordinates& self,
                            bool sends, const Visit& visit)
      : region_(region), mesh_(mesh), self_(self), sends_(sends), visit_(visit) {
    for (const RegionDim& d : region) free_ = free_ | d.source_axes.set();
  }
  constexpr void visit(Coordinates& at) const { groups_before(region_.size(), at, {1, 1}, {}); }

 private:
  struct Steps {
    Index source, result;
  };

  constexpr void groups_before(int end, Coordinates& at, const Steps& steps,
                               const SharedElements& inner) const {
    if (end == 0) return emit(at, inner);
    const int first = group_before(region_, end);
    const Index length = group_length(region_, first, end);
    Index own_step = sends_ ? steps.source : steps.result;
    const RowMajorBlock own = row_major_block(region_, first, end, sends_, mesh_, self_, own_step);
    if (own.empty()) return;
    Interval hull{0, 1};
    for (const RowMajorDim& d : own) {
      hull.lo += d.in.lo * d.unit;
      hull.hi += (d.in.hi - 1) * d.unit;
    }
    peers(first, end, length, hull, at, [&] {
      Index other_step = sends_ ? steps.result : steps.source;
      const RowMajorBlock other =
          row_major_block(region_, first, end, !sends_, mesh_, at, other_step);
      if (other.empty()) return;
      const Steps next = sends_ ? Steps{own_step, other_step} : Steps{other_step, own_step};
      for_each_shared(sends_ ? own : other, sends_ ? other : own, length,
                      [&](SharedElements piece) {
                        for (const auto& loop : inner.loops) piece.loops.push_back(loop);
                        for (int side = 0; side < 2; ++side)
                          piece.offsets[side] += inner.offsets[side];
                        groups_before(first, at, next, piece);
                      });
    });
  }
  /// Visits the members whose block of dimensions [d, end), rows of `length` elements, may have
  /// indices within `hull`.
  template <class Visit2>
  constexpr void peers(int d, int end, Index length, Interval hull, Coordinates& at,
                       const Visit2& visit) const {
    if (d == end) return visit();
    const Index n = sends_ ? region_[d].extent : region_[d].source_extent, unit = length / n;
    const Interval rows{quotient(hull.lo, unit), quotient(hull.hi - 1, unit) + 1};
    const Interval rest = rows.size() == 1
                              ? Interval{hull.lo - rows.lo * unit, hull.hi - rows.lo * unit}
                              : Interval{0, unit};
    for_each_part({0, n}, rows, sends_ ? region_[d].axes : region_[d].source_axes, 0, free_, mesh_,
                  at, [&](Interval) { peers(d + 1, end, unit, rest, at, visit); });
  }
  /// Visits a piece in as few dimensions as it takes, or in parts where these are too many.
  constexpr void emit(const Coordinates& at, SharedElements piece) const {
    decltype(piece.loops) loops;
    for (const auto& loop : piece.loops) {
      auto* outer = loops.empty() ? nullptr : &loops.back();
      if (outer != nullptr && outer->steps[0] == loop.count * loop.steps[0] &&
          outer->steps[1] == loop.count * loop.steps[1])
        *outer = {outer->count * loop.count, {loop.steps[0], loop.steps[1]}};
      else
        loops.push_back(loop);
    }
    piece.loops = loops;
    if (loops.size() > max_dims) {
      const auto outer = loops[0];
      piece.loops.clear();
      for (int k = 1; k < loops.size(); ++k) piece.loops.push_back(loops[k]);
      for (Index i = 0; i < outer.count; ++i) {
        emit(at, piece);
        for (int side = 0; side < 2; ++side) piece.offsets[side] += outer.steps[side];
      }
      return;
    }
    RegionPiece strands;
    for (const auto& loop : loops)
      strands.push_back({0, loop.steps[1], loop.count, 0, loop.steps[0]});
    if (strands.empty()) strands.push_back({0, 1, 1, 0, 1});
    strands[0].source = piece.offsets[0];
    strands[0].at = piece.offsets[1];
    visit_(at, strands);
  }

  const Region& region_;
  const MeshShape& mesh_;
  const Coordinates& self_;
  bool sends_;
  const Visit& visit_;
  AxisSet free_;
};
}  // namespace tessera::detail
