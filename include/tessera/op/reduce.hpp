// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sum, product, mean, maximum and minimum over dimensions, and whether any or all are true.
///
///     auto s = sum<"bsv->bs">(x);                        // all-reduce over the axes that split v
///     auto t = sum<"bsv->bs", P<data, model>>(x);        // or scattered: reduce-scatter
///     auto total = sum(x);                               // a scalar tensor
///
/// Laws: equals the reduction of the whole tensor; the mean divides by the number of elements,
/// empty blocks included.
#include <tessera/op/dynamic_call.hpp>
#include <tessera/op/operators.hpp>
#include <tessera/op/result.hpp>

namespace tessera {
namespace detail {
/// "abc->" for a tensor of `rank` dimensions.
constexpr Equation total_equation(int rank) {
  Equation e;
  for (int d = 0; d < rank; ++d) e.text[e.length++] = static_cast<char>('a' + d);
  e.text[e.length++] = '-';
  e.text[e.length++] = '>';
  return e;
}

template <class Kind, Equation E, class Out, class A> struct ReduceCall {
  using mesh = typename A::mesh_type;
  static constexpr bool mean = std::is_same_v<Kind, Mean>;
  static constexpr DType from = dtype_of<typename A::value_type>, type = KindType<Kind>::of(from);
  static_assert(demand_elements<check_reduce_type(Kind::reduction, mean, from).rule,
                                typename A::value_type>());
  static_assert(demand_elements<check_reduced_type(from, type, A::sharding()).rule,
                                typename A::value_type>());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = parse(E.view());
  static constexpr Shardings operands{A::sharding()};
  static constexpr Sharding value = OutSharding<mesh, Out>::make(terms, operands);
  static constexpr Verdict verdict = check_reduce(terms, operands, value, Kind::reduction, mean);
  static_assert(demand<ReduceCall, A>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_reduce(terms, Kind::reduction, operands[0], value, on, contract)
                        : Contract::nothing();
  }
  static constexpr Plan plan(const TensorDesc& x, const MeshShape& on, int process,
                             const PlanOptions& options) {
    return plan_reduce_as(type, terms, Kind::reduction, x, value, on, process, options);
  }
  static TensorCore run(const TensorCore& x, CallSite site, const Extras& extras = {}) {
    return detail::reduce(terms, Kind::reduction, mean, x, value, site, extras, type);
  }
  using result = Result<element_of<type>, mesh, ReduceCall>;
};

/// The same with everything known at run time.
template <class Kind> struct DynamicReduce {
  static TensorCore run(const Terms& terms, const TensorCore& x, const Sharding& out, CallSite site,
                        const Extras& extras = {}) {
    return run(terms, x, out, site, extras, KindType<Kind>::of(x.type()));
  }
  static TensorCore run(const Terms& terms, const TensorCore& x, const Sharding& out, CallSite site,
                        const Extras& extras, DType type) {
    if constexpr (Kind::reduction == Reduction::sum || Kind::reduction == Reduction::product)
      use_tensor_of<std::int64_t>();  // which sums of integers are
    return detail::reduce(terms, Kind::reduction, std::is_same_v<Kind, Mean>, x, out, site, extras,
                          type);
  }
};
}  // namespace detail

/// Returns x reduced by Kind (Sum, Product, Mean, Max, Min; of bool Any, All) to the dimensions
/// that E keeps; a result Unreduced over axes that split reduced dimensions is left open. Sums and
/// products of integers are int64 (of int8, int16, int32 and uint8 too, finished or open), those of
/// As<Sum, T> elements T.
/// Communication: over the axes that split reduced dimensions: all-reduce, or reduce-scatter where
/// `Out` uses them; none when nothing reduced is split. Collective over the mesh.
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
typename detail::ReduceCall<Kind, E, Out, A>::result reduce(const A& x,
                                                            Where where = Where::here()) {
  using Typed = detail::ReduceCall<Kind, E, Out, A>;
  return typename Typed::result(
      Typed::run(x.core(), {E.view(), where, detail::bound<Typed, Bound>()}));
}

/// reduce<Kind, E, Out> by name.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sum(const A& x, Where where = Where::here()) {
  return reduce<Sum, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto mean(const A& x, Where where = Where::here()) {
  return reduce<Mean, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto max(const A& x, Where where = Where::here()) {
  return reduce<Max, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto min(const A& x, Where where = Where::here()) {
  return reduce<Min, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto product(const A& x, Where where = Where::here()) {
  return reduce<Product, E, Out, Bound>(x, where);
}
/// Of bool elements: whether one is true, or all are.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto any(const A& x, Where where = Where::here()) {
  return reduce<Any, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto all(const A& x, Where where = Where::here()) {
  return reduce<All, E, Out, Bound>(x, where);
}

/// Over all dimensions: a scalar tensor, the same on every process.
template <TypedTensor A> auto sum(const A& x, Where where = Where::here()) {
  return reduce<Sum, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto mean(const A& x, Where where = Where::here()) {
  return reduce<Mean, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto max(const A& x, Where where = Where::here()) {
  return reduce<Max, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto min(const A& x, Where where = Where::here()) {
  return reduce<Min, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto product(const A& x, Where where = Where::here()) {
  return reduce<Product, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto any(const A& x, Where where = Where::here()) {
  return reduce<Any, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto all(const A& x, Where where = Where::here()) {
  return reduce<All, detail::total_equation(A::rank)>(x, where);
}

/// The same with everything known at run time; without `out` it is deduced. `call`: a Contract.
template <class Kind>
DynamicTensor reduce(std::string_view equation, const DynamicTensor& x, const Sharding& out,
                     const DynamicCall& call = Where::here()) {
  return DynamicTensor(
      detail::DynamicReduce<Kind>::run(parse(equation), x.core(), out, call.site(equation)));
}
template <class Kind>
DynamicTensor reduce(std::string_view equation, const DynamicTensor& x,
                     const DynamicCall& call = Where::here()) {
  const Terms terms = parse(equation);
  detail::require(check_reduce(terms, {x.sharding()}, Sharding::replicated(terms.result.size()),
                               Kind::reduction, false),
                  terms, *x.core().mesh(), call.site(equation));
  return reduce<Kind>(equation, x, deduce(terms, {x.sharding()}), call);
}

}  // namespace tessera
