// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Plans of one operator from the types of its tensors, at compile time if one likes, without
/// Kokkos and without MPI.
///
///     constexpr auto p = plan<"ik,kj->ij">(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(2, 4));
///     static_assert(p.count(all_reduce) == 0);
///     std::string text = to_string(p);
///
/// Laws: the plan is what the operator on tensors of these types carries out.
#include <concepts>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/einsum.hpp>
#include <tessera/plan/explain.hpp>
#include <tessera/plan/typed_call.hpp>

namespace tessera {

/// A tensor's type and extents, without a mesh and without data.
template <TypedTensor Tensor> struct Like {
  using tensor = Tensor;
  Extents extents;
  constexpr TensorDesc desc() const {
    using Facts = detail::TensorFacts<Tensor>;
    return {dtype_of<typename Facts::value_type>, extents, Facts::sharding()};
  }
};

/// Returns the description of a Tensor of extents n...
template <TypedTensor Tensor, std::convertible_to<Index>... N> constexpr Like<Tensor> like(N... n) {
  static_assert(
      sizeof...(N) == detail::TensorFacts<Tensor>::rank,
      "[tessera] like<Tensor>(...) takes one extent for each dimension of the tensor's spec");
  return {Extents{static_cast<Index>(n)...}};
}

namespace detail {
/// At compile time this is not a constant, so the message stops the build; at run time it is an
/// exception.
inline void shapes_disagree(const Verdict& v, const Terms& terms) {
  throw ShapeError(explain(v, terms, {}));
}
constexpr void require_extents(const Terms& terms, const TensorDescs& descs) {
  const Verdict v = check_extents(terms, descs, false);
  if (!v.ok()) shapes_disagree(v, terms);
}
}  // namespace detail

/// A plan that knows the names of its mesh's axes.
template <class M> struct TypedPlan : Plan { using mesh_type = M; };
/// Return the plan as text, with the names of its mesh's axes: explain(plan, names).
template <class M> std::string explain(const TypedPlan<M>& plan) {
  return explain(static_cast<const Plan&>(plan), M::names());
}
template <class M> std::string to_string(const TypedPlan<M>& plan) { return explain(plan); }

/// Returns what einsum<E, Out>(a, b) does on process `process` of a mesh of the given sizes.
template <Equation E, class Out = Deduced, class A, class B>
constexpr TypedPlan<typename detail::TensorFacts<A>::mesh_type> plan(
    Like<A> a, Like<B> b, MeshSizes<typename detail::TensorFacts<A>::mesh_type> mesh,
    int process = 0, const PlanOptions& options = {}) {
  using Typed = detail::EinsumCall<E, Out, A, B>;
  detail::require_extents(Typed::terms, {a.desc(), b.desc()});
  return {
      plan_einsum(Typed::terms, a.desc(), b.desc(), Typed::value, mesh.shape, process, options)};
}
/// Returns what reshard<S>(x) does.
template <class S, class A>
constexpr TypedPlan<typename detail::TensorFacts<A>::mesh_type> plan(
    Like<A> x, MeshSizes<typename detail::TensorFacts<A>::mesh_type> mesh, int process = 0,
    const PlanOptions& options = {}) {
  using M = typename detail::TensorFacts<A>::mesh_type;
  static_assert(detail::demand_spec<M, S>());
  return {plan_reshard(x.desc(), lower<M, S>(), mesh.shape, process, options)};
}

}  // namespace tessera
