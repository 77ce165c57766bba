// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Collectives by the name of an axis, within a manual function (manual/manual.hpp).
///
///     // within manual<model>: x is (n, m) at each coordinate of model, of which there are p
///     auto total = all_reduce_over<model>(x);                // (n, m): the sum, equal
///     auto all = all_gather_over<model, 0>(x);               // (p n, m): the blocks along dimension 0, equal
///     auto share = reduce_scatter_over<model, 0>(x);         // (n / p, m): this process's rows of the sum
///     auto turned = all_to_all_over<model, 0, 1>(x);         // (n / p, p m): rows go, columns come
///     auto own = own_block<model, 0>(all);              // x again
///
/// Each takes CallOptions with a contract, of axes of the mesh on which the function is called;
/// without one it needs none, on a Strict mesh too. A call is the library's own reshard of the
/// tensor that all processes have together: it is planned, priced, recorded and traced as one, and
/// shards over the automatic axes as ever.
///
/// Laws: own_block<X, D>(all_gather_over<X, D>(x)) == x; reduce_scatter_over<X, D>(x) ==
/// own_block<X, D>(all_reduce_over<X>(x)); all_to_all_over<X, T, S>(all_to_all_over<X, S, T>(x)) ==
/// x. The adjoint of a sum gives each process the gradient of the sum; of a gather it is own_block,
/// or a reduce-scatter where gradients differ; all_to_all's is the one that leads back.
#include <tessera/manual/detail/over_axes.hpp>

