// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of operators that move elements across the borders of blocks and compute nothing:
/// slice, pad, reverse, roll, shift, concatenate, update (of tensors, or of slices of them). Each
/// maps, dimension by dimension, elements of the result to elements of an operand
/// (plan/region/region.hpp); they share one planner.
///
///     const detail::Taking rows{OperatorKind::slice, {{detail::slice_dim(100, 3, 2, 40), detail::same_dim(8)}}, {40, 8}};
///     Plan p = detail::plan_regions(rows, {x}, out, mesh, process);
///
/// Laws: an element goes from its owner only to processes that have it in their block of the
/// result; no communication where every process has what it needs.
#include <optional>

#include <tessera/plan/builder.hpp>
#include <tessera/plan/move/moving_way.hpp>
#include <tessera/plan/move/together.hpp>

namespace tessera {

/// Dimensions of a tensor, by number.
using Dimensions = FixedVector<int, max_dims>;

namespace detail {
constexpr Extents as_numbers(const Dimensions& dims) {
  Extents numbers;
  for (int d : dims) numbers.push_back(d);
  return numbers;
}

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
/// n elements with `interior` positions between neighbours, `low` before the first and `high` after
/// the last; negative counts crop. `dilation` is interior + 1.
constexpr RegionDim pad_dim(Index n, Index low, Index high, Index interior) {
  RegionDim d = same_dim(n);
  d.boundary = Boundary::constant;
  d.extent = max_of(0, dilated(n, interior + 1) + low + high);
  d.offset = -low;
  d.dilation = interior + 1;
  return d;
}
constexpr RegionDim reverse_dim(Index n) { return slice_dim(n, n - 1, -1, n); }
/// Element i of the result is element i - by of the operand, modulo n.
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
}  // namespace detail

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
  template <class V> constexpr void members(const V& visit) const {
    visit("start", start);
    visit("limit", limit);
    visit("stride", stride);
  }
  constexpr bool operator==(const Slice&) const = default;
};
/// A slice for each operand that is taken in part; other operands are taken whole.
using Slices = FixedVector<std::optional<Slice>, max_operands>;

namespace detail {
template <class V> constexpr void visit_slices(const Slices& slices, const V& visit) {
  for (int k = 0; k < slices.size(); ++k)
    if (slices[k]) {
      visit("operand", k + 1);
      slices[k]->members(visit);
    }
}

/// The extents of each operand.
using ExtentsList = FixedVector<Extents, max_operands>;
constexpr ExtentsList extents_of(const TensorDescs& x) {
  ExtentsList extents;
  for (const TensorDesc& one : x) extents.push_back(one.extents);
  return extents;
}

/// The parts of its operands that an operator takes: a region of each, and the extents of the
/// result.
struct Taking {
  OperatorKind kind = OperatorKind::slice;
  Regions regions;
  Extents extents;
  bool fills = false;  ///< some elements of the result come from no operand
};

constexpr Taking taking_of(OperatorKind kind, const Region& region) {
  Taking taken{kind, {}, {}, needs_filling(region)};
  taken.regions.push_back(region);
  for (const RegionDim& d : region) taken.extents.push_back(d.extent);
  return taken;
}
/// Returns the extents of the parts taken of operands of extents x.
constexpr ExtentsList parts_of(ExtentsList x, const Slices& slices) {
  for (int k = 0; k < min_of(x.size(), slices.size()); ++k)
    if (slices[k]) x[k] = slices[k]->extents();
  return x;
}
/// Returns the slice of operand k (of extents x) that is taken: the whole of it, where none is
/// named.
constexpr Slice part_of(const Slices& slices, int k, const Extents& x) {
  return k < slices.size() && slices[k] ? *slices[k] : Slice{Extents(x.size(), 0), x, {}};
}
/// Returns the region of operand k (of extents x), or of its slice, placed at `start` in a result
/// of extents `total`.
constexpr Region placed_region(const Extents& x, const Slices& slices, int k, const Extents& start,
                               const Extents& total) {
  const Slice slice = part_of(slices, k, x);
  const Extents part = slice.extents();
  Region region;
  for (int d = 0; d < x.size(); ++d) {
    const Index lo = slice.start[d], step = slice.step(d);
    if (lo != 0 || step != 1 || part[d] != x[d]) {
      region.push_back(slice_dim(x[d], lo - start[d] * step, step, total[d]));
      region[d].within = {start[d], start[d] + part[d]};
    } else if (part[d] == total[d]) {
      region.push_back(same_dim(x[d]));
    } else {
      region.push_back(pad_dim(x[d], start[d], total[d] - start[d] - x[d], 0));
    }
  }
  return region;
}

/// Returns the region between a source and a result of these shardings.
constexpr Region split_so(Region region, const Sharding& source, const Sharding& result) {
  for (int d = 0; d < region.size(); ++d) {
    region[d].source_axes = source[d];
    region[d].axes = result[d];
  }
  return region;
}

/// Returns a taking that stands for all extents and numbers: dimensions that are taken whole stay
/// so; along other dimensions the elements come from elsewhere.
constexpr Taking stand_in(Taking taken) {
  for (Region& region : taken.regions)
    for (RegionDim& d : region) {
      d.boundary = Boundary::none;
      d = d == same_dim(d.source_extent) ? same_dim(5040) : shift_dim(5040, 1);
    }
  taken.extents = Extents(taken.extents.size(), 5040);
  return taken;
}

/// Plans how a result under `target` is made from the parts taken of the operands; later operands
/// overwrite earlier ones. All are finished, or all are unfinished alike.
constexpr Plan plan_regions(const Taking& taken, const TensorDescs& operands,
                            const Sharding& target, const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  const Sharding out = without_unit_axes(target, mesh);
  const detail::Resting rests(shardings_of(operands), target, taken.extents, mesh,
                              options.contract);
  AxisSet moving;
  // The operands as they are, or gathered over some of the axes along which they would move.
  const auto make = [&](const detail::MovingWay& way, int at) {
    moving = {};
    PlanBuilder build(taken.kind, mesh, at, options);
    const Sharding made_so = rests.at(way, taken.extents);
    FixedVector<int, max_operands> slots;
    Regions split;
    for (int k = 0; k < operands.size(); ++k)
      slots.push_back(build.operand(operands[k], default_labels(operands[k].rank())));
    for (int k = 0; k < operands.size(); ++k) {
      Sharding source = without_unit_axes(operands[k].sharding, mesh);
      Region region = detail::split_so(taken.regions[k], source, made_so);
      const AxisSet over = moving_axes(region, mesh);
      moving = moving | over;
      if (!(over & way.gathered).empty()) {
        source = detail::without_axes(source, over & way.gathered);
        slots[k] = build.reshard(slots[k], source);
        region = detail::split_so(taken.regions[k], source, made_so);
      }
      split.push_back(region);
    }
    const int slot = build.take(slots, split, {operands[0].type, taken.extents, made_so},
                                default_labels(made_so.rank()), taken.fills);
    return build.finish(build.reshard(slot, out), target);
  };
  return detail::best_moving(make, rests.list(), moving, process, options);
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
    moving = {};
    PlanBuilder build(takings[0].kind, mesh, at, options);
    const Sharding from = detail::without_axes(source, way.gathered);
    const int slot = build.reshard(build.operand(x, default_labels(x.rank())), from);
    FixedVector<int, max_operands> slots, made;
    FixedVector<std::int8_t, max_operands> regions;
    bool fills = false;
    for (const Taking& one : takings) {
      const Sharding made_so = rests.at(way, one.extents);
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
}  // namespace detail
}  // namespace tessera
