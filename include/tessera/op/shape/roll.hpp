// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elements reversed, rolled and shifted along dimensions.
///
///     auto a = reverse<0, 2>(x);            // the last row first, the last channel first
///     auto b = roll<0>(x, 2);               // row i is row i - 2 of x, round and round
///     auto c = shift<0>(x, 1);              // row i is row i - 1 of x; row 0 is 0
///
/// A pipeline's stages are rows of a tensor that is split by stage: shift<0>(x, 1) hands each stage
/// on to the next, in one message to one neighbour (GSPMD, section 3.3).
///
/// Laws: reverse(reverse(x)) == x; roll(roll(x, k), -k) == x; a shift by k of blocks of at least k
/// sends one message of k rows to one neighbour.
#include <tessera/op/call/shape_result.hpp>

namespace tessera {
namespace detail {
/// How reverse<D...>, roll<D> and shift<D> are made.
template <int... D> struct ReverseBy {
  static constexpr ops::Reverse make(const TensorDescs& x) {
    return {{Along<D...>::of(x[0].rank())}};
  }
};
template <class Op, int D> struct StepBy {
  static constexpr Op make(const TensorDescs&) { return {{1, D}}; }
};
}  // namespace detail

/// Returns x with its dimensions `D` (all where none is named) reversed, under x's spec or `Out`.
/// Communication: one exchange over the axes that split them; if all blocks are of one size, each
/// with the block opposite. Collective over the mesh. Throws nothing of its own.
template <class Out = Deduced, class Bound = NoContract, int... D, TypedTensor A>
auto reverse(const A& x, const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::ReverseBy<D...>, Out, A>;
  return detail::run_typed<Typed, Bound>("reverse", call, Typed::operation, {&x.core()});
}
template <int First, int... D, TypedTensor A>
auto reverse(const A& x, const CallOptions& call = Where::here()) {
  return reverse<Deduced, NoContract, First, D...>(x, call);
}

/// Returns y, (n, m, ...) as x is, with y[i] = x[i - by] along dimension D, cyclically, under x's
/// spec or `Out`. Communication: one exchange over the axes that split the dimension: a process
/// receives from at most two others, if all blocks are of one size. Collective over the mesh.
/// Throws nothing of its own.
template <int D, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto roll(const A& x, Index by, const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::StepBy<ops::Roll, D>, Out, A>;
  const ops::Roll operation{{by, D}, Typed::value};
  return detail::run_typed<Typed, Bound>("roll", call, operation, {&x.core()});
}

/// Returns y with y[i] = x[i - by] along dimension D, and `value` where x has no such element,
/// under x's spec or `Out`. Communication: one exchange over the axes that split the dimension: one
/// message to one neighbour where blocks have at least `by` rows. Collective over the mesh. Throws
/// ShardingError where x is unfinished and its parts would join `value` several times, UsageError
/// where `value` is no element of x's type.
template <int D, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          Scalar S = typename A::value_type>
auto shift(const A& x, Index by, S value = S{}, const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::StepBy<ops::Shift, D>, Out, A>;
  const detail::CallSite site = detail::typed_site<Typed, Bound>("shift", call, x.core());
  const detail::FillValue fill(detail::scalar_as<typename A::value_type>(value, site));
  const ops::Shift operation{{by, D, fill.outside()}, Typed::value};
  return typename Typed::result(detail::run({operation, {&x.core()}, site, {.fill = fill.data()}}));
}

/// These overloads take everything at run time; without a sharding the result is sharded as x is.
inline DynamicTensor reverse(const DynamicTensor& x, const FixedVector<int, max_dims>& dims,
                             const CallOptions& call = Where::here()) {
  return detail::run_dynamic("reverse", call, ops::Reverse{{dims}}, {&x.core()});
}
inline DynamicTensor roll(const DynamicTensor& x, Index by, int dim,
                          const CallOptions& call = Where::here()) {
  return detail::run_dynamic("roll", call, ops::Roll{{by, dim}}, {&x.core()});
}
inline DynamicTensor shift(const DynamicTensor& x, Index by, int dim,
                           detail::OutsideValue value = {},
                           const CallOptions& call = Where::here()) {
  const detail::FillValue fill = value.as(x.type(), call.sharded_site("shift"));
  return detail::run_dynamic("shift", call, ops::Shift{{by, dim, fill.outside()}}, {&x.core()},
                             {.fill = fill.data()});
}

}  // namespace tessera
