// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Manual mode: a function within which some axes of the mesh are the caller's business, and the
/// others stay automatic.
///
///     // x: P<model, data>, (n, m); within, xs is (n / model, m), and varies over model
///     const auto y = manual<model>([](const auto& xs) { return all_reduce_over<model>(xs * xs); })(x);
///     static_assert(std::is_same_v<decltype(y), const ShardedTensor<float, Grid, P<_, data>>>);
///
/// Within the function a tensor is one of the part of the mesh that is left, at this process's
/// coordinates of the named axes; every operator works on it, and shards over the other axes. Its
/// type says over which named axes it varies, is equal, or is a part of a sum (mesh/manual.hpp). It
/// calls collectives by an axis's name (manual/collectives.hpp, manual/permute.hpp), asks for its
/// place (manual/axis.hpp), or views its block (local_view) in a kernel of its own.
///
/// A tensor that a named axis splits enters as this process's block, and varies; one that it does
/// not split is equal; one that is unfinished over it, by a sum, is a part of that sum. They leave
/// as they are: what is equal without more words, parts of a sum as Unreduced, and what varies with
/// along<dimension, axis>.
///
/// A layer, a struct with Fields whose first template parameter U says the types of its tensors
/// (nn/under.hpp), enters as the same layer of Within<U, axes...>, each tensor as by itself.
///
/// Laws: entering and leaving move nothing; gradients are those of the same function of whole
/// tensors: what is equal, and is used where something varies, gets the sum of all gradients there.
/// Source: JAX's shard_map, and the manual subgroups of GSPMD (GSPMD, section 3.5).
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/manual/along.hpp>
#include <tessera/manual/detail/entered.hpp>
#include <tessera/manual/within.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace detail {

/// Returns the mesh of a tensor, or of the first one of a tree; null where there is none.
template <class A> std::shared_ptr<MeshCore> outer_of(const A& x) {
  if constexpr (TypedTensor<A>) {
    return x.defined() ? x.core().mesh() : nullptr;
  } else if constexpr (HasFields<A>) {
    std::shared_ptr<MeshCore> found;
    for_each_tensor([&](const auto& one) { found = found ? found : outer_of(one); }, x);
    return found;
  } else if constexpr (requires { std::tuple_size<A>::value; }) {
    std::shared_ptr<MeshCore> found;
    std::apply([&](const auto&... one) { ((found = found ? found : outer_of(one)), ...); }, x);
    return found;
  } else {
    for (const auto& one : x)
      if (auto found = outer_of(one)) return found;
    return nullptr;
  }
}

