// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Dimensions split and merged; elements keep their row-major order.
///
///     auto heads = reshape<P<data, _, model, _>>(x, {8, 16, 4, 8});   // x is 8 x 16 x 32
///     auto rows = reshape<P<Axes<data, model>, _>>(x, {128, 32});
///
/// Laws: to_host(reshape(x)) has the elements of to_host(x) in order; reshape there and back gives
/// x; a process that keeps its elements communicates nothing.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/run/request.hpp>

namespace tessera {
namespace detail {
/// How reshape<Out> is made: its extents are known when the program runs.
struct ReshapeBy {
  static constexpr ops::Reshape make(const TensorDescs&) { return {}; }
};
}  // namespace detail

/// Returns x with the extents given, under the spec `Out`. Communication: none where each process
/// keeps its elements, as when the axes divide the leading dimension of each group that is split or
/// merged; else one exchange of the elements with a new owner or, where that takes less time, calls
/// that gather or move axes that split inner dimensions. Collective over the
/// mesh. Throws ShapeError when the number of elements changes. Source: GShard, section 3.3.3.
template <class Out, class Bound = NoContract, TypedTensor A>
typename detail::Typed<detail::ReshapeBy, Out, A>::result reshape(
    const A& x, const Extents& extents, const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::ReshapeBy, Out, A>;
  const ops::Reshape operation{extents, Typed::value};
  return detail::run_typed<Typed, Bound>("reshape", call, operation, {&x.core()});
}

/// This overload takes everything at run time; without a sharding the leading dimension of each
/// group that is split or merged is split as it was, and inner ones are whole.
inline DynamicTensor reshape(const DynamicTensor& x, const Extents& extents,
                             const CallOptions& call = Where::here()) {
  return detail::run_dynamic("reshape", call, ops::Reshape{extents}, {&x.core()});
}

}  // namespace tessera
