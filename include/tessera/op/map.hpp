// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise operators over any number of tensors in one kernel, with broadcasting: dimensions
/// line up from the right as NumPy's do, or by letters. Which functions exist is
/// kernel/functions.hpp's matter; any functor will do.
///
///     auto z = map(fn::Add{}, x, bias);                  // x (batch, hidden), bias (hidden)
///     auto e = map<"bsv,bs->bsv">(fn::Subtract{}, x, row_max);             // by letters
///
/// Laws: equals f applied to the whole tensors, elementwise; no communication when the shardings
/// agree; a functor that is not linear does not act on unfinished sums.
#include <type_traits>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map.hpp>
#include <tessera/kernel/scalar_functions.hpp>
#include <tessera/op/operators.hpp>
#include <tessera/op/result.hpp>

namespace tessera {

/// How a functor treats unfinished values; specialise it for a linear functor of your own.
template <class F> inline constexpr Linearity linearity_of = Linearity::pointwise;
template <> inline constexpr Linearity linearity_of<fn::Add> = Linearity::linear;
template <> inline constexpr Linearity linearity_of<fn::Subtract> = Linearity::linear;
template <> inline constexpr Linearity linearity_of<fn::Multiply> = Linearity::bilinear;
template <> inline constexpr Linearity linearity_of<fn::Divide> = Linearity::linear_in_first;
template <> inline constexpr Linearity linearity_of<fn::Negate> = Linearity::linear;
template <class T> inline constexpr Linearity linearity_of<fn::ScaleBy<T>> = Linearity::linear;
template <class T>
inline constexpr Linearity linearity_of<fn::DivideBy<T>> =
    std::is_floating_point_v<T> ? Linearity::linear : Linearity::pointwise;
template <> inline constexpr Linearity linearity_of<fn::Relu> = Linearity::monotone;
template <> inline constexpr Linearity linearity_of<fn::Exp> = Linearity::monotone;
template <> inline constexpr Linearity linearity_of<fn::Tanh> = Linearity::monotone;
template <> inline constexpr Linearity linearity_of<fn::Maximum> = Linearity::maximum;
template <> inline constexpr Linearity linearity_of<fn::Minimum> = Linearity::minimum;

namespace detail {
/// Quotients of integers are cut, so they are not linear.
template <class F, class T>
inline constexpr Linearity linearity =
    std::is_integral_v<T>&& linearity_of<F> == Linearity::linear_in_first ? Linearity::pointwise
                                                                          : linearity_of<F>;

/// Stands for lining dimensions up from the right.
struct FromTheRight {};

template <class E, class... A> struct MapTerms {
  static constexpr Terms value = parse(E::value.view());
};
template <class... A> struct MapTerms<FromTheRight, A...> {
  static constexpr Terms value = broadcast_terms({A::rank...});
};
template <Equation E> struct Named { static constexpr Equation value = E; };

/// Constrained, since clang 14 names the result of an overload before it looks at its constraints.
template <class E, class Out, class F, TypedTensor... A> struct MapCall {
  using mesh = typename CommonMesh<A...>::type;
  using type =
      std::remove_cvref_t<std::invoke_result_t<const F&, const typename A::value_type&...>>;
  static_assert(Element<type>,
                "[tessera] the function of a map returns a type that no tensor holds; return "
                "float, double, int32 or int64");
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = MapTerms<E, A...>::value;
  static constexpr Shardings operands{A::sharding()...};
  static constexpr AxisSet open = AxisSet::from_bits((A::sharding().partial.bits | ...));
  static constexpr Sharding value = [] {
    Sharding s = OutSharding<mesh, Out>::make(terms, operands);
    if (!std::is_same_v<Out, Deduced> || open.empty()) return s;
    Reduction kind = Reduction::sum;
    for (const Sharding& operand : operands)
      if (!operand.partial.empty()) kind = operand.reduction;
    for (int d = 0; d < s.rank(); ++d) s[d] = s[d].without(open);
    return s.with_partial(open, kind);
  }();
  static constexpr Verdict verdict = check_map(terms, operands, value, linearity<F, type>);
  static_assert(demand<MapCall, A...>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_map(terms, operands, value, on, contract) : Contract::nothing();
  }
  using result = Result<type, mesh, MapCall>;
};

template <class R, class F, class... T> struct MapRunner {
  template <std::size_t... I>
  static void call(const F& f, const LocalMap& work, R* out, const void* const* in,
                   std::index_sequence<I...>) {
    tessera::map<R>(f, work, out, static_cast<const T*>(in[I])...);
  }
  static void run(const void* f, const LocalMap& work, void* out, const void* const* in) {
    call(*static_cast<const F*>(f), work, static_cast<R*>(out), in,
         std::index_sequence_for<T...>{});
  }
};

template <class Call, class Bound = NoContract, class F, class... A>
typename Call::result run_map(const F& f, std::string_view label, Where where, const A&... x) {
  using R = typename Call::type;
  const OperandList operands{&x.core()...};
  return typename Call::result(detail::map(
      Call::terms, operands, dtype_of<R>, Call::value, linearity<F, R>,
      {label, where, bound<Call, Bound>()},
      Extras{.kernel = MapKernel{&MapRunner<R, F, typename A::value_type...>::run, &f}}));
}
}  // namespace detail

/// Returns f(x...) elementwise, dimensions lined up from the right; an extent of 1 stretches. f is
/// a functor whose operator() is a KOKKOS_FUNCTION (or a plain lambda on host backends).
/// Communication: operands whose sharding differs from the result's are resharded, within the
/// contract `Bound` as in map<Only<gathers<data>>>(f, x); a dimension that is split and stretches
/// is gathered. Collective over the mesh. Throws ShapeError when extents disagree.
template <class Bound = NoContract, class F, TypedTensor A>
typename detail::MapCall<detail::FromTheRight, Deduced, F, A>::result map(
    const F& f, const A& x, Where where = Where::here()) {
  return detail::run_map<detail::MapCall<detail::FromTheRight, Deduced, F, A>, Bound>(
      f, type_name<F>(), where, x);
}
template <class Bound = NoContract, class F, TypedTensor A, TypedTensor B>
typename detail::MapCall<detail::FromTheRight, Deduced, F, A, B>::result map(
    const F& f, const A& x, const B& y, Where where = Where::here()) {
  return detail::run_map<detail::MapCall<detail::FromTheRight, Deduced, F, A, B>, Bound>(
      f, type_name<F>(), where, x, y);
}
template <class Bound = NoContract, class F, TypedTensor A, TypedTensor B, TypedTensor C>
typename detail::MapCall<detail::FromTheRight, Deduced, F, A, B, C>::result map(
    const F& f, const A& x, const B& y, const C& z, Where where = Where::here()) {
  return detail::run_map<detail::MapCall<detail::FromTheRight, Deduced, F, A, B, C>, Bound>(
      f, type_name<F>(), where, x, y, z);
}
/// More operands are a pack, after which C++ has no place for the place of the call.
template <class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 4)
typename detail::MapCall<detail::FromTheRight, Deduced, F, A...>::result map(const F& f,
                                                                             const A&... x) {
  return detail::run_map<detail::MapCall<detail::FromTheRight, Deduced, F, A...>, Bound>(
      f, type_name<F>(), Where{}, x...);
}
/// The same by letters: map<"bsv,bs->bsv">(f, x, y); `Out` may name the spec of the result.
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A>
typename detail::MapCall<detail::Named<E>, Out, F, A>::result map(const F& f, const A& x,
                                                                  Where where = Where::here()) {
  return detail::run_map<detail::MapCall<detail::Named<E>, Out, F, A>, Bound>(f, type_name<F>(),
                                                                              where, x);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A,
          TypedTensor B>
typename detail::MapCall<detail::Named<E>, Out, F, A, B>::result map(const F& f, const A& x,
                                                                     const B& y,
                                                                     Where where = Where::here()) {
  return detail::run_map<detail::MapCall<detail::Named<E>, Out, F, A, B>, Bound>(f, type_name<F>(),
                                                                                 where, x, y);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor A,
          TypedTensor B, TypedTensor C>
typename detail::MapCall<detail::Named<E>, Out, F, A, B, C>::result map(
    const F& f, const A& x, const B& y, const C& z, Where where = Where::here()) {
  return detail::run_map<detail::MapCall<detail::Named<E>, Out, F, A, B, C>, Bound>(
      f, type_name<F>(), where, x, y, z);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, class F, TypedTensor... A>
  requires(sizeof...(A) >= 4)
typename detail::MapCall<detail::Named<E>, Out, F, A...>::result map(const F& f, const A&... x) {
  return detail::run_map<detail::MapCall<detail::Named<E>, Out, F, A...>, Bound>(f, type_name<F>(),
                                                                                 Where{}, x...);
}

/// The same on dynamic tensors of element type T.
template <class T, class F, std::same_as<DynamicTensor>... A>
DynamicTensor map_dynamic(std::string_view equation, const F& f, const Sharding& out,
                          const A&... x) {
  using R = std::remove_cvref_t<decltype(f(((void)x, T{})...))>;
  const auto runner = &detail::MapRunner<R, F, std::conditional_t<true, T, A>...>::run;
  return DynamicTensor(detail::map(parse(equation), {&x.core()...}, dtype_of<R>, out,
                                   detail::linearity<F, R>, {type_name<F>(), {}},
                                   detail::Extras{.kernel = MapKernel{runner, &f}}));
}

}  // namespace tessera