namespace tessera {

/// Returns the sum of x, (n, m, ...), over the axes X..., over which it varies or is unfinished;
/// the result is equal over them, and finished. Communication: an all-reduce over X... Collective
/// over the mesh. Throws nothing of its own.
template <class... X, TypedTensor A>
  requires(MeshAxis<X>&&...)
auto all_reduce_over(const A& x, const CallOptions& call = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies_or_unfinished, X...>;
  if constexpr (Checked::said()) {
    const detail::CallSite site = call.free_fresh_site("all_reduce_over");
    constexpr AxisSet still = (Checked::varies | Checked::unfinished) - Checked::axes;
    const AxisList lead = detail::leading_axes(x.core(), Checked::axes);
    using Y = typename Checked::template Result<(Checked::varies - Checked::axes).bits,
                                                (Checked::unfinished - Checked::axes).bits,
                                                detail::OwnSharding<A>>;
    return Y(detail::moved_between(x.core(), {{{}, lead, Checked::axes}, {{}, lead, {}}},
                                   Y::sharding(), still, site));
  } else {
    return detail::Unknown<A>();
  }
}

/// Returns the blocks of x, (n, m, ...), of all p coordinates of X, over which it varies: along
/// dimension D, (n, p m, ...) where D is 1; or, where none is named, along a new first one,
/// (p, n, m, ...). The result is equal over X. Communication: an all-gather over X. Collective over
/// the mesh. Throws nothing of its own.
template <class X, int D = -1, TypedTensor A>
auto all_gather_over(const A& x, const CallOptions& call = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies, X>;
  static_assert(
      D >= -1 && D < A::rank,
      "[tessera] all_gather_over names a dimension that the tensor does not have; dimensions "
      "count from 0");
  if constexpr (Checked::said() && D < A::rank) {
    const detail::CallSite site = call.free_fresh_site("all_gather_over");
    constexpr int axis = Checked::W::template index<X>;
    AxisList lead = detail::leading_axes(x.core(), Checked::axes);
    constexpr AxisSet still = (Checked::varies | Checked::unfinished) - Checked::axes;
    using Own = std::conditional_t<(D < 0), detail::StackedSharding<A>, detail::OwnSharding<A>>;
    using Y = typename Checked::template Result<(Checked::varies - Checked::axes).bits,
                                                Checked::unfinished.bits, Own>;
    detail::ViewsOfCall views{{{}, lead, {}}, {{}, lead, {}}};
    if constexpr (D < 0)
      views.before.lead.push_back(axis);
    else
      views.before.major = detail::split_over(A::rank, D, axis);
    return Y(detail::moved_between(x.core(), views, Y::sharding(), still, site));
  } else {
    return detail::Unknown<A>();
  }
}

namespace detail {
/// This process's part of x along dimension D, of the sum over the axes `parts`, of which each
/// process has a part.
template <class X, int D, class Checked, TypedTensor A>
auto block_over(const A& x, AxisSet parts, CallSite site) {
  constexpr int axis = Checked::W::template index<X>;
  require_even(x.core(), D, manual_whole_of(x.core().mesh(), site.where)->shape()[axis], site);
  const AxisList lead = leading_axes(x.core(), Checked::axes);
  constexpr AxisSet after = Checked::varies | Checked::unfinished | Checked::axes;
  using Y =
      typename Checked::template Result<(Checked::varies | Checked::axes).bits,
                                        (Checked::unfinished - Checked::axes).bits, OwnSharding<A>>;
  return Y(moved_between(x.core(), {{{}, lead, parts}, {split_over(A::rank, D, axis), lead, {}}},
                         Y::sharding(), after, site));
}
}  // namespace detail

/// Returns this process's part, along dimension D, of the sum of x, (n, m, ...), over the axis X of
/// p processes, over which it varies or is unfinished: (n / p, m, ...) where D is 0. Communication:
/// a reduce-scatter over X. Collective over the mesh. Throws ShapeError where p does not divide the
/// extent.
template <class X, int D, TypedTensor A>
auto reduce_scatter_over(const A& x, const CallOptions& call = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies_or_unfinished, X>;
  static_assert(D >= 0 && D < A::rank,
                "[tessera] reduce_scatter_over names a dimension that the tensor does not have; "
                "dimensions count from 0");
  if constexpr (Checked::said() && D >= 0 && D < A::rank) {
    return detail::block_over<X, D, Checked>(x, Checked::axes,
                                             call.free_fresh_site("reduce_scatter_over"));
  } else {
    return detail::Unknown<A>();
  }
}

/// Returns this process's part of x, (n, m, ...), which is equal over the axis X of p processes,
/// along dimension D: (n / p, m, ...) where D is 0. Communication: none where X alone splits
/// dimension D, else what moves blocks over the automatic axes. Collective over the mesh. Throws
/// ShapeError where p does not divide the extent.
template <class X, int D, TypedTensor A>
auto own_block(const A& x, const CallOptions& call = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::equal, X>;
  static_assert(D >= 0 && D < A::rank,
                "[tessera] own_block names a dimension that the tensor does not have; dimensions "
                "count from 0");
  if constexpr (Checked::said() && D >= 0 && D < A::rank) {
    return detail::block_over<X, D, Checked>(x, {}, call.free_fresh_site("own_block"));
  } else {
    return detail::Unknown<A>();
  }
}

/// Returns x, (n, m, ...), which varies over the axis X of p processes, cut along dimension S and
/// joined along dimension T: part i of the process at coordinate j is part j of the one at i;
/// (n / p, p m) where S is 0 and T is 1. Communication: an all-to-all over X. Collective over the
/// mesh. Throws ShapeError where p does not divide the extent of S.
template <class X, int S, int T, TypedTensor A>
auto all_to_all_over(const A& x, const CallOptions& call = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies, X>;
  constexpr bool there = S >= 0 && S < A::rank && T >= 0 && T < A::rank && S != T;
  static_assert(
      there,
      "[tessera] all_to_all_over names two different dimensions of its tensor: the one that is "
      "cut, and the one along which parts are joined; reshape one dimension into two to "
      "cut and join it");
  if constexpr (Checked::said() && there) {
    const detail::CallSite site = call.free_fresh_site("all_to_all_over");
    constexpr int axis = Checked::W::template index<X>;
    const auto whole = detail::manual_whole_of(x.core().mesh(), site.where);
    detail::require_even(x.core(), S, whole->shape()[axis], site);
    const AxisList lead = detail::leading_axes(x.core(), Checked::axes);
    using Y = typename Checked::template Result<Checked::varies.bits, Checked::unfinished.bits,
                                                detail::OwnSharding<A>>;
    return Y(detail::moved_between(x.core(),
                                   {{detail::split_over(A::rank, T, axis), lead, {}},
                                    {detail::split_over(A::rank, S, axis), lead, {}}},
                                   Y::sharding(), Checked::varies | Checked::unfinished, site));
  } else {
    return detail::Unknown<A>();
  }
}

}  // namespace tessera
