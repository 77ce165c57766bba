// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators with a window that slides over all dimensions: the join of the elements under it,
/// its gradient, select-and-scatter and its gradient.
///
///     ops::ReduceWindow{Reduction::max, false, detail::windows_of(settings, 4), out}
///     ops::SelectAndScatter{true, detail::windows_of(settings, 4), out}      // of a tensor and a source
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/convolution.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/reduce_window.hpp>
#include <tessera/plan/region/window_settings.hpp>

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
    for (const Window& w : windows) count = saturating_mul(count, w.size);
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
