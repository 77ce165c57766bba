// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of operators that move elements across the borders of blocks and compute nothing:
/// slice, pad, reverse, roll, shift, concatenate, update. Each says, dimension by dimension, which
/// element of an operand an element of the result is (plan/region.hpp); the rest is one planner.
///
///     Regions from{{slice_dim(100, 3, 2, 40), same_dim(8)}};
///     Plan p = plan_take(OperatorKind::slice, {x}, from, result, mesh, process);
///
/// Laws: an element goes from its owner to each process that has it in its block of the result, and
/// nowhere else; nothing is communicated where every process has what it needs.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/map.hpp>

namespace tessera {

/// One region for each operand.
using Regions = FixedVector<Region, max_operands>;

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
  d.offset = ((-by) % n + n) % n;
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

namespace detail {
/// Returns the region between a source and a result that are split so.
constexpr Region split_so(Region region, const Sharding& source, const Sharding& result) {
  for (int d = 0; d < region.size(); ++d) {
    region[d].source_axes = source[d];
    region[d].axes = result[d];
  }
  return region;
}
constexpr Sharding without_axes(Sharding s, AxisSet gone) {
  for (int d = 0; d < s.rank(); ++d) s[d] = s[d].without(gone);
  return s;
}
}  // namespace detail

/// Plans how `result` is made of what regions[k] takes of operands[k]; later operands come over
/// earlier ones. The operands are unfinished alike, or all finished. `fills`: some elements of the
/// result are none of an operand.
constexpr Plan plan_take(OperatorKind kind, const TensorDescs& operands, const Regions& regions,
                         const TensorDesc& result, bool fills, const MeshShape& mesh,
                         int process = 0, const PlanOptions& options = {}) {
  const Sharding out = without_unit_axes(result.sharding, mesh);
  const Sharding open = without_unit_axes(operands[0].sharding, mesh);
  // What is unfinished is taken unfinished, and finished or scattered then.
  const Sharding taken =
      detail::without_axes(out, open.partial).with_partial(open.partial, open.reduction);
  // Operands as they are; or gathered along what moves, so that all that is left is local.
  bool moves = false;
  const auto make = [&](bool gathered, int at) {
    PlanBuilder build(kind, mesh, at, options);
    FixedVector<int, max_operands> slots;
    Regions split;
    for (int k = 0; k < operands.size(); ++k)
      slots.push_back(build.operand(operands[k], default_labels(operands[k].rank())));
    for (int k = 0; k < operands.size(); ++k) {
      const Sharding source = without_unit_axes(operands[k].sharding, mesh);
      Region region = detail::split_so(regions[k], source, taken);
      const AxisSet moving = moving_axes(region, mesh);
      moves = moves || !moving.empty();
      if (gathered && !moving.empty()) {
        const Sharding whole = detail::without_axes(source, moving);
        slots[k] = build.reshard(slots[k], whole);
        region = detail::split_so(regions[k], whole, taken);
      }
      split.push_back(region);
    }
    TensorDesc made = result;
    made.sharding = taken;
    const int slot = build.take(slots, split, made, default_labels(result.rank()), fills);
    return build.finish(build.reshard(slot, out), result.sharding);
  };
  const Plan exchanged = make(false, 0);
  bool gather = false;
  if (moves) {  // to gather must not move more, unless only that keeps the contract
    const Plan gathered = make(true, 0);
    const bool keeps = options.contract.covers(gathered.needs);
    gather = keeps == options.contract.covers(exchanged.needs)
                 ? gathered.cost < exchanged.cost &&
                       detail::bytes_moved(gathered) <= detail::bytes_moved(exchanged)
                 : keeps;
    if (gather && process == 0) return gathered;
  }
  return process == 0 ? exchanged : make(gather, process);
}

}  // namespace tessera
