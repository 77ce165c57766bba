// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the collectives of manual mode share: the axes that a call names, its result's type, and
/// the one way that they take: the tensors of all parts are one of the mesh on which the
/// function is called, which is resharded.
///
///     using Checked = OverAxes<A, model>;
///     Checked::made<Checked::varies - Checked::axes, S>(core)
///
/// Laws: a call names axes of the manual function around it over which its operand is not equal.
#include <memory>
#include <string>
#include <utility>

#include <tessera/manual/detail/entered.hpp>
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>

namespace tessera::detail {

/// What an operand must be over the axes that a call names.
enum class OverAxis : std::uint8_t { varies_or_unfinished, varies, equal, any };

template <class A, OverAxis Must, class... X> struct OverAxes {
  using M = typename A::mesh_type;
  using Facts = ManualFacts<M>;
  using W = typename Facts::whole;
  static constexpr bool known = Facts::manual && ((W::template index<X> >= 0) && ...);
  static constexpr AxisSet axes_of() {
    AxisSet set;
    if constexpr (known) (set.insert(W::template index<X>), ...);
    return set;
  }
  static constexpr AxisSet axes = axes_of();
  static constexpr bool named = known && (axes - Facts::named).empty();
  static constexpr AxisSet varies = Facts::varies, unfinished = Facts::unfinished;
  static constexpr bool as_it_must =
      Must == OverAxis::any ||
      (Must == OverAxis::equal    ? (axes & (varies | unfinished)).empty()
       : Must == OverAxis::varies ? (axes - varies).empty()
                                  : (axes - (varies | unfinished)).empty());

  static consteval bool said() {
    static_assert(sizeof...(X) > 0, "[tessera] a collective names no axis; name one, or several");
    static_assert(named,
                  "[tessera] a collective names an axis that no manual function around it names; "
                  "over the others tensors are sharded automatically; name it in manual<axes...>");
    static_assert(!named || as_it_must || Must != OverAxis::varies_or_unfinished,
                  "[tessera] a sum is taken over an axis over which the value is equal; to count "
                  "it once for each process, varying<axis>(x) first");
    static_assert(
        !named || as_it_must || Must != OverAxis::varies || (axes & unfinished).empty(),
        "[tessera] a part of a sum is moved over its axis as if it were the sum; "
        "all_reduce_over<axis>(x) or reduce_scatter_over<axis, dimension>(x) finishes it");
    static_assert(!named || as_it_must || Must != OverAxis::varies || !(axes & unfinished).empty(),
                  "[tessera] a value is moved over an axis over which it is equal; each process "
                  "has it already; varying<axis>(x) makes a value of each process's own of it");
    static_assert(!named || as_it_must || Must != OverAxis::equal,
                  "[tessera] a value that is not equal over an axis is used as if it were; "
                  "all_reduce_over<axis>(x) or all_gather_over<axis>(x) makes an equal one");
    return named && as_it_must;
  }

  /// The type of a result on the part, of sharding Provider::value.
  template <std::uint32_t V, std::uint32_t U, class Provider>
  using Mesh = ManualOf<W, Facts::named.bits, V, U>;
  template <std::uint32_t V, std::uint32_t U, class Provider>
  using Result = ShardedTensor<typename A::value_type, ManualOf<W, Facts::named.bits, V, U>,
                               spec_of<ManualOf<W, Facts::named.bits, V, U>, Provider>>;
};

/// The finished sharding of A, as a provider of a spec.
template <class A> struct OwnSharding {
  static constexpr Sharding value = TensorFacts<A>::sharding().finished();
};
/// The same behind a dimension of its own.
template <class A> struct StackedSharding {
  static constexpr Sharding value = [] {
    Sharding s;
    s.dims.push_back(AxisList{});
    for (int d = 0; d < OwnSharding<A>::value.rank(); ++d)
      s.dims.push_back(OwnSharding<A>::value[d]);
    return s;
  }();
};

/// Returns x with parts that are combined by another operation than a sum finished.
inline TensorCore summable(const TensorCore& x, CallSite site) {
  const Sharding& s = x.sharding();
  return s.partial.empty() || s.reduction == Reduction::sum ? x : reshard(x, s.finished(), site);
}

/// Returns the call on a mesh that is perhaps Strict: its name says what it communicates.
inline CallSite named_call(std::string_view label, Where where) {
  return {label, where, Contract{}};
}

/// Throws ShapeError unless dimension `d` of x can be cut into `parts` equal ones.
inline void require_even(const TensorCore& x, int d, int parts, CallSite site) {
  if (x.extents()[d] % parts != 0)
    throw ShapeError(std::string(site.label) + ": dimension " + std::to_string(d) + " of " +
                         to_string(x.desc(), x.mesh()->names()) + " has extent " +
                         std::to_string(x.extents()[d]) + " and is cut into " +
                         std::to_string(parts) +
                         " parts, one for each process of the axis, which have the same extents; "
                         "pad it to a multiple",
                     site.where);
}

/// How x lies on the mesh on which the function is called, before a collective and after it.
struct ViewsOfCall {
  ManualView before, after;
};
/// Returns x after the collective, under the sharding `own` of the part, which varies over
/// `varies`.
inline TensorCore moved_between(const TensorCore& given, const ViewsOfCall& views,
                                const Sharding& own, AxisSet varies, CallSite site) {
  const TensorCore x = summable(given, named_call(site.label, site.where));
  const std::shared_ptr<MeshCore> whole = manual_whole_of(x.mesh(), site.where);
  const TensorCore all = seen_outer(x, whole, views.before, site);
  const Sharding to = outer_sharding(own, axes_in_whole(*x.mesh()), views.after);
  return seen_inner(reshard(all, to, site), x.mesh(), views.after, varies, site);
}

/// Returns the sharding of `rank` dimensions of which one is split over an axis.
inline Sharding split_over(int rank, int dim, int axis) {
  Sharding s = Sharding::replicated(rank);
  s[dim].push_back(axis);
  return s;
}

}  // namespace tessera::detail
