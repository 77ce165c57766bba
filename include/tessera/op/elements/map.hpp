// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise operators over any number of tensors in one kernel, with broadcasting: dimensions
/// line up from the right as in NumPy, or by letters. kernel/functions.hpp lists the functions that
/// exist; any functor will do.
///
///     auto z = map(fn::Add{}, x, bias);                  // x (batch, hidden), bias (hidden)
///     auto e = map<"bsv,bs->bsv">(fn::Subtract{}, scores, row_max);        // by letters
///     auto m = map_with_index(Causal{}, scores);  // Causal{}(const GlobalIndex&, float)
///
/// Laws: equals f applied to the whole tensors, elementwise; no communication when the shardings
/// agree; a functor that is not linear does not act on unfinished sums.
///
/// A functor that computes much is fastest as a KOKKOS_FORCEINLINE_FUNCTION without branches: in a
/// large source g++ calls a long one for each element, where an inlined one becomes vectors (gelu's
/// derivative: 20 and 2 ns for each element).
#include <type_traits>

#include <tessera/kernel/functions/fixed.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/op/elements/function_check.hpp>
#include <tessera/op/elements/map_runner.hpp>

namespace tessera {
namespace detail {

/// How a functor treats unfinished values: as its member `linearity` says, else it needs finished
/// ones. Specialise it for a functor whose type you cannot change.
template <class F> inline constexpr Linearity linearity_of = detail::stated_linearity<F>();

/// Returns the linearity of a functor on operands of types T.
template <class F, class... T> constexpr Linearity linearity_on() {
  if constexpr (requires { F::template linearity_on<T...>(); })
    return F::template linearity_on<T...>();
  else
    return linearity_of<F>;
}
template <class F, class... T> inline constexpr Linearity linearity = linearity_on<F, T...>();

/// Stands for lining dimensions up from the right.
struct FromTheRight {};

template <class E, class... A> struct MapTerms {
  static constexpr Terms value = parse(E::value.view());
};
template <class... A> struct MapTerms<FromTheRight, A...> {
  static constexpr Terms value = broadcast_terms({A::rank...});
};
template <Equation E> struct Named { static constexpr Equation value = E; };

/// How a map is made: E is FromTheRight or Named<equation>, Arguments what the function takes,
/// Elements or IndexAndElements.
template <class E, class F, class Arguments, class... A> struct MapBy {
  using function = typename Choose<(founded<A> && ...)>::template type<
      FunctionResult<F, Arguments, typename A::value_type...>, UnknownFunction<A...>>;
  using type = typename function::type;
  static constexpr ops::Map make(const TensorDescs&) {
    return {MapTerms<E, A...>::value,
            dtype_of<type>,
            detail::linearity<F, typename A::value_type...>,
            {},
            !std::is_same_v<Arguments, Elements>};
  }
};
/// Constrained, since clang 14 names the result of an overload before it looks at its constraints.
template <class E, class Out, class F, class Arguments, TypedTensor... A>
using TypedMap = Typed<MapBy<E, F, Arguments, A...>, Out, A...>;

template <class Call, class Bound = NoContract, class F, class... A>
typename Call::result run_map(const F& f, const CallOptions& call, const A&... x) {
  using R = typename Call::type;
  if constexpr (Call::by::function::callable)
    return run_typed<Call, Bound>(
        function_name<F>(), call, Call::operation, {&x.core()...},
        {.kernel = MapRunner<R, F, typename A::value_type...>::kernel(f)});
  else
    return {};
}

/// Returns where the block of a result lies; not a template, so that it is compiled once.
inline void place_result(const Terms& terms, const OperandList& operands, const Sharding& out,
                         Extents& offset, Extents& extents) {
  const MeshCore& mesh = *operands[0]->mesh();
  extents = broadcast_extents(terms, descs_of(operands));
  offset.clear();
  for (const Interval& side : block(extents, out, mesh.shape(), mesh.coordinates()).side)
    offset.push_back(side.lo);
}

template <class Call, class Bound = NoContract, class F, class... A>
typename Call::result run_map_with_index(const F& f, const CallOptions& call, const A&... x) {
  using R = typename Call::type;
  const OperandList operands{&x.core()...};
  PlacedFunction<F> placed{f, {}, {}};
  place_result(Call::operation.terms, operands, result_sharding<Call>(operands), placed.offset,
               placed.extents);
  if constexpr (Call::by::function::callable)
    return run_typed<Call, Bound>(
        function_name<F>(), call, Call::operation, operands,
        {.kernel = IndexRunner<R, F, typename A::value_type...>::kernel(placed)});
  else
    return {};
}

template <class E, class Out, class F, class Arguments, TypedTensor... A>
using MapResult = typename TypedMap<E, Out, F, Arguments, A...>::result;

/// A named function of tensors, from the right: what op/elements/functions.hpp and its siblings
/// call.
template <class F, TypedTensor... A>
MapResult<FromTheRight, Deduced, F, Elements, A...> apply(const F& f, const CallOptions& call,
                                                          const A&... x) {
  return run_map<TypedMap<FromTheRight, Deduced, F, Elements, A...>>(f, call, x...);
}
}  // namespace detail

/// Returns f(x...) elementwise, dimensions lined up from the right; an extent of 1 stretches. f is
/// a functor whose operator() is const and a KOKKOS_FUNCTION (or any lambda on host backends); the
/// element type of the result is the type that f returns; those of the operands may differ.
/// Communication: operands whose sharding differs from the result's are resharded, within the
/// contract `Bound` as in map<Only<gathers<data>>>(f, x); a dimension that is split and stretches
/// is gathered. Collective over the mesh. Throws ShapeError when extents disagree.
template <class Bound = NoContract, class F, TypedTensor A>
detail::MapResult<detail::FromTheRight, Deduced, F, detail::Elements, A> map(
    const F& f, const A& x, const CallOptions& call = Where::here()) {
  return detail::run_map<detail::TypedMap<detail::FromTheRight, Deduced, F, detail::Elements, A>,
                         Bound>(f, call, x);
}
template <class Bound = NoContract, class F, TypedTensor A, TypedTensor B>
detail::MapResult<detail::FromTheRight, Deduced, F, detail::Elements, A, B> map(
    const F& f, const A& x, const B& y, const CallOptions& call = Where::here()) {
  return detail::run_map<detail::TypedMap<detail::FromTheRight, Deduced, F, detail::Elements, A, B>,
                         Bound>(f, call, x, y);
}
template <class Bound = NoContract, class F, TypedTensor A, TypedTensor B, TypedTensor C>
detail::MapResult<detail::FromTheRight, Deduced, F, detail::Elements, A, B, C> map(
    const F& f, const A& x, const B& y, const C& z, const CallOptions& call = Where::here()) {
  return detail::run_map<
      detail::TypedMap<detail::FromTheRight, Deduced, F, detail::Elements, A, B, C>, Bound>(
      f, call, x, y, z);
}
/// More operands are a pack, which the place of the call cannot follow in C++; at() goes first.
template <class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 4)
detail::MapResult<detail::FromTheRight, Deduced, F, detail::Elements, A...> map(const F& f,
                                                                                const A&... x) {
  return detail::run_map<detail::TypedMap<detail::FromTheRight, Deduced, F, detail::Elements, A...>,
                         Bound>(f, Where{}, x...);
}
/// These overloads go by letters: map<"bsv,bs->bsv">(f, x, y); `Out` may name the spec of the
/// result.
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A>
detail::MapResult<detail::Named<E>, Out, F, detail::Elements, A> map(
    const F& f, const A& x, const CallOptions& call = Where::here()) {
  return detail::run_map<detail::TypedMap<detail::Named<E>, Out, F, detail::Elements, A>, Bound>(
      f, call, x);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A,
          TypedTensor B>
detail::MapResult<detail::Named<E>, Out, F, detail::Elements, A, B> map(
    const F& f, const A& x, const B& y, const CallOptions& call = Where::here()) {
  return detail::run_map<detail::TypedMap<detail::Named<E>, Out, F, detail::Elements, A, B>, Bound>(
      f, call, x, y);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A,
          TypedTensor B, TypedTensor C>
detail::MapResult<detail::Named<E>, Out, F, detail::Elements, A, B, C> map(
    const F& f, const A& x, const B& y, const C& z, const CallOptions& call = Where::here()) {
  return detail::run_map<detail::TypedMap<detail::Named<E>, Out, F, detail::Elements, A, B, C>,
                         Bound>(f, call, x, y, z);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 4)
detail::MapResult<detail::Named<E>, Out, F, detail::Elements, A...> map(const F& f, const A&... x) {
  return detail::run_map<detail::TypedMap<detail::Named<E>, Out, F, detail::Elements, A...>, Bound>(
      f, Where{}, x...);
}

/// Returns f(i, x...) elementwise, where i is the GlobalIndex of the result's element; else as map.
/// Communication: as map. Collective over the mesh. Throws ShapeError when extents disagree.
template <class Bound = NoContract, class F, TypedTensor A>
detail::MapResult<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A> map_with_index(
    const F& f, const A& x, const CallOptions& call = Where::here()) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A>, Bound>(
      f, call, x);
}
template <class Bound = NoContract, class F, TypedTensor A, TypedTensor B>
detail::MapResult<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A, B> map_with_index(
    const F& f, const A& x, const B& y, const CallOptions& call = Where::here()) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A, B>, Bound>(
      f, call, x, y);
}
template <class Bound = NoContract, class F, TypedTensor A, TypedTensor B, TypedTensor C>
detail::MapResult<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A, B, C>
map_with_index(const F& f, const A& x, const B& y, const C& z,
               const CallOptions& call = Where::here()) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A, B, C>, Bound>(
      f, call, x, y, z);
}
/// More operands are a pack, which the place of the call cannot follow in C++; at() goes first.
template <class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 4)
detail::MapResult<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A...> map_with_index(
    const F& f, const A&... x) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A...>, Bound>(
      f, Where{}, x...);
}
/// These overloads go by letters: map_with_index<"qk,k->qk">(f, scores, bias).
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A>
detail::MapResult<detail::Named<E>, Out, F, detail::IndexAndElements, A> map_with_index(
    const F& f, const A& x, const CallOptions& call = Where::here()) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::Named<E>, Out, F, detail::IndexAndElements, A>, Bound>(f, call, x);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A,
          TypedTensor B>
