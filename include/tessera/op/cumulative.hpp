// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running sums, products, maxima and minima along one dimension, sharded or not.
///
///     auto c = cumsum<"bij", 'j'>(x);
///     auto d = cumsum<"bij", 'j'>(x, {.reverse = true, .exclusive = true});
///
/// Laws: equals the running sum of the whole tensor, for every mesh and spec; element 0 of an
/// exclusive one is what a reduction of nothing gives; a float sum of n elements over p parts errs
/// by at most (p + 2) eps times the sum of their magnitudes, n below 10^7.
#include <tessera/op/dynamic_call.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/plan/op/scan.hpp>

namespace tessera {
namespace detail {
/// How a running join is made.
template <class Kind, Equation Labels, char Along> struct ScanBy {
  static consteval bool said() {
    static_assert(!is_mean<Kind>, "[tessera] there is no running mean; divide a running sum");
    return true;
  }
  static_assert(said());
  static constexpr ops::Scan make(const TensorDescs& x) {
    return {same_terms(Labels.view()), Along, Kind::reduction, {}, KindType<Kind>::of(x[0].type)};
  }
};
template <class Kind, Equation Labels, char Along, class Out, class A>
using TypedScan = Typed<ScanBy<Kind, Labels, Along>, Out, A>;
}  // namespace detail

/// Returns, for each element of x, the join by Kind (Sum, Product, Max, Min, Any, All) of those up
/// to it along dimension `Along`, with x's spec or `Out`. Labels are the letters of x. An operand
/// Unreduced by Kind stays so. Communication: one all-gather of an element for each row and part,
/// over the axes that split `Along`; none when it is not split. Collective over the mesh.
template <class Kind, Equation Labels, char Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor A>
typename detail::TypedScan<Kind, Labels, Along, Out, A>::result cumulative(
    const A& x, ScanOptions options = {}, Where where = Where::here()) {
  using Typed = detail::TypedScan<Kind, Labels, Along, Out, A>;
  detail::use_rows_of<typename A::value_type>();
  ops::Scan operation = Typed::operation;
  operation.options = options;
  return typename Typed::result(
      detail::run({operation, {&x.core()}, {Labels.view(), where, detail::bound<Typed, Bound>()}}));
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cumsum(const A& x, ScanOptions options = {}, Where where = Where::here()) {
  return cumulative<Sum, Labels, Along, Out, Bound>(x, options, where);
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cumprod(const A& x, ScanOptions options = {}, Where where = Where::here()) {
  return cumulative<Product, Labels, Along, Out, Bound>(x, options, where);
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cummax(const A& x, ScanOptions options = {}, Where where = Where::here()) {
  return cumulative<Max, Labels, Along, Out, Bound>(x, options, where);
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cummin(const A& x, ScanOptions options = {}, Where where = Where::here()) {
  return cumulative<Min, Labels, Along, Out, Bound>(x, options, where);
}

/// The same with everything known at run time; without `out` the result is sharded as x is.
template <class Kind>
DynamicTensor cumulative(std::string_view labels, char along, const DynamicTensor& x,
                         const Sharding& out, ScanOptions options = {},
                         const DynamicCall& call = Where::here()) {
  if constexpr (Kind::reduction == Reduction::sum || Kind::reduction == Reduction::product)
    detail::use_tensors_of_sums();
  const ops::Scan operation{same_terms(labels),
                            along,
                            Kind::reduction,
                            options,
                            detail::KindType<Kind>::of(x.type()),
                            out};
  return DynamicTensor(detail::run({operation, {&x.core()}, call.site(labels)}));
}
template <class Kind>
DynamicTensor cumulative(std::string_view labels, char along, const DynamicTensor& x,
                         ScanOptions options = {}, const DynamicCall& call = Where::here()) {
  return cumulative<Kind>(labels, along, x, x.sharding(), options, call);
}

}  // namespace tessera
