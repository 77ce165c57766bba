// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators with a window that slides over all dimensions: the join of the elements under it,
/// its gradient, select-and-scatter and its gradient.
///
///     Plan p = detail::plan_reduce_window(Reduction::max, windows, x, out, mesh, process);
///
///     ops::ReduceWindow{Reduction::max, false, detail::windows_of(settings, 4), out}
///     ops::SelectAndScatter{true, detail::windows_of(settings, 4), out}      // of a tensor and a source
///
/// Laws: of the input, only the elements that a window reaches beyond a process's block travel,
/// corners directly or dimension by dimension. In a select-and-scatter each process makes its own
/// block of the result, from all windows that touch it, so that nothing is summed across processes.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/op/window/convolution.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/region/window_settings.hpp>
#include <tessera/plan/step/window.hpp>

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
    slot = build.compute(step::ReduceWindow{}, FixedVector<int, 1>{slot}, made, labels);
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
    const AnyVerb gathers = step::SelectAndGather{}, scatters = step::SelectAndScatter{};
    const int slot =
        build.compute(gather ? gathers : scatters, FixedVector<int, 2>{input, other}, made, labels);
    return build.finish(build.reshard(slot, to), out);
  };
  return detail::cheapest(make, to, from, process, options.contract);
}
}  // namespace tessera::detail

namespace tessera::detail {
/// Windows of three taps: they stand for all windows that reach beyond a block.
constexpr WindowList stand_in_windows(const TensorDescs& x) {
  return WindowList(x[0].rank(), Window{3, 1, 1, 1});
}

inline std::string explain_window(const Verdict& v, const TensorDesc& x, int operands,
                                  const AxisNames& names) {
  const std::string text = explain(v, {.operands = operands});
  const bool of_windows = v.rule == Rule::window_entry_each || v.rule == Rule::window_positive ||
                          v.rule == Rule::window_fits;
  return of_windows ? text + " (" + to_string(x, names) + ")" : text;
}
}  // namespace tessera::detail

namespace tessera::ops {

struct ReduceWindow {
  Reduction reduction = Reduction::sum;
  bool mean = false;
  WindowList windows = {};  ///< one for each dimension
  Sharding out = {};
  bool gradient = false;  ///< for a sum or mean: the operand is the gradient of its result
  Extents extents = {};   ///< for a gradient: of the tensor over which the windows slide

  constexpr OperatorKind kind() const { return OperatorKind::reduce_window; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_window(detail::shardings_of(x), out); !v.ok()) return v;
    if (const Verdict v = detail::check_reduce_type(reduction, mean, x[0].type); !v.ok()) return v;
    if (const Verdict v = detail::check_windows(windows, over(x)); !v.ok()) return v;
    if (gradient && !(x[0].extents == detail::windowed_extents(extents, windows)))
      return {.rule = Rule::gradient_fits};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::gradient_fits)
      return tessera::explain(v, {.first = to_string(x[0].extents),
                                  .second = to_string(detail::windowed_extents(extents, windows))});
    return tessera::detail::explain_window(v, gradient ? TensorDesc{x[0].type, extents, out} : x[0],
                                           x.size(), names);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, gradient ? extents : detail::windowed_extents(x[0].extents, windows), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_reduce_window(reduction, gradient ? turned(windows, extents) : windows,
                                      x[0], out, on.mesh, on.process, on.options);
  }
  /// Returns, for a mean, 1 / the size of a window.
  constexpr double scale(const TensorDescs&) const {
    Index count = 1;
    for (const Window& w : windows) count = detail::saturating_mul(count, w.size);
    return mean ? 1.0 / static_cast<double>(count) : 1;
  }
  constexpr tessera::detail::StandIn<ReduceWindow> stand_in(const TensorDescs& x) const {
    return {{reduction, mean, tessera::detail::stand_in_windows(x), out},
            tessera::detail::stand_ins(x)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("reduction", reduction);
    visit("mean", mean);
    visit("windows", windows);
    visit("gradient", gradient);
    visit("extents", extents);
    visit("to", out);
  }
  constexpr bool operator==(const ReduceWindow&) const = default;

 private:
  constexpr const Extents& over(const TensorDescs& x) const {
    return gradient ? extents : x[0].extents;
  }
};

/// For a tensor, and a source with one element for each window. Its gradient by the source takes
/// the tensor and the gradient of the result, and makes one element for each window.
struct SelectAndScatter {
  bool greatest = true;     ///< else the least
  WindowList windows = {};  ///< one for each dimension
  Sharding out = {};
  bool gradient = false;  ///< select-and-gather

  constexpr OperatorKind kind() const {
    return gradient ? OperatorKind::select_and_gather : OperatorKind::select_and_scatter;
  }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_window(detail::shardings_of(x), out); !v.ok()) return v;
    if (const Verdict v = detail::check_reduce_type(Reduction::max, false, x[0].type); !v.ok())
      return v;
    if (const Verdict v = detail::check_one_type(Rule::update_types_alike, x[0].type, x[1].type, 1);
        !v.ok())
      return v;
    if (const Verdict v = detail::check_windows(windows, x[0].extents); !v.ok()) return v;
    if (!(x[1].extents == read(x))) return {.rule = Rule::source_each_window};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::source_each_window)
      return tessera::explain(v, {.first = to_string(x[1].extents), .second = to_string(read(x))});
    return tessera::detail::explain_window(v, x[0], x.size(), names);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, gradient ? windowed(x) : x[0].extents, out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_select(gradient, greatest, windows, x[0], x[1], out, on.mesh, on.process,
                               on.options);
  }
  constexpr tessera::detail::StandIn<SelectAndScatter> stand_in(const TensorDescs& x) const {
    return {{greatest, tessera::detail::stand_in_windows(x), out, gradient},
            tessera::detail::stand_ins(x)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("greatest", greatest);
    visit("windows", windows);
    visit("gradient", gradient);
    visit("to", out);
  }
  constexpr bool operator==(const SelectAndScatter&) const = default;

 private:
  constexpr Extents windowed(const TensorDescs& x) const {
    return detail::windowed_extents(x[0].extents, windows);
  }
  /// The extents of the second operand.
  constexpr Extents read(const TensorDescs& x) const {
    return gradient ? x[0].extents : windowed(x);
  }
};

}  // namespace tessera::ops

TESSERA_OPERATION(ReduceWindow)
TESSERA_OPERATION(SelectAndScatter)