detail::MapResult<detail::Named<E>, Out, F, detail::IndexAndElements, A, B> map_with_index(
    const F& f, const A& x, const B& y, const CallOptions& call = Where::here()) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::Named<E>, Out, F, detail::IndexAndElements, A, B>, Bound>(f, call, x,
                                                                                         y);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A,
          TypedTensor B, TypedTensor C>
detail::MapResult<detail::Named<E>, Out, F, detail::IndexAndElements, A, B, C> map_with_index(
    const F& f, const A& x, const B& y, const C& z, const CallOptions& call = Where::here()) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::Named<E>, Out, F, detail::IndexAndElements, A, B, C>, Bound>(
      f, call, x, y, z);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 4)
detail::MapResult<detail::Named<E>, Out, F, detail::IndexAndElements, A...> map_with_index(
    const F& f, const A&... x) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::Named<E>, Out, F, detail::IndexAndElements, A...>, Bound>(f, Where{},
                                                                                         x...);
}

/// Any number of operands and the place of the call: map(at(), f, a, b, c, d).
template <class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 1)
detail::MapResult<detail::FromTheRight, Deduced, F, detail::Elements, A...> map(At at, const F& f,
                                                                                const A&... x) {
  return detail::run_map<detail::TypedMap<detail::FromTheRight, Deduced, F, detail::Elements, A...>,
                         Bound>(f, at.where, x...);
}

/// This overload goes by letters.
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 1)
detail::MapResult<detail::Named<E>, Out, F, detail::Elements, A...> map(At at, const F& f,
                                                                        const A&... x) {
  return detail::run_map<detail::TypedMap<detail::Named<E>, Out, F, detail::Elements, A...>, Bound>(
      f, at.where, x...);
}

/// This overload gives f the index.
template <class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 1)
detail::MapResult<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A...> map_with_index(
    At at, const F& f, const A&... x) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::FromTheRight, Deduced, F, detail::IndexAndElements, A...>, Bound>(
      f, at.where, x...);
}

/// This overload goes by letters, and gives f the index.
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 1)
detail::MapResult<detail::Named<E>, Out, F, detail::IndexAndElements, A...> map_with_index(
    At at, const F& f, const A&... x) {
  return detail::run_map_with_index<
      detail::TypedMap<detail::Named<E>, Out, F, detail::IndexAndElements, A...>, Bound>(
      f, at.where, x...);
}
}  // namespace tessera