template <class... X> struct ManualCall {
  /// An argument as the function sees it.
  template <class A> static auto enter(const A& x, CallSite site) {
    if constexpr (TypedTensor<A>) {
      return Entered<A, X...>::of(x, site);
    } else if constexpr (HasFields<A>) {
      return enter_layer(x, site);
    } else if constexpr (requires { std::tuple_size<A>::value; }) {
      return std::apply([&](const auto&... one) { return std::tuple(enter(one, site)...); }, x);
    } else {
      static_assert(
          requires { requires TypedTensor<typename A::value_type>; },
          "[tessera] a manual function is given something else than typed tensors, layers, tuples "
          "and vectors of them; let the function capture it");
      std::vector<decltype(enter(*x.begin(), site))> all;
      for (const auto& one : x) all.push_back(enter(one, site));
      return all;
    }
  }
  /// A layer, each tensor of which enters by itself.
  template <class A> static auto enter_layer(const A& x, CallSite site) {
    if constexpr (is_layer<A>) {
      static_assert(
          !has_other_members<A>,
          "[tessera] a layer enters a manual function that has members beside its fields, "
          "which would not enter; let the function capture them, or make them fields");
      return map_tensors_to<LayerUnder<A, Within<UnderOf<A>, X...>>>(
          [&](const auto& one) { return enter(one, site); }, x);
    } else {
      static_assert(is_layer<A>,
                    "[tessera] a struct enters a manual function whose tensors do not follow from "
                    "its first template parameter, so that none of its kind has the types that "
                    "they have within; make it a template on Under<...>, or give its tensors in "
                    "a tuple");
      return x;
    }
  }
  /// A result as the caller sees it.
  template <class Outer, class R>
  static auto leave(const R& y, const std::shared_ptr<MeshCore>& outer, CallSite site) {
    if constexpr (TypedTensor<R>) {
      return Left<Outer, ManualAxes<X...>, R>::of(y, outer, site);
    } else if constexpr (requires { std::tuple_size<R>::value; }) {
      return std::apply(
          [&](const auto&... one) { return std::tuple(leave<Outer>(one, outer, site)...); }, y);
    } else if constexpr (requires { y.tensor; }) {
      return leave_along<Outer>(y, outer, site);
    } else {
      std::vector<decltype(leave<Outer>(*y.begin(), outer, site))> all;
      for (const auto& one : y) all.push_back(leave<Outer>(one, outer, site));
      return all;
    }
  }
  template <class Outer, class A, class... L>
  static auto leave_along(const LiesAlong<A, L...>& y, const std::shared_ptr<MeshCore>& outer,
                          CallSite site) {
    constexpr bool named = (all_named(L{}) && ...);
    static_assert(named,
                  "[tessera] along names an axis that the manual function around it does not name");
    if constexpr (named)
      return Left<Outer, ManualAxes<X...>, A, L...>::of(y.tensor, outer, site);
    else
      return Unknown<A>();
  }
  /// What a call with a mistake returns, which has been reported.
  template <class A> static auto unknown() {
    if constexpr (TypedTensor<A>)
      return Unknown<A>();
    else
      return A();
  }
  template <int D, class... Y> static constexpr bool all_named(Lies<D, Y...>) {
    return ((index_in<Y, X...>() >= 0) && ...);
  }
};

template <class F, class... X> class ManualFunction {
 public:
  ManualFunction(F f, Where where) : f_(std::move(f)), where_(where) {}

  template <class First, class... A> auto operator()(const First& first, const A&... more) const {
    const CallSite site{"manual", where_};
    using Outer = typename FirstTensor<First>::mesh_type;
    std::shared_ptr<MeshCore> outer = outer_of(first);
    ((outer = outer ? outer : outer_of(more)), ...);
    if (outer == nullptr) throw UsageError("manual: the tensors are empty", where_);
    if constexpr (!ManualMeshOf<Outer, X...>::said())
      return ManualCall<X...>::template unknown<First>();
    else
      return ManualCall<X...>::template leave<Outer>(
          f_(ManualCall<X...>::enter(first, site), ManualCall<X...>::enter(more, site)...), outer,
          site);
  }

 private:
  F f_;
  Where where_;
};
}  // namespace detail

/// Returns a function of tensors, layers, or tuples and vectors of them, of one mesh that calls f
/// within manual mode of the axes X..., and returns what f returns, as tensors of that mesh.
/// Communication: what f calls; collectives by an axis's name communicate between the processes of
/// the mesh, other operators within the part that is left. Collective over the mesh: every process
/// calls the same collectives in the same order. Throws ShapeError where a dimension is split over
/// a named axis unevenly.
template <class... X, class F> auto manual(F&& f, Where where = Where::here()) {
  return detail::ManualFunction<std::decay_t<F>, X...>(std::forward<F>(f), where);
}

/// Returns the mesh of tensors within manual<X...> that are equal over these axes: to make tensors
/// there, `zeros<ShardedTensor<float, ManualMesh<Grid, model>, P<_,
/// data>>>(manual_mesh<model>(mesh), n, m)`. Communication: as make_mesh, between the processes of
/// the part, at the first request. Collective over these. Throws nothing of its own.
template <class... X, class M>
ProcessMesh<ManualMesh<M, X...>> manual_mesh(const ProcessMesh<M>& mesh,
                                             Where where = Where::here()) {
  return ProcessMesh<ManualMesh<M, X...>>(
      detail::own_part(mesh.core(), AxisSet{M::template index<X>...}, where));
}

}  // namespace tessera
