// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planners of reductions under a sliding window, of select-and-scatter, which is the gradient
/// of a reduction by max, and of select-and-gather, which is the gradient of that.
///
///     Plan p = detail::plan_reduce_window(Reduction::max, windows, x, out, mesh, process);
///
/// Laws: of the input, only the elements that a window reaches beyond a process's block travel,
/// corners directly or dimension by dimension. In a select-and-scatter each process makes its own
/// block of the result, from all windows that touch it, so that nothing is summed across processes.
#include <tessera/plan/builder.hpp>

namespace tessera::detail {

/// Returns the extents of a reduce-window's result.
constexpr Extents windowed_extents(const Extents& x, const WindowList& windows) {
  Extents extents;
  for (int d = 0; d < x.size(); ++d) extents.push_back(result_extent(x[d], windows[d]));
  return extents;
}

/// Returns the best of the plans make(work, gathered, process), whose work is split like the result
/// (`to`) or like the input (`from`), and which exchange or gather the elements they need: one that
/// keeps the contract, else the cheapest. A gather must not move more than the exchange. All
/// processes decide by the numbers of process 0.
template <class Make>
constexpr Plan cheapest(const Make& make, const Sharding& to, const Sharding& from, int process,
                        const Contract& contract) {
  Plan best;
  bool found = false, kept = false, gathers = false;
  Sharding chosen = to;
  for (const Sharding& work : {to, from}) {
    Index least = max_int64;
    for (const bool gathered : {false, true}) {
      const Plan plan = make(work, gathered, 0);
      const Index moved = bytes_moved(plan);
      if (gathered && moved > least) continue;
      least = moved;
      const bool keeps = contract.covers(plan.needs);
      if (found && (keeps == kept ? plan.cost >= best.cost : kept)) continue;
      best = plan;
      chosen = work;
      kept = keeps;
      gathers = gathered;
      found = true;
    }
  }
  return process == 0 ? best : make(chosen, gathers, process);
}

/// Takes the part of a slot that the windows read for a result of sharding `work`: as it is, or
/// gathered along the dimensions that would have to move.
constexpr int take_window(PlanBuilder& build, int slot, const Extents& result,
                          const WindowList& windows, RegionDim::Rule rule, const Sharding& work,
                          bool gathered) {
  const MeshShape& mesh = build.plan().mesh;
  const TensorDesc x = build.desc(slot);
  const auto region_from = [&](const Sharding& source) {
    Region region;
    for (int d = 0; d < x.rank(); ++d) {
      RegionDim dim;
      dim.rule = rule;
      dim.window = windows[d];
      dim.extent = result[d];
      dim.axes = work[d];
      dim.source_extent = x.extents[d];
      dim.source_axes = source[d];
      region.push_back(dim);
    }
    return region;
  };
  Region region = region_from(x.sharding);
  AxisSet moving = moving_axes(region, mesh);
  if (moving.empty()) return slot;
  if (gathered) {
    Sharding whole = x.sharding;
    for (int d = 0; d < whole.rank(); ++d) whole[d] = whole[d].without(moving);
    slot = build.reshard(slot, whole);
    region = region_from(whole);
    if (moving_axes(region, mesh).empty()) return slot;
  }
  TensorDesc needed = x;
  needed.sharding = work;
  return build.take_window(slot, region, needed, build.labels(slot));
}

/// Plans the reduction of the elements of x under `windows` (one for each dimension). x is
/// finished.
constexpr Plan plan_reduce_window(Reduction reduction, const WindowList& windows,
                                  const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                                  int process = 0, const PlanOptions& options = {}) {
  const Sharding to = without_unit_axes(out, mesh);
  const Sharding from = without_unit_axes(x.sharding, mesh);
  const auto make = [&](const Sharding& work, bool gathered, int at) {
    PlanBuilder build(OperatorKind::reduce_window, mesh, at, options);
    build.plan().reduction = reduction;
    build.plan().windows = windows;
    const Term labels = default_labels(x.rank());
    int slot = build.reshard(build.operand(x, labels), from);
    TensorDesc made{x.type, windowed_extents(x.extents, windows), work};
    slot = detail::take_window(build, slot, made.extents, windows, RegionDim::Rule::window, work,
                               gathered);
    slot = build.compute(StepKind::reduce_window, FixedVector<int, 1>{slot}, made, labels);
    return build.finish(build.reshard(slot, to), out);
  };
  return detail::cheapest(make, to, from, process, options.contract);
}

/// Plans the tensor of x's extents in which each window of x has its element of `second` added to
/// the place of its greatest (or least) element; or, with `gather`, the tensor of one element for
/// each window in which that is the element of `second`, a tensor of x's extents, at that place.
/// Both are finished.
constexpr Plan plan_select(bool gather, bool greatest, const WindowList& windows,
                           const TensorDesc& x, const TensorDesc& second, const Sharding& out,
                           const MeshShape& mesh, int process = 0,
                           const PlanOptions& options = {}) {
  using enum RegionDim::Rule;
  const Sharding to = without_unit_axes(out, mesh);
  const Sharding from = without_unit_axes(x.sharding, mesh);
  const auto make = [&](const Sharding& work, bool gathered, int at) {
    PlanBuilder build(gather ? OperatorKind::select_and_gather : OperatorKind::select_and_scatter,
                      mesh, at, options);
    build.plan().reduction = greatest ? Reduction::max : Reduction::min;
    build.plan().windows = windows;
    const Term labels = default_labels(x.rank());
    const TensorDesc made{second.type, gather ? windowed_extents(x.extents, windows) : x.extents,
                          work};
    int input = build.reshard(build.operand(x, labels), from);
    int other = build.reshard(build.operand(second, labels),
                              gather ? from : without_unit_axes(second.sharding, mesh));
    input = detail::take_window(build, input, made.extents, windows, gather ? window : neighbours,
                                work, gathered);
    other = detail::take_window(build, other, made.extents, windows, gather ? window : readers,
                                work, gathered);
    const int slot =
        build.compute(gather ? StepKind::select_and_gather : StepKind::select_and_scatter,
                      FixedVector<int, 2>{input, other}, made, labels);
    return build.finish(build.reshard(slot, to), out);
  };
  return detail::cheapest(make, to, from, process, options.contract);
}
}  // namespace tessera::detail
