// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise functions with several results, in one pass over memory, with broadcasting from the
/// right as in NumPy.
///
///     auto [weights, velocity] = map_several(Momentum{0.9f}, w, v, gradient);
///
/// Laws: result k is map of the function that returns result k alone; no communication when the
/// shardings agree.
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/kernel/map/map_several.hpp>
#include <tessera/op/elements/dynamic_map.hpp>
#include <tessera/plan/op/elements/map_several.hpp>

namespace tessera {
namespace detail {

template <class Results, class F, class... T> struct SeveralRunner;
template <class... R, class F, class... T> struct SeveralRunner<Several<R...>, F, T...> {
  using Outputs = MapOutputs<R...>;
  static inline char identity = 0;  // as MapRunner's
  template <std::size_t... I, std::size_t... O>
  static void call(const F& f, const LocalMap& work, void* out, const void* const* in,
                   std::index_sequence<I...>, std::index_sequence<O...>) {
    Outputs outputs;
    void* to[] = {out, const_cast<void*>(in[sizeof...(T) + O])...};  // the results after the first
    fill(outputs, to);
    run_map_several(f, work, outputs, static_cast<const T*>(in[I])...);
  }
  static void run(const void* f, const LocalMap& work, void* out, const void* const* in) {
    call(*static_cast<const F*>(f), work, out, in, std::index_sequence_for<T...>{},
         std::make_index_sequence<sizeof...(R) - 1>{});
  }
  static MapKernel kernel(const F& f) {
    MapKernel kernel{&run, &f, nullptr, nullptr, &keep_function<F>};
    kernel.identity = &identity;
    kernel.numbers = numbers_of<F>();
    return kernel;
  }
  static ops::MapSeveral operation(const FixedVector<int, max_operands>& ranks) {
    return {broadcast_terms(ranks), {dtype_of<R>...}, {}};
  }
  static void use() { (use_result_of<R, T...>(), ...); }

 private:
  static void fill(MapOutputs<>&, void* const*) {}
  template <class First, class... Rest>
  static void fill(MapOutputs<First, Rest...>& outputs, void* const* to) {
    outputs.head = static_cast<First*>(*to);
    fill(outputs.rest, to + 1);
  }
};
template <class F, class... T>
using RunnerOfSeveral = SeveralRunner<std::invoke_result_t<const F&, const T&...>, F, T...>;

/// Maps tensors of elements T..., which the caller has checked.
template <class... T, class F>
std::vector<TensorCore> map_several(const F& f, const OperandList& operands, const Sharding& out,
                                    CallSite site) {
  using Runner = RunnerOfSeveral<F, T...>;
  Runner::use();
  FixedVector<int, max_operands> ranks;
  for (int i = 0; i < operands.size(); ++i) ranks.push_back(operands[i]->rank());
  ops::MapSeveral operation = Runner::operation(ranks);
  operation.out = out;
  std::vector<TensorCore> also;
  std::vector<TensorCore> results{
      run({operation, operands, site, {.kernel = Runner::kernel(f), .also = &also}})};
  for (TensorCore& one : also) results.push_back(std::move(one));
  return results;
}

/// The first result of a function of several: what it may be called with is decided by it.
template <class F> struct FirstResult {
  F f;
  template <class... T>
  KOKKOS_FUNCTION auto operator()(
      const T&... x) const requires std::is_invocable_v<const F&, const T&...> {
    return f(x...).first;
  }
};
template <class Results, class M, class S> struct SeveralTensors;
template <class... R, class M, class S> struct SeveralTensors<Several<R...>, M, S> {
  using type = std::tuple<ShardedTensor<R, M, S>...>;
  template <std::size_t... I>
  static type of(const std::vector<TensorCore>& made, std::index_sequence<I...>) {
    return {ShardedTensor<R, M, S>(made[I])...};
  }
  static type of(const std::vector<TensorCore>& made) {
    return of(made, std::index_sequence_for<R...>{});
  }
};
}  // namespace detail

/// Returns the results of f(x...), a functor whose operator() returns several(...), elementwise:
/// a tuple of tensors, all under the sharding that map deduces. Communication: as map. Collective
/// over the mesh. Throws ShapeError when extents disagree.
template <class F, TypedTensor... A>
  requires(sizeof...(A) >= 1)
auto map_several(const F& f, const A&... x) {
  using First = typename detail::MapResult<detail::FromTheRight, Deduced, detail::FirstResult<F>,
                                           detail::Elements, A...>;
  using Results = std::invoke_result_t<const F&, const typename A::value_type&...>;
  using Made = detail::SeveralTensors<Results, typename First::mesh_type, typename First::spec>;
  return Made::of(detail::map_several<typename A::value_type...>(
      f, {&x.core()...}, detail::TensorFacts<First>::sharding(),
      {detail::function_name<F>(), Where{}}));
}

/// This overload takes dynamic tensors of elements T..., one type for each, under the sharding
/// `out`. Throws UsageError when an operand has other elements.
template <class... T, class F, std::same_as<DynamicTensor>... A>
  requires(sizeof...(T) == sizeof...(A) && sizeof...(A) >= 1)
std::vector<DynamicTensor> map_several(const F& f, const Sharding& out, const A&... x) {
  const detail::CallSite site{detail::function_name<F>(), Where{}};
  (detail::require_elements_of<T>({&x.core()}, site), ...);
  std::vector<DynamicTensor> results;
  for (TensorCore& one : detail::map_several<T...>(f, {&x.core()...}, out, site))
    results.emplace_back(std::move(one));
  return results;
}

}  // namespace tessera
