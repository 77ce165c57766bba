// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planners of reductions under a sliding window, and of select-and-scatter, which carries the
/// gradient of one by max back.
///
///     Plan p = plan_reduce_window(Reduction::max, windows, x, out, mesh, process);
///
/// Laws: of the input, only what a window reaches beyond a process's block travels. In a
/// select-and-scatter each process makes its own block of the result, from all windows that touch
/// it, so that nothing is summed across processes.
#include <tessera/plan/builder.hpp>

namespace tessera {

/// Returns the extents of a reduce-window's result.
constexpr Extents windowed_extents(const Extents& x, const WindowList& windows) {
  Extents extents;
  for (int d = 0; d < x.size(); ++d) extents.push_back(result_extent(x[d], windows[d]));
  return extents;
}

namespace detail {
/// Keeps the better of two plans: one that keeps the contract, else the cheaper one.
class Cheapest {
 public:
  constexpr explicit Cheapest(const Contract& contract) : contract_(contract) {}
  constexpr void consider(const Plan& plan) {
    const bool keeps = contract_.covers(plan.needs);
    if (!found_ || (keeps && !keeps_) || (keeps == keeps_ && plan.cost < best_.cost)) {
      best_ = plan;
      keeps_ = keeps;
      found_ = true;
    }
  }
  constexpr const Plan& best() const { return best_; }

 private:
  Contract contract_;
  Plan best_;
  bool found_ = false, keeps_ = false;
};

/// Takes what the windows' rule needs of a slot for a result split as `work`: as it is, or gathered
/// where it would have to move.
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
  return build.take({slot}, {region}, needed, build.labels(slot), false, true);
}
}  // namespace detail

/// Plans the reduction of what lies under `windows` (one a dimension) of x, which is finished.
constexpr Plan plan_reduce_window(Reduction reduction, const WindowList& windows,
                                  const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                                  int process = 0, const PlanOptions& options = {}) {
  const Sharding to = without_unit_axes(out, mesh);
  const Sharding from = without_unit_axes(x.sharding, mesh);
  detail::Cheapest cheapest(options.contract);
  for (const Sharding& work : {to, from})
    for (const bool gathered : {false, true}) {
      PlanBuilder build(OperatorKind::reduce_window, mesh, process, options);
      build.plan().reduction = reduction;
      build.plan().windows = windows;
      const Term labels = default_labels(x.rank());
      int slot = build.reshard(build.operand(x, labels), from);
      TensorDesc made{x.type, windowed_extents(x.extents, windows), work};
      slot = detail::take_window(build, slot, made.extents, windows, RegionDim::Rule::window, work,
                                 gathered);
      slot = build.compute(StepKind::reduce_window, FixedVector<int, 1>{slot}, made, labels);
      cheapest.consider(build.finish(build.reshard(slot, to), out));
    }
  return cheapest.best();
}

/// Plans the tensor of x's extents in which each window of x has its element of `source` added to
/// the place of its greatest (or least) element. Both are finished.
constexpr Plan plan_select_and_scatter(bool greatest, const WindowList& windows,
                                       const TensorDesc& x, const TensorDesc& source,
                                       const Sharding& out, const MeshShape& mesh, int process = 0,
                                       const PlanOptions& options = {}) {
  const Sharding to = without_unit_axes(out, mesh);
  const Sharding from = without_unit_axes(x.sharding, mesh);
  detail::Cheapest cheapest(options.contract);
  for (const Sharding& work : {to, from})
    for (const bool gathered : {false, true}) {
      PlanBuilder build(OperatorKind::select_and_scatter, mesh, process, options);
      build.plan().reduction = greatest ? Reduction::max : Reduction::min;
      build.plan().windows = windows;
      const Term labels = default_labels(x.rank());
      int input = build.reshard(build.operand(x, labels), from);
      int sources = build.reshard(build.operand(source, labels),
                                  without_unit_axes(source.sharding, mesh));
      const TensorDesc made{source.type, x.extents, work};
      input = detail::take_window(build, input, x.extents, windows, RegionDim::Rule::neighbours,
                                  work, gathered);
      sources = detail::take_window(build, sources, x.extents, windows, RegionDim::Rule::readers,
                                    work, gathered);
      const int slot = build.compute(StepKind::select_and_scatter,
                                     FixedVector<int, 2>{input, sources}, made, labels);
      cheapest.consider(build.finish(build.reshard(slot, to), out));
    }
  return cheapest.best();
}

}  // namespace tessera
