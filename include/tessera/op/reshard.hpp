// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Changing how a tensor is split, and GShard's words for it (GShard, section 3.2: replicate and
/// split; its shard is a reshard to the spec).
///
///     auto y = reshard<P<_, model>>(x);
///     auto whole = replicate(x);
///     auto rows = split<0, data>(x);
///     auto both = reshard<P<data, model>>(x);
///     DynamicTensor d = split(DynamicTensor(x), 1, AxisList{0});
///     auto sum = finish(partial);                          // P<data, Unreduced<Sum, model>> -> P<data>
///
/// Laws: to_host(reshard<S>(x)) equals to_host(x) for every S; to its own spec it returns x itself;
/// slicing a replicated tensor communicates nothing.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>

namespace tessera {
namespace detail {
template <int D, class Split> struct SplitSpec {  // replicated except for dimension D
  template <class M, int Rank> struct On {
    static constexpr Sharding value = [] {
      Sharding s = Sharding::replicated(Rank);
      s[D] = lower<M, P<Split>>()[0];
      return s;
    }();
  };
};
template <int Rank> struct ReplicatedSpec {
  static constexpr Sharding value = Sharding::replicated(Rank);
};
template <class A> struct FinishedSpec {
  static constexpr Sharding value = TensorFacts<A>::sharding().finished();
};
}  // namespace detail

/// Returns x, (n, m, ...), of any number of dimensions, under spec S: the same elements in other
/// blocks. Communication: the cheapest chain of all-gathers, all-to-alls, reduce-scatters,
/// all-reduces and exchanges, none where every process has its new block; within the contract
/// `Bound`; plan<S>(...) shows it. Collective over the mesh. Throws nothing of its own. A dynamic
/// tensor throws ShardingError where `to` does not fit x or its mesh.
template <class S, class Bound = NoContract, TypedTensor A>
  requires(!TypedTensor<S>)
typename detail::TypedReshard<S, A>::result reshard(const A& x,
                                                    const CallOptions& call = Where::here()) {
  using Typed = detail::TypedReshard<S, A>;
  return detail::run_typed<Typed, Bound>("reshard", call, Typed::operation, {&x.core()});
}
inline DynamicTensor reshard(const DynamicTensor& x, const Sharding& to,
                             const CallOptions& call = Where::here()) {
  return DynamicTensor(detail::reshard(x.core(), to, call.site("reshard")));
}

/// Returns x, (n, m, ...), whole on every process. Communication: an all-gather over the axes that
/// split it, after an all-reduce over those over which it is unfinished; none where there are none.
/// Errors: as reshard. Collective over the mesh.
template <TypedTensor A> auto replicate(const A& x, const CallOptions& call = Where::here()) {
  return reshard<detail::spec_of<typename A::mesh_type, detail::ReplicatedSpec<A::rank>>>(x, call);
}
/// Returns x, (n, m, ...), with its Unreduced values finished, under its own dimensions' spec: x
/// itself where there are none. Communication: an all-reduce over the axes over which it is
/// unfinished. Errors: as reshard. Collective over the mesh.
template <class Bound = NoContract, TypedTensor A>
auto finish(const A& x, const CallOptions& call = Where::here()) {
  return reshard<detail::spec_of<typename A::mesh_type, detail::FinishedSpec<A>>, Bound>(x, call);
}
/// Returns x, (n, m, ...), split along dimension D over `Split` (an axis or Axes<...>), the other
/// dimensions whole. Communication, errors: as reshard; none where x is whole. Collective over the
/// mesh.
template <int D, class Split, TypedTensor A>
auto split(const A& x, const CallOptions& call = Where::here()) {
  static_assert(
      D >= 0 && D < A::rank,
      "[tessera] split names a dimension that the tensor does not have; dimensions count from 0");
  using M = typename A::mesh_type;
  static_assert(detail::demand_spec<M, P<Split>>());
  if constexpr (D >= 0 && D < A::rank)
    return reshard<
        detail::spec_of<M, typename detail::SplitSpec<D, Split>::template On<M, A::rank>>>(x, call);
  else
    return detail::Unknown<A>();
}
/// These overloads take everything at run time; `dim` and `axes` count from 0. `call`: a Contract.
inline DynamicTensor finish(const DynamicTensor& x, const CallOptions& call = Where::here()) {
  return DynamicTensor(detail::reshard(x.core(), x.sharding().finished(), call.site("finish")));
}
inline DynamicTensor replicate(const DynamicTensor& x, const CallOptions& call = Where::here()) {
  const TensorCore& core = x.core();
  return DynamicTensor(
      detail::reshard(core, Sharding::replicated(core.rank()), call.site("replicate")));
}
inline DynamicTensor split(const DynamicTensor& x, int dim, const AxisList& axes,
                           const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.site("split");
  detail::mesh_of(x.core(), site);
  Sharding s = Sharding::replicated(x.core().rank());
  if (dim < 0 || dim >= s.rank())
    detail::throw_broken(
        Rule::dimension_known,
        "split: " + explain(Verdict{.rule = Rule::dimension_known, .left = s.rank(), .dim = dim}),
        site.where);
  s[dim] = axes;
  return DynamicTensor(detail::reshard(x.core(), s, site));
}

}  // namespace tessera
