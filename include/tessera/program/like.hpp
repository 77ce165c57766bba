// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Plans of one operator from the types of its tensors, also at compile time, without Kokkos and
/// without MPI.
///
///     constexpr auto p = plan<"ik,kj->ij">(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(2, 4));
///     static_assert(p.count(all_reduce) == 0);
///     std::string text = to_string(p);
///
/// Laws: the operator on tensors of these types carries out exactly this plan.
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/op/product/product_of_two.hpp>
#include <tessera/plan/op/typed_call.hpp>
#include <tessera/program/explain.hpp>

namespace tessera {

/// A tensor's type and extents, without a mesh and without data.
template <TypedTensor Tensor> struct Like {
  using tensor = Tensor;
  Extents extents;
  /// Returns its description; dimensions that its type leaves open are whole.
  constexpr TensorDesc desc() const {
    using Facts = detail::TensorFacts<Tensor>;
    return {dtype_of<typename Facts::value_type>, extents,
            detail::whole_where_open(Facts::sharding())};
  }
};

/// Returns the description of a Tensor of extents n...
template <TypedTensor Tensor, std::convertible_to<Index>... N> constexpr Like<Tensor> like(N... n) {
  static_assert(sizeof...(N) == detail::TensorFacts<Tensor>::rank,
                "[tessera] like<Tensor>(...) is given another number of extents than its tensor "
                "has dimensions; give one for each dimension of the tensor's spec");
  return {Extents{static_cast<Index>(n)...}};
}

namespace detail {
/// The error of a compile-time plan whose extents disagree. It is not a constant expression, so the
/// compiler's message shows the letter, both extents and these lines.
template <char Letter>
constexpr Index letter_has_two_extents([[maybe_unused]] const char* letter, Index one,
                                       Index another) {
  // clang-format off
  return one << -another;  // [tessera] one letter stands for dimensions of two extents, which the message shows as (one << -another); a letter has one extent; make the extents equal
  // clang-format on
}
/// The letters as strings, which clang shows; g++ shows the template's argument.
inline constexpr const char* letter_texts[] = {
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O",
    "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z", "[", "",  "]", "^",
    "_", "`", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m",
    "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z"};
template <char Letter> constexpr void say_extents_of(const Verdict& v) {
  if (v.label != Letter) return;
  const bool none = v.right == 0;  // a shift by -0 would be one
  (void)letter_has_two_extents<Letter>(letter_texts[Letter - 'A'], none ? v.right : v.left,
                                       none ? v.left : v.right);
}
template <Equation E, std::size_t... I>
constexpr void say_extents(const Verdict& v, std::index_sequence<I...>) {
  constexpr Equation e = E;
  (say_extents_of<(is_label(e.text[I]) ? e.text[I] : 'A')>(v), ...);
}
/// At compile time this is not a constant, so the message stops the build; at run time it throws.
template <Equation E> constexpr void require_extents(const Terms& terms, const TensorDescs& descs) {
  const Verdict v = check_extents(terms, descs, false);
  if (v.ok()) return;
  if (std::is_constant_evaluated())
    say_extents<E>(v, std::make_index_sequence<static_cast<std::size_t>(E.length)>{});
  else
    detail::throw_broken(v.rule, explain(v, terms, {}));
}
}  // namespace detail

/// A plan that knows the names of its mesh's axes.
template <class M> struct TypedPlan : Plan { using mesh_type = M; };
/// Return the plan as text, with the names of its mesh's axes: explain(plan, names).
template <class M> std::string explain(const TypedPlan<M>& plan) {
  return explain(static_cast<const Plan&>(plan), M::names());
}
template <class M> std::string to_string(const TypedPlan<M>& plan) { return explain(plan); }

namespace detail {
/// Returns the plan of a typed operator on operands of these extents.
template <class Typed>
constexpr TypedPlan<typename Typed::mesh> plan_typed(const TensorDescs& operands,
                                                     const MeshSizes<typename Typed::mesh>& mesh,
                                                     int process, const PlanOptions& options) {
  if constexpr (requires { Typed::open; })
    static_assert(InvalidOperator<Rule::nothing_open, typename Typed::result>::said());
  return {Typed::operation.plan(operands, {mesh.shape, process, options})};
}
}  // namespace detail

/// Returns the plan of einsum<E, Out>(a, b) on process `process` of a mesh of the given sizes.
template <Equation E, class Out = Deduced, class A, class B>
constexpr TypedPlan<typename detail::TensorFacts<A>::mesh_type> plan(
    Like<A> a, Like<B> b, MeshSizes<typename detail::TensorFacts<A>::mesh_type> mesh,
    int process = 0, const PlanOptions& options = {}) {
  using Typed = detail::TypedEinsum<E, Out, A, B>;
  detail::require_extents<E>(Typed::operation.terms, {a.desc(), b.desc()});
  return detail::plan_typed<Typed>({a.desc(), b.desc()}, mesh, process, options);
}
/// Returns the plan of reduce<Kind, E, Out>(x).
template <class Kind, Equation E, class Out = Deduced, class A>
constexpr TypedPlan<typename detail::TensorFacts<A>::mesh_type> plan(
    Like<A> x, MeshSizes<typename detail::TensorFacts<A>::mesh_type> mesh, int process = 0,
    const PlanOptions& options = {}) {
  using Typed = detail::TypedReduce<Kind, E, Out, A>;
  detail::require_extents<E>(Typed::operation.terms, {x.desc()});
  return detail::plan_typed<Typed>({x.desc()}, mesh, process, options);
}
/// Returns the plan of reshard<S>(x).
template <class S, class A>
constexpr TypedPlan<typename detail::TensorFacts<A>::mesh_type> plan(
    Like<A> x, MeshSizes<typename detail::TensorFacts<A>::mesh_type> mesh, int process = 0,
    const PlanOptions& options = {}) {
  return detail::plan_typed<detail::TypedReshard<S, A>>({x.desc()}, mesh, process, options);
}

}  // namespace tessera
