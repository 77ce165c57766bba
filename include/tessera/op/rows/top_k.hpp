// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The k largest, or least, elements of each line along a dimension, sharded or not, and where they
/// are.
///
///     auto [values, indices] = top_k<"bv", 'v'>(logits, 5);       // (b, 5), the largest first
///     auto [least, places] = bottom_k<"bv", 'v'>(distances, 5);
///
/// Laws: they are the first k of sort_with_indices: of equal elements those at the least
/// indices, NaNs only where there are fewer than k numbers.
#include <tessera/op/rows/sort.hpp>

namespace tessera {
namespace detail {
template <Equation Labels, char Along, class Out, class Bound, class A>
auto first_k(const A& x, Index k, bool descending, const CallOptions& call) {
  using Call = TypedSort<Labels, Along, Out, true, true, true, A>;
  using Indices = typename ResultOf<Call, 1>::type;
  const auto both = run_sort<Call>(descending, k,
                                   fresh_typed_site<Call, Bound>(Labels.view(), call, x.core()), x);
  return Sorted<typename Call::result, Indices>{typename Call::result(both[0]), Indices(both[1])};
}
template <int = dtypes>
Sorted<DynamicTensor, DynamicTensor> first_k(std::string_view labels, char along,
                                             const DynamicTensor& x, Index k, bool descending,
                                             const CallOptions& call) {
  const SortTask task{
      .descending = descending, .positions = true, .limit = k, .kind = OperatorKind::top_k};
  return as_sorted(sort(labels, along, task, {&x.core()}, call, call.fresh_sharded_site(labels)));
}
}  // namespace detail

/// Returns the k largest elements of each line of x along dimension `Along`, and their indices
/// (int64): both have x's extents but k along `Along`, and x's spec without the axes that split it,
/// or `Out`. Communication, where `Along` is split: each process's own k elements and their
/// indices, gathered (or sent by an all-to-all to the processes that finish the lines), or, where
/// that is cheaper, as sort_with_indices. Collective over the mesh. Throws ShapeError when lines
/// are shorter than k.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto top_k(const A& x, Index k, const CallOptions& call = Where::here()) {
  return detail::first_k<Labels, Along, Out, Bound>(x, k, true, call);
}
/// The k least ones, the least first. Communication, errors: as top_k.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto bottom_k(const A& x, Index k, const CallOptions& call = Where::here()) {
  return detail::first_k<Labels, Along, Out, Bound>(x, k, false, call);
}

/// These overloads take everything at run time; without a sharding the result's is deduced.
template <int = dtypes>
Sorted<DynamicTensor, DynamicTensor> top_k(std::string_view labels, char along,
                                           const DynamicTensor& x, Index k,
                                           const CallOptions& call = Where::here()) {
  return detail::first_k(labels, along, x, k, true, call);
}
template <int = dtypes>
Sorted<DynamicTensor, DynamicTensor> bottom_k(std::string_view labels, char along,
                                              const DynamicTensor& x, Index k,
                                              const CallOptions& call = Where::here()) {
  return detail::first_k(labels, along, x, k, false, call);
}

}  // namespace tessera
