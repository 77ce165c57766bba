// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What becomes of a tensor's type where a manual function begins and ends, and of the tensor: the
/// same block, on this process's part of the mesh, and back.
///
///     Entered<ShardedTensor<float, Grid, P<model, data>>, model>::type     // varies over model, P<_, data>
///
/// Laws: left(entered(x)) == x; nothing moves.
#include <string>
#include <type_traits>

#include <tessera/mesh/manual.hpp>
#include <tessera/run/whole_view.hpp>
#include <tessera/spec/manual_view.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

/// Of a result of a manual function: the blocks lie side by side along dimension D, over these
/// axes.
template <int D, class... X> struct Lies {};
/// Such a result (manual/along.hpp).
template <TypedTensor A, class... L> struct LiesAlong { A tensor; };

namespace detail {
/// Returns for each axis of M that X... are not its number in M.
template <class M, class... X> constexpr AxisList other_axes() {
  AxisList axes;
  const AxisSet named{M::template index<X>...};
  for (int a = 0; a < M::rank; ++a)
    if (!named.contains(a)) axes.push_back(a);
  return axes;
}
/// Returns axes by their numbers in M, as the mesh on which the function is called numbers them.
template <class M> constexpr AxisSet numbered_in_whole(AxisSet axes) {
  constexpr AxisList free = free_axes<M>();
  AxisSet whole;
  for (int a = 0; a < free.size(); ++a)
    if (axes.contains(a)) whole.insert(free[a]);
  return whole;
}

template <class A, class... X> struct Entered {
  using M = typename A::mesh_type;
  using Facts = ManualFacts<M>;
  static constexpr const Sharding& from = TensorFacts<A>::sharding();
  static constexpr AxisSet named{M::template index<X>...};
  static constexpr EnteredView entered = entered_view(from, named);
  static consteval bool said() {
    static_assert(!TensorFacts<A>::open,
                  "[tessera] a tensor whose type leaves dimensions Open enters a manual function; "
                  "name how it lies: reshard<P<...>>(x)");
    static_assert(entered.ok,
                  "[tessera] a tensor enters a manual function that names an axis which splits a "
                  "dimension after an automatic axis; the named axes are the major ones of "
                  "Axes<named, others>; reshard it first");
    static_assert(entered.view.partial.empty() || from.reduction == Reduction::sum,
                  "[tessera] a tensor that enters a manual function is unfinished over an axis "
                  "that it names, by another operation than a sum; finish(x) first");
    return true;
  }
  static_assert(said());
  static constexpr AxisSet varies = Facts::varies | numbered_in_whole<M>(entered.view.major.used());
  static constexpr AxisSet unfinished =
      Facts::unfinished | numbered_in_whole<M>(entered.view.partial);
  using mesh = ManualOf<typename Facts::whole, (Facts::named | numbered_in_whole<M>(named)).bits,
                        varies.bits, unfinished.bits>;
  static constexpr Sharding value = inner_sharding(from, other_axes<M, X...>(), entered.view);
  using type = ShardedTensor<typename A::value_type, mesh, spec_of<mesh, Entered>>;

  static type of(const A& x, CallSite site) {
    const TensorCore& core = x.core();
    const MeshCore& outer = mesh_of(core, site);
    require_by_itself(core, site.where);
    for (int d = 0; d < from.rank(); ++d)
      if (const int parts = outer.shape().parts(entered.view.major[d]);
          core.extents()[d] % parts != 0)
        throw ShapeError("manual: dimension " + std::to_string(d) + " of " +
                             to_string(core.desc(), outer.names()) + " has extent " +
                             std::to_string(core.extents()[d]) + ", and is split into " +
                             std::to_string(parts) +
                             " parts over axes that are named; within the function each process "
                             "has a tensor of the same extents; pad it to a multiple, or reshard "
                             "it so that the named axes split another dimension",
                         site.where);
    return type(seen_inner(core, own_part(core.mesh(), named, site.where), entered.view,
                           varies | unfinished, site));
  }
};

/// The dimension along which the blocks of a result lie, over axes of the outer mesh.
template <class M, int Rank, class... L> struct MajorOf {
  static constexpr Sharding value = Sharding::replicated(Rank);
};
template <class M, int Rank, int D, class... X, class... L>
struct MajorOf<M, Rank, Lies<D, X...>, L...> {
  static constexpr Sharding value = [] {
    Sharding s = MajorOf<M, Rank, L...>::value;
    if constexpr (D >= 0 && D < Rank) (s[D].push_back(M::template index<X>), ...);
    return s;
  }();
};

/// A is a result of a function of manual<X...>, called on tensors of a mesh of type Outer.
template <class Outer, class ManualAxes, class A, class... L> struct Left;
template <class Outer, class... X, class A, class... L>
struct Left<Outer, ManualAxes<X...>, A, L...> {
  using Facts = ManualFacts<typename A::mesh_type>;
  using OuterFacts = ManualFacts<Outer>;
  static constexpr AxisSet named{Outer::template index<X>...};
  static constexpr AxisSet all = numbered_in_whole<Outer>(named);
  static constexpr bool within =
      std::is_same_v<typename Facts::whole, typename OuterFacts::whole> &&
      Facts::named == (OuterFacts::named | all);
  static constexpr ManualView view{MajorOf<Outer, A::rank, L...>::value, {}, [] {
                                     AxisSet partial;
                                     constexpr AxisList free = free_axes<Outer>();
                                     for (int a = 0; a < free.size(); ++a)
                                       if (Facts::unfinished.contains(free[a])) partial.insert(a);
                                     return (partial & named) -
                                            MajorOf<Outer, A::rank, L...>::value.used();
                                   }()};
  static constexpr AxisSet lie = numbered_in_whole<Outer>(view.major.used());
  static constexpr bool reported = !founded<A>;  ///< it is the result of a call with a mistake
  static consteval bool said() {
    static_assert(reported || within,
                  "[tessera] a manual function returns a tensor that is none of its mesh; what it "
                  "returns is made of its arguments, on the part of the mesh that is left");
    static_assert(
        reported || !within || (Facts::varies & all & lie) == (Facts::varies & all),
        "[tessera] a manual function returns a tensor that varies over an axis that it "
        "names as if it were equal; along<dimension, axis>(y) says along which dimension "
        "its blocks lie, all_reduce_over<axis>(y) adds them, and equal_by_promise<axis>(y) "
        "claims that they are equal");
    static_assert(reported || !within || (Facts::unfinished & lie).empty(),
                  "[tessera] a manual function returns parts of a sum as blocks along a dimension; "
                  "all_reduce_over<axis>(y) or reduce_scatter_over<axis, dimension>(y) first");
    static_assert(reported || view.partial.empty() || TensorFacts<A>::sharding().partial.empty() ||
                      TensorFacts<A>::sharding().reduction == Reduction::sum,
                  "[tessera] a manual function returns parts of a sum that are unfinished by "
                  "another operation too; finish(y) first");
    return true;
  }
  static_assert(said());
  using mesh = typename std::conditional_t<
      OuterFacts::manual,
      std::type_identity<ManualOf<typename OuterFacts::whole, OuterFacts::named.bits,
                                  (Facts::varies - all).bits, (Facts::unfinished - all).bits>>,
      std::type_identity<Outer>>::type;
  static constexpr Sharding value =
      outer_sharding(TensorFacts<A>::sharding(), other_axes<Outer, X...>(), view);
  using type = ShardedTensor<typename A::value_type, mesh, spec_of<mesh, Left>>;

  static type of(const A& y, const std::shared_ptr<MeshCore>& outer, CallSite site) {
    (void)mesh_of(y.core(), site);
    require_by_itself(y.core(), site.where);
    return type(seen_outer(seen_varying(y.core(), lie, site), outer, view, site));
  }
};

}  // namespace detail
}  // namespace tessera
