// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One at the places of the indices, zero elsewhere.
///
///     auto h = one_hot<float, "bsv", 'v'>(ids, 1000);   // h[b,s,v] = ids[b,s] == v
///
/// Laws: sums to 1 along the new dimension, to 0 where the index lies outside it; an einsum with it
/// is a take with OutOfRange::drop.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/indexed/one_hot.hpp>

namespace tessera {
namespace detail {
/// How one_hot<T, Labels, Along> is made.
template <class T, Equation Labels, char Along> struct OneHotBy {
  static constexpr ops::OneHot make(const TensorDescs&) {
    return {same_terms(Labels.view()), Along, dtype_of<T>};
  }
};
}  // namespace detail

/// Returns a tensor of elements T with letters `Labels`: those of the indices, and `Along`, whose
/// dimension has `extent`. Communication: none, unless `Out` splits the indices in another way.
/// Collective over the mesh. Throws nothing of its own.
template <Element T, Equation Labels, char Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor I>
auto one_hot(const I& indices, Index extent, const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::OneHotBy<T, Labels, Along>, Out, I>;
  detail::use_indexed<T>();
  ops::OneHot operation = Typed::operation;
  operation.extent = extent;
  return detail::run_typed<Typed, Bound>("one_hot", call, operation, {&indices.core()});
}

/// This overload takes everything but the element type at run time; without a sharding the result
/// is sharded as the indices are.
template <Element T>
DynamicTensor one_hot(std::string_view labels, char along, const DynamicTensor& indices,
                      Index extent, const CallOptions& call = Where::here()) {
  detail::use_indexed<T>();
  return detail::run_dynamic("one_hot", call,
                             ops::OneHot{detail::same_terms(labels), along, dtype_of<T>, extent},
                             {&indices.core()});
}

}  // namespace tessera
