// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of operators that move elements across the borders of blocks and compute nothing:
/// slice, pad, reverse, roll, shift, concatenate, update (of tensors, or of slices of them). Each
/// says, dimension by dimension, which element of an operand an element of the result is
/// (plan/region.hpp); the rest is one planner.
///
///     const Taking rows = slice_of({100, 8}, {3, 0}, {83, 8}, {2, 1});
///     Plan p = plan_regions(rows, {x}, out, mesh, process);       // rows.extents == {40, 8}
///
/// Laws: an element goes from its owner to each process that has it in its block of the result, and
/// nowhere else; nothing is communicated where every process has what it needs.
#include <optional>

#include <tessera/plan/builder.hpp>
#include <tessera/plan/moving_way.hpp>
#include <tessera/plan/together.hpp>

namespace tessera {

/// One region for each operand.
using Regions = FixedVector<Region, max_operands>;
/// Dimensions of a tensor, by number.
using Dimensions = FixedVector<int, max_dims>;

/// A dimension of n elements that stays as it is.
constexpr RegionDim same_dim(Index n) {
  RegionDim d;
  d.extent = d.source_extent = n;
  return d;
}
/// Elements first, first + step, ... of n, `count` of them; step may be negative.
constexpr RegionDim slice_dim(Index n, Index first, Index step, Index count) {
  RegionDim d = same_dim(n);
  d.boundary = Boundary::constant;
  d.extent = count;
  d.offset = first;
  d.stride = step;
  return d;
}
/// n elements with `interior` positions between two, `low` before the first and `high` behind the
/// last; negative ones crop. `dilation` is interior + 1.
constexpr RegionDim pad_dim(Index n, Index low, Index high, Index interior) {
  RegionDim d = same_dim(n);
  d.boundary = Boundary::constant;
  d.extent = max_of(0, dilated(n, interior + 1) + low + high);
  d.offset = -low;
  d.dilation = interior + 1;
  return d;
}
constexpr RegionDim reverse_dim(Index n) { return slice_dim(n, n - 1, -1, n); }
/// Element i of the result is element i - by of the operand, round and round.
constexpr RegionDim roll_dim(Index n, Index by) {
  RegionDim d = same_dim(n);
  if (n == 0) return d;
  d.boundary = Boundary::periodic;
  d.offset = by % n > 0 ? n - by % n : -(by % n);
  return d;
}
/// Element i of the result is element i - by of the operand, where there is one.
constexpr RegionDim shift_dim(Index n, Index by) {
  RegionDim d = same_dim(n);
  d.boundary = Boundary::constant;
  d.offset = by > n ? -n : by < -n ? n : -by;
  return d;
}
/// The n elements of one operand, from place `first` on among `total` of the result.
constexpr RegionDim part_dim(Index n, Index first, Index total) {
  RegionDim d = pad_dim(n, first, total - first - n, 0);
  return d;
}

/// Elements lo, lo + step, ... of n, `count` of them, from place `first` on among `total` of the
/// result.
constexpr RegionDim slice_part_dim(Index n, Index lo, Index step, Index count, Index first,
                                   Index total) {
  RegionDim d = slice_dim(n, lo - first * step, step, total);
  d.within = {first, first + count};
  return d;
}

/// Elements start, start + stride, ... before limit of each dimension of a tensor; without strides,
/// all of them.
struct Slice {
  Extents start, limit, stride;
  constexpr Index step(int d) const { return stride.empty() ? 1 : stride[d]; }
  constexpr Extents extents() const {
    Extents counts;
    for (int d = 0; d < start.size(); ++d) counts.push_back(ceil_div(limit[d] - start[d], step(d)));
    return counts;
  }
  constexpr bool operator==(const Slice&) const = default;
};
/// One for each operand of which a slice is taken; the others are taken whole.
using Slices = FixedVector<std::optional<Slice>, max_operands>;

/// What an operator takes of its operands: a region of each, and the extents of what they make.
struct Taking {
  OperatorKind kind = OperatorKind::slice;
  Regions regions;
  Extents extents;
  bool fills = false;  ///< some elements of the result are none of an operand
};

namespace detail {
constexpr Taking taking(OperatorKind kind, const Region& region) {
  Taking taken{kind, {}, {}, needs_filling(region)};
  taken.regions.push_back(region);
  for (const RegionDim& d : region) taken.extents.push_back(d.extent);
  return taken;
}
constexpr Region same_region(const Extents& extents) {
  Region region;
  for (Index n : extents) region.push_back(same_dim(n));
  return region;
}
constexpr Extents extents_of(const Extents& x, const std::optional<Slice>& slice) {
  return slice ? slice->extents() : x;
}
/// The region of x, or of a slice of it, that begins at `start` in a result of extents `total`.
constexpr Region placed_region(const Extents& x, const std::optional<Slice>& slice,
                               const Extents& start, const Extents& total) {
  Region region;
  const Extents part = extents_of(x, slice);
  for (int d = 0; d < x.size(); ++d) {
    if (slice && !(slice->start[d] == 0 && slice->step(d) == 1 && part[d] == x[d]))
      region.push_back(
          slice_part_dim(x[d], slice->start[d], slice->step(d), part[d], start[d], total[d]));
    else
      region.push_back(part[d] == total[d] ? same_dim(x[d]) : part_dim(x[d], start[d], total[d]));
  }
  return region;
}
}  // namespace detail

/// Each returns what the operator takes. Preconditions: plan/shape_text.hpp has nothing to say.
///
/// Elements start, start + stride, ... before limit; without strides, all of them.
constexpr Taking slice_of(const Extents& x, const Extents& start, const Extents& limit,
                          const Extents& stride = {}) {
  Region region;
  for (int d = 0; d < x.size(); ++d) {
    const Index step = stride.empty() ? 1 : stride[d];
    region.push_back(slice_dim(x[d], start[d], step, ceil_div(limit[d] - start[d], step)));
  }
  return detail::taking(OperatorKind::slice, region);
}
constexpr Taking pad_of(const Extents& x, const Extents& low, const Extents& high,
                        const Extents& interior = {}) {
  Region region;
  for (int d = 0; d < x.size(); ++d)
    region.push_back(pad_dim(x[d], low[d], high[d], interior.empty() ? 0 : interior[d]));
  return detail::taking(OperatorKind::pad, region);
}
constexpr Taking reverse_of(const Extents& x, const Dimensions& dims) {
  Region region = detail::same_region(x);
  for (int d : dims) region[d] = reverse_dim(x[d]);
  return detail::taking(OperatorKind::reverse, region);
}
constexpr Taking roll_of(const Extents& x, Index by, int dim) {
  Region region = detail::same_region(x);
  region[dim] = roll_dim(x[dim], by);
  return detail::taking(OperatorKind::roll, region);
}
constexpr Taking shift_of(const Extents& x, Index by, int dim) {
  Region region = detail::same_region(x);
  region[dim] = shift_dim(x[dim], by);
  return detail::taking(OperatorKind::shift, region);
}
/// The operands, of extents x, or slices of them, one behind the other along `dim`.
constexpr Taking concatenate_of(const FixedVector<Extents, max_operands>& x, int dim,
                                const Slices& slices = {}) {
  const auto slice_of_operand = [&](int k) {
    return k < slices.size() ? slices[k] : std::optional<Slice>{};
  };
  Taking taken{OperatorKind::concatenate, {}, detail::extents_of(x[0], slice_of_operand(0)), false};
  taken.extents[dim] = 0;
  for (int k = 0; k < x.size(); ++k)
    taken.extents[dim] += detail::extents_of(x[k], slice_of_operand(k))[dim];
  Extents start(taken.extents.size(), 0);
  for (int k = 0; k < x.size(); ++k) {
    taken.regions.push_back(detail::placed_region(x[k], slice_of_operand(k), start, taken.extents));
    start[dim] += detail::extents_of(x[k], slice_of_operand(k))[dim];
  }
  return taken;
}
/// x with the elements of a block in place of its own from `start` on; or slices of either.
constexpr Taking update_of(const Extents& x, const Extents& block, const Extents& start,
                           const Slices& slices = {}) {
  const std::optional<Slice> of_x = slices.empty() ? std::optional<Slice>{} : slices[0];
  const std::optional<Slice> of_block = slices.size() < 2 ? std::optional<Slice>{} : slices[1];
  Taking taken{OperatorKind::update, {}, detail::extents_of(x, of_x), false};
  taken.regions.push_back(detail::placed_region(x, of_x, Extents(x.size(), 0), taken.extents));
  taken.regions.push_back(detail::placed_region(block, of_block, start, taken.extents));
  return taken;
}

namespace detail {
/// Returns the region between a source and a result that are split so.
constexpr Region split_so(Region region, const Sharding& source, const Sharding& result) {
  for (int d = 0; d < region.size(); ++d) {
    region[d].source_axes = source[d];
    region[d].axes = result[d];
  }
  return region;
}
}  // namespace detail

/// Plans how `result` is made of what regions[k] takes of operands[k]; later operands come over
/// earlier ones. The operands are unfinished alike, or all finished. `fills`: some elements of the
/// result are none of an operand.
constexpr Plan plan_regions(OperatorKind kind, const TensorDescs& operands, const Regions& regions,
                            const TensorDesc& result, bool fills, const MeshShape& mesh,
                            int process = 0, const PlanOptions& options = {}) {
  const Sharding out = without_unit_axes(result.sharding, mesh);
  Shardings sources;
  for (const TensorDesc& x : operands) sources.push_back(x.sharding);
  const detail::Resting rests(sources, result.sharding, result.extents, mesh, options.contract);
  AxisSet moving;
  // The operands as they are, or gathered over some of the axes along which they would move.
  const auto make = [&](const detail::MovingWay& way, int at) {
    PlanBuilder build(kind, mesh, at, options);
    const Sharding made_so = rests.at(way.rest, result.extents);
    FixedVector<int, max_operands> slots;
    Regions split;
    for (int k = 0; k < operands.size(); ++k)
      slots.push_back(build.operand(operands[k], default_labels(operands[k].rank())));
    for (int k = 0; k < operands.size(); ++k) {
      Sharding source = without_unit_axes(sources[k], mesh);
      Region region = detail::split_so(regions[k], source, made_so);
      const AxisSet over = moving_axes(region, mesh);
      moving = moving | over;
      if (!(over & way.gathered).empty()) {
        source = detail::without_axes(source, over & way.gathered);
        slots[k] = build.reshard(slots[k], source);
        region = detail::split_so(regions[k], source, made_so);
      }
      split.push_back(region);
    }
    TensorDesc made = result;
    made.sharding = made_so;
    const int slot = build.take(slots, split, made, default_labels(result.rank()), fills);
    return build.finish(build.reshard(slot, out), result.sharding);
  };
  return detail::best_moving(make, rests.list(), moving, process, options);
}

/// The same of what an operator takes, under the sharding `out`.
constexpr Plan plan_regions(const Taking& taken, const TensorDescs& operands, const Sharding& out,
                            const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  return plan_regions(taken.kind, operands, taken.regions, {operands[0].type, taken.extents, out},
                      taken.fills, mesh, process, options);
}

/// Plans several takings of one operand by one exchange; the results are all under the sharding
/// `out`, the first being the plan's, the others its further ones.
constexpr Plan plan_regions_each(const FixedVector<Taking, max_operands>& takings,
                                 const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                                 int process = 0, const PlanOptions& options = {}) {
  const Sharding source = without_unit_axes(x.sharding, mesh);
  const Sharding target = without_unit_axes(out, mesh);
  const detail::Resting rests({x.sharding}, out, takings[0].extents, mesh, options.contract);
  AxisSet moving;
  const auto make = [&](const detail::MovingWay& way, int at) {
    PlanBuilder build(takings[0].kind, mesh, at, options);
    const Sharding from = detail::without_axes(source, way.gathered);
    const int slot = build.reshard(build.operand(x, default_labels(x.rank())), from);
    FixedVector<int, max_operands> slots, made;
    FixedVector<std::int8_t, max_operands> regions;
    bool fills = false;
    for (const Taking& one : takings) {
      const Sharding made_so = rests.at(way.rest, one.extents);
      const Region region = detail::split_so(one.regions[0], from, made_so);
      moving = moving | moving_axes(region, mesh);
      fills = fills || one.fills;
      slots.push_back(slot);
      regions.push_back(build.region(region));
      made.push_back(build.shaped({x.type, one.extents, made_so}, default_labels(x.rank()), -1));
    }
    build.take_each(slots, regions, made, fills);
    move_together(build, made, Shardings(made.size(), target));
    for (int k = 1; k < made.size(); ++k)
      build.plan().also.push_back(static_cast<std::int8_t>(made[k]));
    return build.finish(made[0], out);
  };
  return detail::best_moving(make, rests.list(), moving, process, options);
}

}  // namespace tessera
