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
/// goes to the first greatest element of a window. On dynamic tensors a call says by its options
/// how the result is sharded; without a sharding it is as x.
#include <array>

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

/// Carries out an operation By on windows of tensors, typed or dynamic, with its settings.
template <class By, class Out, class Bound, AnyTensor... A>
auto run_windows(std::string_view label, const CallOptions& call, const WindowSettings& settings,
                 const A&... x) {
  if constexpr ((TypedTensor<A> && ...)) {
    using Call = Typed<By, Out, A...>;
    const OperandList operands{&x.core()...};
    auto operation = Call::operation;
    operation.windows = windows_of(settings, operands[0]->rank());
    return run_typed<Call, Bound>(label, call, operation, operands);
  } else {
    static_assert(demand_dynamic<Out, Bound>());
    const std::array<DynamicTensor, sizeof...(A)> all{DynamicTensor(x)...};
    OperandList operands;
    for (const DynamicTensor& one : all) operands.push_back(&one.core());
    auto operation = By::make();
    operation.windows = windows_of(settings, operands[0]->rank());
    return run_dynamic(label, call, operation, operands);
  }
}
/// Returns the gradient of a windowed sum or mean by a tensor of extents `x`.
inline ops::ReduceWindow gradient_of(ops::ReduceWindow operation, const WindowSettings& settings,
                                     const Extents& x) {
  operation.windows = windows_of(settings, x.size());
  operation.gradient = true;
  operation.extents = x;
  return operation;
}
}  // namespace detail

/// Returns the elements under each window of x, reduced by Kind (Sum, Product, Mean, Max, Min; of
/// bool Any, All): one element for each window, split as x or as `Out`. Communication: the elements
/// that windows reach beyond a process's block, and a reshard where `Out` asks for one; within
/// `Bound`. Collective over the mesh. Throws ShapeError for a window that is larger than the padded
/// tensor.
template <class Kind, class Out = Deduced, class Bound = NoContract, detail::AnyTensor A>
auto reduce_window(const A& x, const WindowSettings& settings,
                   const CallOptions& call = Where::here()) {
  if constexpr (TypedTensor<A>) detail::use_reduce_window_of<typename A::value_type>();
  return detail::run_windows<detail::WindowBy<Kind>, Out, Bound>("reduce_window", call, settings,
                                                                 x);
}

/// Returns a tensor of x's extents: each window of x adds its element of `source` at the place of
/// its greatest (Kind = Max) or least (Min) element, the first of equal ones; windows wholly in the
/// padding add nothing. Communication: the elements of windows that touch a process's block.
/// Collective over the mesh. Throws ShapeError when `source` has not one element for each window.
/// Source: XLA's SelectAndScatter.
template <class Kind, class Out = Deduced, class Bound = NoContract, detail::AnyTensor A,
          detail::AnyTensor B>
auto select_and_scatter(const A& x, const B& source, const WindowSettings& settings,
                        const CallOptions& call = Where::here()) {
  if constexpr (TypedTensor<A>) detail::use_select_scatter_of<typename A::value_type>();
  return detail::run_windows<detail::SelectBy<Kind>, Out, Bound>("select_and_scatter", call,
                                                                 settings, x, source);
}

/// Returns one element for each window of x: that of `values`, a tensor of x's extents, at the
/// place of the window's greatest (Kind = Max) or least (Min) element, the first of equal ones; 0
/// for a window wholly in the padding. It is the gradient of select_and_scatter by its source.
/// Communication: the elements of x and of `values` that windows reach beyond a process's block.
/// Collective over the mesh. Throws ShapeError when `values` has other extents than x.
template <class Kind, class Out = Deduced, class Bound = NoContract, detail::AnyTensor A,
          detail::AnyTensor B>
auto select_and_gather(const A& x, const B& values, const WindowSettings& settings,
                       const CallOptions& call = Where::here()) {
  if constexpr (TypedTensor<A>) detail::use_select_scatter_of<typename A::value_type>();
  return detail::run_windows<detail::SelectBy<Kind, true>, Out, Bound>("select_and_gather", call,
                                                                       settings, x, values);
}

/// Returns the gradient of reduce_window<Kind>(x, settings) by x, where dy is the gradient of the
/// result, for Sum, Mean, Max and Min. Communication: that of a reduce_window of dy, or of
/// select_and_scatter. Collective over the mesh. Throws ShapeError when dy has other extents than
/// the result.
template <class Kind, class Out = Deduced, class Bound = NoContract, detail::AnyTensor A,
          detail::AnyTensor B>
auto reduce_window_gradient(const A& x, const B& dy, const WindowSettings& settings,
                            const CallOptions& call = Where::here()) {
  if constexpr (detail::selects<Kind>()) {
    return detail::run_windows<detail::SelectBy<Kind>, Out, Bound>(
        TypedTensor<A> ? "select_and_scatter" : "reduce_window_gradient", call, settings, x, dy);
  } else if constexpr (TypedTensor<A> && TypedTensor<B>) {
    using AsX = typename detail::Choose<std::is_same_v<Out, Deduced>>::template type<
        typename TensorOf<A>::spec, Out>;
    using Typed = detail::Typed<detail::WindowBy<Kind>, AsX, B>;
    detail::use_reduce_window_of<typename Typed::type>();
    return detail::run_typed<Typed, Bound>(
        "reduce_window_gradient", call,
        detail::gradient_of(Typed::operation, settings, x.extents()), {&dy.core()});
  } else {
    static_assert(detail::demand_dynamic<Out, Bound>());
    const DynamicTensor gradient(dy);
    detail::mesh_of(x.core(), call.sharded_site("reduce_window_gradient"));
    return detail::run_dynamic(
        "reduce_window_gradient", call.or_sharded(x.core().sharding()),
        detail::gradient_of(detail::WindowBy<Kind>::make(), settings, x.extents()),
        {&gradient.core()});
  }
}

}  // namespace tessera
