// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Several tensors resharded, or finished, in few messages: small tensors' calls of one kind over
/// the same axes become one call.
///
///     auto [u, v] = reshard_together<P<_>, P<data, _>>(a, b);
///     auto [gw, gb] = finish_together(dw, db);             // sums that were left Unreduced
///     std::vector<DynamicTensor> all = finish_together(gradients);
///
/// Laws: every result is what reshard gives of that tensor alone (floating-point sums to rounding);
/// one tensor is never moved in more calls than alone.
#include <algorithm>
#include <tuple>
#include <vector>

#include <tessera/op/reshard.hpp>
#include <tessera/plan/op/move/together.hpp>

namespace tessera {
namespace detail {

/// The number of tensors planned at once: a tensor needs at most six steps, and a plan holds 40.
inline constexpr int together_at_once = 6;

inline std::vector<TensorCore> reshard_many(const std::vector<TensorCore>& tensors,
                                            const std::vector<Sharding>& targets, CallSite site) {
  if (tensors.size() != targets.size())
    throw UsageError("reshard_together: there are " + std::to_string(tensors.size()) +
                         " tensors and " + std::to_string(targets.size()) +
                         " shardings; give one for each",
                     site.where);
  std::vector<TensorCore> results;
  for (std::size_t first = 0; first < tensors.size(); first += together_at_once) {
    OperandList some;
    ops::Together operation;
    const std::size_t end = std::min(tensors.size(), first + together_at_once);
    for (std::size_t i = first; i < end; ++i) {
      some.push_back(&tensors[i]);
      operation.targets.push_back(targets[i]);
    }
    for (TensorCore& result : run_all(operation, some, site)) results.push_back(std::move(result));
  }
  return results;
}

template <class... Results, std::size_t... I>
std::tuple<Results...> typed_results(const std::vector<TensorCore>& cores,
                                     std::index_sequence<I...>) {
  return {Results(cores[I])...};
}
/// Several reshards that have one contract.
template <class M, class... Each> struct TypedTogether {
  using mesh = M;
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    Contract all = Contract::nothing();
    ((all = all.joined(typed_needs<Each>(on, contract))), ...);
    return all;
  }
};
template <class Bound, class... S, std::size_t... I, class... A>
std::tuple<typename TypedReshard<S, A>::result...> reshard_typed(std::index_sequence<I...> each,
                                                                 const A&... x) {
  using M = typename CommonMesh<A...>::type;
  const std::vector<TensorCore> results = reshard_many(
      {x.core()...}, {filled(lower<M, S>(), x.core().sharding())...},
      {"reshard_together", {}, bound<TypedTogether<M, TypedReshard<S, A>...>, Bound>()});
  return typed_results<typename TypedReshard<S, A>::result...>(results, each);
}
template <class C> inline constexpr bool is_contract = false;
template <class... Clauses> inline constexpr bool is_contract<Only<Clauses...>> = true;
}  // namespace detail

/// Returns the tensors x... under the specs S..., one for each. Communication: as reshard of each,
/// with calls of one kind over the same axes joined to one, six tensors at a time. Collective over
/// the mesh. Errors: as reshard.
template <class... S, TypedTensor... A>
  requires(sizeof...(S) == sizeof...(A) && sizeof...(A) > 0)
std::tuple<typename detail::TypedReshard<S, A>::result...> reshard_together(const A&... x) {
  return detail::reshard_typed<NoContract, S...>(std::index_sequence_for<A...>{}, x...);
}
/// These overloads keep a contract, each reshard for itself: reshard_together<Only<gathers<data>>,
/// S...>(x...).
template <class Bound, class... S, TypedTensor... A>
  requires(sizeof...(S) == sizeof...(A) && sizeof...(A) > 0 && detail::is_contract<Bound>)
std::tuple<typename detail::TypedReshard<S, A>::result...> reshard_together(const A&... x) {
  return detail::reshard_typed<Bound, S...>(std::index_sequence_for<A...>{}, x...);
}
inline std::vector<DynamicTensor> reshard_together(const std::vector<DynamicTensor>& tensors,
                                                   const std::vector<Sharding>& targets,
                                                   const CallOptions& call = Where::here()) {
  std::vector<TensorCore> cores;
  for (const DynamicTensor& tensor : tensors) cores.push_back(tensor.core());
  std::vector<DynamicTensor> results;
  for (TensorCore& core : detail::reshard_many(cores, targets, call.site("reshard_together")))
    results.emplace_back(std::move(core));
  return results;
}

/// Returns the tensors x... with their Unreduced values finished, each under its own dimensions'
/// spec: the gradients of many weights in few all-reduces. Communication, collective over: as
/// reshard_together. Errors: as reshard.
template <TypedTensor... A>
  requires(sizeof...(A) > 0)
auto finish_together(const A&... x) {
  return reshard_together<detail::spec_of<typename A::mesh_type, detail::FinishedSpec<A>>...>(x...);
}
template <class Bound, TypedTensor... A>
  requires(sizeof...(A) > 0 && detail::is_contract<Bound>)
auto finish_together(const A&... x) {
  return reshard_together<Bound,
                          detail::spec_of<typename A::mesh_type, detail::FinishedSpec<A>>...>(x...);
}
inline std::vector<DynamicTensor> finish_together(const std::vector<DynamicTensor>& tensors,
                                                  const CallOptions& call = Where::here()) {
  std::vector<Sharding> targets;
  for (const DynamicTensor& tensor : tensors) targets.push_back(tensor.sharding().finished());
  return reshard_together(tensors, targets, call);
}

}  // namespace tessera
