// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where a tensor has its largest or least element.
///
///     auto i = arg_max<"bsv->bs">(logits);       // int64 indices along v
///     auto j = arg_min(x);                       // of all elements: a scalar tensor
///
/// Laws: the first of equal elements, the first NaN if there is one (as in NumPy), for every mesh
/// and spec; several reduced dimensions are counted row-major, in the operand's order.
#include <tessera/op/dynamic_call.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/row_operators.hpp>

namespace tessera {
namespace detail {
template <class Kind, Equation E, class Out, class A> struct ArgCall {
  using mesh = typename A::mesh_type;
  static_assert(demand_elements<check_arg_type(dtype_of<typename A::value_type>).rule,
                                typename A::value_type>());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = parse(E.view());
  static constexpr Shardings operands{A::sharding()};
  static constexpr Sharding value = OutSharding<mesh, Out>::make(terms, operands);
  static constexpr Verdict verdict = check_arg(terms, operands, value);
  static_assert(demand<ArgCall, A>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_arg(terms, Kind::reduction, operands[0], value, on, contract)
                        : Contract::nothing();
  }
  using result = Result<std::int64_t, mesh, ArgCall>;
};

template <class Kind, Equation E, class Out, class Bound, class A>
typename ArgCall<Kind, E, Out, A>::result arg(const A& x, Where where) {
  using Typed = ArgCall<Kind, E, Out, A>;
  use_rows_of<typename A::value_type>();
  return typename Typed::result(arg(Typed::terms, Kind::reduction, x.core(), Typed::value,
                                    {E.view(), where, bound<Typed, Bound>()}));
}
inline DynamicTensor arg(Reduction reduction, std::string_view equation, const DynamicTensor& x,
                         const Sharding& out, const DynamicCall& call) {
  use_tensor_of<std::int64_t>();
  return DynamicTensor(arg(parse(equation), reduction, x.core(), out, call.site(equation)));
}
inline DynamicTensor arg(Reduction reduction, std::string_view equation, const DynamicTensor& x,
                         const DynamicCall& call) {
  const Terms terms = parse(equation);
  require(check_arg(terms, {x.sharding()}, Sharding::replicated(terms.result.size())), terms,
          *x.core().mesh(), call.site(equation));
  return arg(reduction, equation, x, deduce(terms, {x.sharding()}), call);
}
}  // namespace detail

/// Returns where x has its largest element along the dimensions that E drops: 64-bit indices,
/// sharded as a reduction's result. Communication: over the axes that split those dimensions, two
/// all-reduces of the result's size (values, then indices; the second a reduce-scatter where `Out`
/// uses the axes); none when they are not split. Collective over the mesh. Throws ShapeError when
/// there is nothing to choose from.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto arg_max(const A& x, Where where = Where::here()) {
  return detail::arg<Max, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto arg_min(const A& x, Where where = Where::here()) {
  return detail::arg<Min, E, Out, Bound>(x, where);
}

/// Of all elements: the index into the tensor as one row, the same on every process.
template <TypedTensor A> auto arg_max(const A& x, Where where = Where::here()) {
  return detail::arg<Max, detail::total_equation(A::rank), Deduced, NoContract>(x, where);
}
template <TypedTensor A> auto arg_min(const A& x, Where where = Where::here()) {
  return detail::arg<Min, detail::total_equation(A::rank), Deduced, NoContract>(x, where);
}

/// The same with everything known at run time; without `out` it is deduced.
inline DynamicTensor arg_max(std::string_view equation, const DynamicTensor& x, const Sharding& out,
                             const DynamicCall& call = Where::here()) {
  return detail::arg(Reduction::max, equation, x, out, call);
}
inline DynamicTensor arg_max(std::string_view equation, const DynamicTensor& x,
                             const DynamicCall& call = Where::here()) {
  return detail::arg(Reduction::max, equation, x, call);
}
inline DynamicTensor arg_min(std::string_view equation, const DynamicTensor& x, const Sharding& out,
                             const DynamicCall& call = Where::here()) {
  return detail::arg(Reduction::min, equation, x, out, call);
}
inline DynamicTensor arg_min(std::string_view equation, const DynamicTensor& x,
                             const DynamicCall& call = Where::here()) {
  return detail::arg(Reduction::min, equation, x, call);
}

}  // namespace tessera
