// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elements of each line of a tensor at indices of the same line: NumPy's take_along_axis. It is a
/// take (op/indexed/take.hpp) with the operand's letters, all but one.
///
///     auto y = take_along_axis<"bv", 'v'>(x, ids);       // y[b,k] = x[b, ids[b,k]]
///
/// Laws: take_along_axis<"bv", 'v'>(x, i) == take<"bv,bA->bA">(x, i); with the indices of
/// argsort it is the sorted tensor. An index outside is clamped or gives zero, as take's; negative
/// ones do not count from the end.
#include <string_view>

#include <tessera/op/indexed/take.hpp>

namespace tessera {
namespace detail {
/// How take_along_axis is made.
template <Equation Labels, char Along> struct TakeLines {
  static constexpr Terms terms = take_along_terms(Labels.view(), Along);
  static consteval Rule broken() {
    const Terms same = same_terms(Labels.view());
    return same.well_formed && !same.result.contains(Along) ? Rule::along_known : Rule::ok;
  }
  static constexpr ops::Take make(const TensorDescs&) { return {terms}; }
  static constexpr std::string_view label() { return Labels.view(); }
};
}  // namespace detail

/// Returns, for each place, the element of x at the index for that place along dimension `Along`;
/// indices are int32 or int64, and have x's extents but along `Along`; the result has the extents
/// of the indices. Labels are the letters of both. Communication: as take's: none when `Along` is
/// not split in x and the shardings fit. Collective over the mesh. Throws ShapeError when extents
/// disagree.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor I>
auto take_along_axis(const A& x, const I& indices, OutOfRange out_of_range = OutOfRange::clamp,
                     const CallOptions& call = Where::here()) {
  using By = detail::TakeLines<Labels, Along>;
  static_assert(detail::demand_elements<By::broken(), A>());
  if constexpr (By::broken() == Rule::ok)
    return detail::run_take<By, Out, Bound>(out_of_range, call, x, indices);
  else
    return detail::Unknown<A>();
}

/// This overload takes everything at run time; without a sharding the result's is deduced.
inline DynamicTensor take_along_axis(std::string_view labels, char along, const DynamicTensor& x,
                                     const DynamicTensor& indices,
                                     OutOfRange out_of_range = OutOfRange::clamp,
                                     const CallOptions& call = Where::here()) {
  const Terms same = detail::same_terms(labels);
  if (same.well_formed && !same.result.contains(along))
    detail::throw_broken(Rule::along_known,
                         std::string(labels) + ": " +
                             tessera::explain(Verdict{.rule = Rule::along_known, .label = along}),
                         call.where());
  return detail::run_dynamic(labels, call,
                             ops::Take{detail::take_along_terms(labels, along), out_of_range},
                             {&x.core(), &indices.core()});
}

}  // namespace tessera
