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
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>

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

/// Compiles the kernels of a reduction beside those of its own elements: sums of integers have 64
/// bits, and deterministic sums are of bins.
template <class Kind, class T> void use_reduction() {
  use_tensor_of<element_of<KindType<Kind>::of(dtype_of<T>)>>();
  if constexpr (Kind::reduction == Reduction::product) use_running_products_of<T>();
  if constexpr (is_deterministic<Kind>) {
    use_tensor_of<std::int64_t>();
    use_bins_of<T>();
  }
}

template <class Kind, class Typed, class A>
TensorCore run_reduce(const A& x, CallSite site, const Extras& extras = {}) {
  use_reduction<Kind, typename A::value_type>();
  return run({Typed::operation, {&x.core()}, site, extras});
}
}  // namespace detail

/// Returns x reduced by Kind (Sum, Product, Mean, Max, Min; of bool Any, All, Sum, Product) to the
/// dimensions that E keeps: with "bsv->bs" x is (b, s, v) and the result (b, s). A result Unreduced
/// over axes that split reduced dimensions is left unfinished. Sums and products are uint64 for
/// unsigned integers, int64 for signed ones and for bool (0 and 1), narrow ones too, finished or
/// unfinished; As<Sum, T> gives elements T. Communication: over the axes that split reduced
/// dimensions: all-reduce, or reduce-scatter where `Out` uses them; none when no reduced dimension
/// is split. Collective over the mesh. Throws ShapeError where one letter has two extents.
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
typename detail::TypedReduce<Kind, E, Out, A>::result reduce(
    const A& x, const CallOptions& call = Where::here()) {
  using Typed = detail::TypedReduce<Kind, E, Out, A>;
  return typename Typed::result(detail::run_reduce<Kind, Typed>(
      x, detail::typed_site<Typed, Bound>(E.view(), call, x.core())));
}

/// Returns x, (b, s, v) with "bsv->bs", reduced to the dimensions that E keeps, (b, s):
/// reduce<Kind, E, Out> by name. Communication, errors: as reduce. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sum(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Sum, E, Out, Bound>(x, call);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto mean(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Mean, E, Out, Bound>(x, call);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto max(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Max, E, Out, Bound>(x, call);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto min(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Min, E, Out, Bound>(x, call);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto product(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Product, E, Out, Bound>(x, call);
}
/// Returns, for bool elements, whether any is true, or all are: of the shape that E says.
/// Communication, errors: as reduce. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto any(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Any, E, Out, Bound>(x, call);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto all(const A& x, const CallOptions& call = Where::here()) {
  return reduce<All, E, Out, Bound>(x, call);
}

/// Returns the reduction of x, of any shape, over all its dimensions: a scalar tensor, the same on
/// every process. Communication: an all-reduce of one element over the axes that split x. Errors:
/// as reduce. Collective over the mesh.
template <TypedTensor A> auto sum(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Sum, detail::total_equation(A::rank)>(x, call);
}
template <TypedTensor A> auto mean(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Mean, detail::total_equation(A::rank)>(x, call);
}
template <TypedTensor A> auto max(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Max, detail::total_equation(A::rank)>(x, call);
}
template <TypedTensor A> auto min(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Min, detail::total_equation(A::rank)>(x, call);
}
template <TypedTensor A> auto product(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Product, detail::total_equation(A::rank)>(x, call);
}
template <TypedTensor A> auto any(const A& x, const CallOptions& call = Where::here()) {
  return reduce<Any, detail::total_equation(A::rank)>(x, call);
}
template <TypedTensor A> auto all(const A& x, const CallOptions& call = Where::here()) {
  return reduce<All, detail::total_equation(A::rank)>(x, call);
}

/// This overload takes everything at run time; without a sharding the result's is deduced.
template <class Kind>
DynamicTensor reduce(std::string_view equation, const DynamicTensor& x,
                     const CallOptions& call = Where::here()) {
  if constexpr (Kind::reduction == Reduction::sum || Kind::reduction == Reduction::product)
    detail::use_tensors_of_sums();
  if constexpr (Kind::reduction == Reduction::product) detail::use_running_products_of<void>();
  if constexpr (detail::is_deterministic<Kind>) detail::use_element<std::int64_t>();
  return detail::run_dynamic(equation, call,
                             detail::reduction_of<Kind>(parse(equation), {x.desc()}), {&x.core()});
}

}  // namespace tessera
