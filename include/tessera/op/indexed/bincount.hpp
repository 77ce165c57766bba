// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How often each index occurs: NumPy's bincount. It is a scatter by sum (op/indexed/scatter.hpp)
/// of ones, or of weights.
///
///     auto load = bincount<"bs->v">(ids, 32);            // load[v] = how many ids are v, int64
///     auto rows = bincount<"bs->bv">(ids, 32);           // for each b by itself
///     auto mass = bincount<"bs->v">(ids, weights, 32);   // the sum of the weights at v
///
/// Laws: bincount<"bs->v">(i, w, n) == scatter<Sum, "bs,bs->v">(i, w, {n}); the counts of indices
/// that lie within sum to the number of indices. One outside is left out, or clamped.
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include <tessera/op/create/create.hpp>
#include <tessera/op/create/create_dynamic.hpp>
#include <tessera/op/indexed/scatter.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {
namespace detail {
/// Returns "bs,bs->v" of "bs->v": the weights have the letters of the indices.
constexpr Equation with_weights(std::string_view equation) {
  std::size_t arrow = 0;  // find() is no constant expression of g++ 12 under -fsanitize=undefined
  while (arrow < equation.size() && equation[arrow] != '-') ++arrow;
  Equation both = Equation::from(equation.substr(0, arrow));
  for (const std::string_view part : {std::string_view(","), equation})
    for (const char c : part)
      if (c != ' ' && both.length < Equation::capacity) both.text[both.length++] = c;
  return both;
}
template <Equation E> struct WithWeights {
  static constexpr Equation value = with_weights(E.view());
};

/// An index counts as 1. A template, so that a program that counts nothing compiles no kernels for
/// int64.
template <std::same_as<DynamicTensor> D>
DynamicTensor ones_for(const D& indices, const CallOptions& call) {
  (void)mesh_of(indices.core(), call.sharded_site("bincount"));
  return full<std::int64_t>(indices.mesh(), indices.extents(), indices.sharding().finished(), 1,
                            call.where());
}
}  // namespace detail

/// Returns how often each of 0 to n - 1 occurs in the indices, as int64, by the equation E: a
/// letter of its result that the indices lack counts, its other letters are batches. `Out` names
/// the spec of the result. Communication: as scatter's: over the axes that split letters of the
/// indices alone, an all-reduce of the result, or a reduce-scatter. Collective over the mesh.
/// Errors: as scatter.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor I>
auto bincount(const I& indices, Index n, const ScatterSettings& settings = {},
              const CallOptions& call = Where::here()) {
  using M = typename I::mesh_type;
  using Ones = ShardedTensor<std::int64_t, M, detail::spec_of<M, detail::FinishedSpec<I>>>;
  const Ones ones =
      full<Ones>(ProcessMesh<M>(indices.core().mesh()), indices.extents(), 1, call.where());
  return scatter<Sum, detail::WithWeights<E>::value, Out, Bound>(indices, ones, Extents{n},
                                                                 settings, call);
}
/// This overload takes a weight for each index, in place of 1; the result has the weights' element
/// type.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor I, TypedTensor W>
auto bincount(const I& indices, const W& weights, Index n, const ScatterSettings& settings = {},
              const CallOptions& call = Where::here()) {
  return scatter<Sum, detail::WithWeights<E>::value, Out, Bound>(indices, weights, Extents{n},
                                                                 settings, call);
}

/// These overloads take everything at run time; without a sharding the result's is deduced.
template <std::same_as<DynamicTensor> D>
DynamicTensor bincount(std::string_view equation, const D& indices,
                       const std::type_identity_t<D>& weights, Index n,
                       const ScatterSettings& settings = {},
                       const CallOptions& call = Where::here()) {
  const Equation both = detail::with_weights(equation);
  return scatter<Sum>(both.view(), {indices, weights}, {n}, settings, call);
}
template <std::same_as<DynamicTensor> D>
DynamicTensor bincount(std::string_view equation, const D& indices, Index n,
                       const ScatterSettings& settings = {},
                       const CallOptions& call = Where::here()) {
  return bincount(equation, indices, detail::ones_for(indices, call), n, settings, call);
}

}  // namespace tessera
