// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reductions under a sliding window (pooling), their gradients, and select-and-scatter.
///
///     const WindowSettings pool{.size = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}};
///     auto y = reduce_window<Max>(x, pool);
///     auto dx = reduce_window_gradient<Max>(x, dy, pool);
///
/// Laws: equals plain loops over the whole tensor; padding and the gaps of base dilation are the
/// identity of the reduction, but a mean is always over the whole window; the gradient of a maximum
/// goes to the first greatest element of a window.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/window/reduce_window.hpp>

namespace tessera {
namespace detail {

/// How reduce_window<Kind> is made, and its gradient.
template <class Kind> struct WindowBy {
  static constexpr ops::ReduceWindow make(const TensorDescs& = {}) {
    return {Kind::reduction, std::is_same_v<Kind, Mean>};
  }
};
/// How select_and_scatter<Kind> is made, or with Gather select_and_gather<Kind>.
template <class Kind, bool Gather = false> struct SelectBy {
  static consteval bool said() {
    static_assert(
        std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>,
        "[tessera] select_and_scatter selects the greatest (Max) or the least (Min) element "
        "of a window, and so does select_and_gather; name one of them");
    return true;
  }
  static_assert(said());
  static constexpr ops::SelectAndScatter make(const TensorDescs& = {}) {
    return {.greatest = std::is_same_v<Kind, Max>, .gradient = Gather};
  }
};
/// Whether the gradient of reduce_window<Kind> goes to one element of each window.
template <class Kind> consteval bool selects() {
  constexpr bool one = std::is_same_v<Kind, Max> || std::is_same_v<Kind, Min>;
  static_assert(one || std::is_same_v<Kind, Sum> || std::is_same_v<Kind, Mean>,
                "[tessera] this windowed reduction has no gradient; Sum, Mean, Max and Min have "
                "one; use one of them");
  return one;
}

template <class Op>
TensorCore run_windows(Op operation, const WindowSettings& settings, const OperandList& operands,
                       CallSite site) {
  operation.windows = windows_of(settings, operands[0]->rank());
  return run({operation, operands, site});
}
/// Returns the gradient of a windowed sum or mean by a tensor of extents `x`, from `dy`.
inline TensorCore run_gradient(ops::ReduceWindow operation, const WindowSettings& settings,
                               const Extents& x, const TensorCore& dy, CallSite site) {
  operation.windows = windows_of(settings, x.size());
  operation.gradient = true;
  operation.extents = x;
  return run({operation, {&dy}, site});
}

/// Without `out` it is deduced.
template <class Op>
DynamicTensor run_windows(Op operation, const WindowSettings& settings, const OperandList& operands,
                          const Sharding* out, CallSite site) {
  operation.out = out != nullptr ? *out : operands[0]->sharding();
  return DynamicTensor(run_windows(operation, settings, operands, site));
}
template <class Kind>
DynamicTensor reduce_window_gradient(const DynamicTensor& x, const DynamicTensor& dy,
                                     const WindowSettings& settings, const Sharding* out,
                                     CallSite site) {
  if constexpr (selects<Kind>()) {
    return run_windows(SelectBy<Kind>::make(), settings, {&x.core(), &dy.core()}, out, site);
  } else {
    ops::ReduceWindow operation = WindowBy<Kind>::make();
    operation.out = out != nullptr ? *out : x.sharding();
    return DynamicTensor(run_gradient(operation, settings, x.extents(), dy.core(), site));
  }
}
}  // namespace detail

/// Returns the elements under each window of x, reduced by Kind (Sum, Product, Mean, Max, Min; of
/// bool Any, All): one element for each window, split as x or as `Out`. Communication: the elements
/// that windows reach beyond a process's block, and a reshard where `Out` asks for one; within
/// `Bound`. Collective over the mesh. Throws ShapeError for a window that is larger than the padded
/// tensor.
template <class Kind, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto reduce_window(const A& x, const WindowSettings& settings, Where where = Where::here()) {
  using Typed = detail::Typed<detail::WindowBy<Kind>, Out, A>;
  detail::use_reduce_window_of<typename A::value_type>();
  return typename Typed::result(
      detail::run_windows(Typed::operation, settings, {&x.core()},
                          {"reduce_window", where, detail::bound<Typed, Bound>()}));
}

/// Returns a tensor of x's extents: each window of x adds its element of `source` at the place of
/// its greatest (Kind = Max) or least (Min) element, the first of equal ones; windows wholly in the
/// padding add nothing. Communication: the elements of windows that touch a process's block.
/// Collective over the mesh. Throws ShapeError when `source` has not one element for each window.
/// Source: XLA's SelectAndScatter.
template <class Kind, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
auto select_and_scatter(const A& x, const B& source, const WindowSettings& settings,
                        Where where = Where::here()) {
  using Typed = detail::Typed<detail::SelectBy<Kind>, Out, A, B>;
  detail::use_select_scatter_of<typename A::value_type>();
  return typename Typed::result(
      detail::run_windows(Typed::operation, settings, {&x.core(), &source.core()},
                          {"select_and_scatter", where, detail::bound<Typed, Bound>()}));
}

/// Returns one element for each window of x: that of `values`, a tensor of x's extents, at the
/// place of the window's greatest (Kind = Max) or least (Min) element, the first of equal ones; 0
/// for a window wholly in the padding. It is the gradient of select_and_scatter by its source.
/// Communication: the elements of x and of `values` that windows reach beyond a process's block.
/// Collective over the mesh. Throws ShapeError when `values` has other extents than x.
template <class Kind, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
auto select_and_gather(const A& x, const B& values, const WindowSettings& settings,
                       Where where = Where::here()) {
  using Typed = detail::Typed<detail::SelectBy<Kind, true>, Out, A, B>;
  detail::use_select_scatter_of<typename A::value_type>();
  return typename Typed::result(
      detail::run_windows(Typed::operation, settings, {&x.core(), &values.core()},
                          {"select_and_gather", where, detail::bound<Typed, Bound>()}));
}

/// Returns the gradient of reduce_window<Kind>(x, settings) by x, where dy is the gradient of the
/// result, for Sum, Mean, Max and Min. Communication: that of a reduce_window of dy, or of
/// select_and_scatter. Collective over the mesh. Throws ShapeError when dy has other extents than
/// the result.
template <class Kind, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
auto reduce_window_gradient(const A& x, const B& dy, const WindowSettings& settings,
                            Where where = Where::here()) {
  if constexpr (detail::selects<Kind>()) {
    return select_and_scatter<Kind, Out, Bound>(x, dy, settings, where);
  } else {
    using AsX = typename detail::Choose<std::is_same_v<Out, Deduced>>::template type<
        typename TensorOf<A>::spec, Out>;
    using Typed = detail::Typed<detail::WindowBy<Kind>, AsX, B>;
    detail::use_reduce_window_of<typename Typed::type>();
    return typename Typed::result(
        detail::run_gradient(Typed::operation, settings, x.extents(), dy.core(),
                             {"reduce_window_gradient", where, detail::bound<Typed, Bound>()}));
  }
}

/// The same with everything known at run time; without `out` the result is sharded as x is. `call`:
/// a Contract.
template <class Kind>
DynamicTensor reduce_window(const DynamicTensor& x, const WindowSettings& settings,
                            const Sharding& out, const CallOptions& call = Where::here()) {
  return detail::run_windows(detail::WindowBy<Kind>::make(), settings, {&x.core()}, &out,
                             call.site("reduce_window"));
}
template <class Kind>
DynamicTensor reduce_window(const DynamicTensor& x, const WindowSettings& settings,
                            const CallOptions& call = Where::here()) {
  return detail::run_windows(detail::WindowBy<Kind>::make(), settings, {&x.core()}, nullptr,
                             call.site("reduce_window"));
}
template <class Kind>
DynamicTensor select_and_scatter(const DynamicTensor& x, const DynamicTensor& source,
                                 const WindowSettings& settings, const Sharding& out,
                                 const CallOptions& call = Where::here()) {
  return detail::run_windows(detail::SelectBy<Kind>::make(), settings, {&x.core(), &source.core()},
                             &out, call.site("select_and_scatter"));
}
template <class Kind>
DynamicTensor select_and_scatter(const DynamicTensor& x, const DynamicTensor& source,
                                 const WindowSettings& settings,
                                 const CallOptions& call = Where::here()) {
  return detail::run_windows(detail::SelectBy<Kind>::make(), settings, {&x.core(), &source.core()},
                             nullptr, call.site("select_and_scatter"));
}
template <class Kind>
DynamicTensor select_and_gather(const DynamicTensor& x, const DynamicTensor& values,
                                const WindowSettings& settings, const Sharding& out,
                                const CallOptions& call = Where::here()) {
  return detail::run_windows(detail::SelectBy<Kind, true>::make(), settings,
                             {&x.core(), &values.core()}, &out, call.site("select_and_gather"));
}
template <class Kind>
DynamicTensor select_and_gather(const DynamicTensor& x, const DynamicTensor& values,
                                const WindowSettings& settings,
                                const CallOptions& call = Where::here()) {
  return detail::run_windows(detail::SelectBy<Kind, true>::make(), settings,
                             {&x.core(), &values.core()}, nullptr, call.site("select_and_gather"));
}
template <class Kind>
DynamicTensor reduce_window_gradient(const DynamicTensor& x, const DynamicTensor& dy,
                                     const WindowSettings& settings, const Sharding& out,
                                     const CallOptions& call = Where::here()) {
  return detail::reduce_window_gradient<Kind>(x, dy, settings, &out,
                                              call.site("reduce_window_gradient"));
}
template <class Kind>
DynamicTensor reduce_window_gradient(const DynamicTensor& x, const DynamicTensor& dy,
                                     const WindowSettings& settings,
                                     const CallOptions& call = Where::here()) {
  return detail::reduce_window_gradient<Kind>(x, dy, settings, nullptr,
                                              call.site("reduce_window_gradient"));
}

}  // namespace tessera
