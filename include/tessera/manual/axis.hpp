// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A process's place along a named axis, and values that vary though they are equal, within a
/// manual function (manual/manual.hpp).
///
///     const auto place = axis_index<model>(x);         // a scalar tensor: 0 to p - 1, varies
///     const int p = axis_size<model>(x);
///     const auto sums = varying<model>(zeros_like(total));      // to be added to, differently on each
///
/// Laws: all_gather_over<X>(axis_index<X>(x)) is 0, 1, ..., axis_size<X>(x) - 1. The index is a
/// tensor and not a number of the host, so that all processes call the same operators: a function
/// that depends on it computes every case, and chooses by where.
#include <cstdint>

#include <tessera/manual/detail/over_axes.hpp>
#include <tessera/op/create/create_dynamic.hpp>

namespace tessera {

/// Returns how many processes there are along axis X of the mesh of x. Communication: none. Throws
/// nothing of its own.
template <class X, TypedTensor A> int axis_size(const A& x) {
  using Checked = detail::OverAxes<A, detail::OverAxis::any, X>;
  if constexpr (Checked::said())
    return detail::manual_whole_of(x.core().mesh())->shape()[Checked::W::template index<X>];
  else
    return 1;
}

/// Returns this process's coordinate along axis X, a scalar that varies over X, on the mesh of x.
/// Communication: none. Collective over the mesh. Throws nothing of its own.
template <class X, TypedTensor A> auto axis_index(const A& x, Where where = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::any, X>;
  if constexpr (Checked::said()) {
    const detail::CallSite site = detail::named_call("axis_index", where);
    using M =
        detail::ManualOf<typename Checked::W, Checked::Facts::named.bits, Checked::axes.bits, 0>;
    constexpr int axis = Checked::W::template index<X>;
    const auto whole = detail::manual_whole_of(x.core().mesh(), where);
    const DynamicTensor all =
        iota<std::int64_t>(DynamicMesh(whole), {whole->shape()[axis]}, Sharding{{axis}}, 0, where);
    return ShardedTensor<std::int64_t, M, P<>>(detail::seen_inner(
        all.core(), x.core().mesh(), {{}, AxisList{axis}, {}}, Checked::axes, site));
  } else {
    return detail::Unknown<A>();
  }
}

/// Returns x, which is equal over the axes X..., as a value of each process's own, which varies: so
/// that x may be joined with such values where types must agree. Its gradient is the sum of theirs.
/// Communication: none. Throws nothing of its own.
template <class... X, TypedTensor A> auto varying(const A& x, Where where = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::any, X...>;
  if constexpr (Checked::said()) {
    static_assert((Checked::axes & Checked::unfinished).empty(),
                  "[tessera] a part of a sum is taken for a value of the process's own; it varies "
                  "already, and says what it is");
    using M = detail::ManualOf<typename Checked::W, Checked::Facts::named.bits,
                               (Checked::varies | Checked::axes).bits, Checked::unfinished.bits>;
    return ShardedTensor<typename A::value_type, M, typename A::spec>(
        detail::seen_varying(x.core(), Checked::axes, {"varying", where}));
  } else {
    return detail::Unknown<A>();
  }
}

/// Returns x, which varies over the axes X..., as this process's part of a sum over them, to leave
/// a manual function unfinished. Communication: none. Throws nothing of its own.
template <class... X, TypedTensor A> auto part_of_sum(const A& x, Where = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies, X...>;
  if constexpr (Checked::said()) {
    using M = detail::ManualOf<typename Checked::W, Checked::Facts::named.bits,
                               (Checked::varies - Checked::axes).bits,
                               (Checked::unfinished | Checked::axes).bits>;
    return ShardedTensor<typename A::value_type, M, typename A::spec>(x.core());
  } else {
    return detail::Unknown<A>();
  }
}

}  // namespace tessera
