// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One stage's function, which a schedule may run too (pipeline/pipelined.hpp), as the function of
/// all stages that pipeline/shifted.hpp takes; and the layers of all stages as one.
///
///     using Here = Under<double, Grid, TensorParallel<data, model>>;     // Grid: stage, data, model
///     // blocks: DecoderBlock<OfStages<Here, stage>>; x: P<_, data, _, _>, (micro-batches, batch, sequence, embed)
///     auto y = shifted<stage>(each_stage<stage>([](const auto& block, const auto& s) {
///       return decoder_block(block, s);       // of one stage: block's tensors and s have no dimension of stages
///     }), blocks, x, 4);
///
/// Within, the axis of stages is manual: each process calls the function with its own stages, one
/// after the other, and the function may shard over all other axes. Stages are alike: their tensors
/// have the same shapes.
///
/// Laws: stage i of the result is f(stage i of the weights, stage i of the state).
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/manual/manual.hpp>
#include <tessera/op/shape/dimensions.hpp>
#include <tessera/op/shape/slice.hpp>
#include <tessera/pipeline/shifted.hpp>

namespace tessera {
namespace detail {
/// The spec Spec behind dimensions Lead....
template <class Spec, class... Lead> struct LedSpec;
template <class... D, class... Lead> struct LedSpec<PartitionSpec<D...>, Lead...> {
  using type = P<Lead..., D...>;
};
}  // namespace detail

/// What a layer of all stages is written against, whose one stage is written against U: each tensor
/// has dimensions Lead... before U's: OfStages<U, stage>, or OfStages<U, _, stage> in rounds.
template <class U, class... Lead> struct OfStages {
  using value_type = typename U::value_type;
  using mesh_type = typename U::mesh_type;
  using one = U;
  template <class... Names>
  using Spec = typename detail::LedSpec<typename U::template Spec<Names...>, Lead...>::type;
  template <class... Names> using Tensor = ShardedTensor<value_type, mesh_type, Spec<Names...>>;
  template <class E, class... Names> using Of = ShardedTensor<E, mesh_type, Spec<Names...>>;
  template <class Other> using On = OfStages<typename U::template On<Other>, Lead...>;
};

namespace detail {
/// Stage i of a tensor, which is the last of its Lead dimensions of stages; the others have
/// extent 1.
template <int... Lead, TypedTensor A>
auto stage_of(const A& x, Index i, std::integer_sequence<int, Lead...>) {
  constexpr int last = sizeof...(Lead) - 1;
  return squeeze<Lead...>(x.extent(last) == 1 ? x : A(slice<last>(x, {i}, {i + 1})));
}
/// Throws ShapeError unless a tensor of weights has as many stages as the state.
inline void require_stages(const Extents& weights, int dimension, Index stages, Where where) {
  if (weights[dimension] != stages)
    throw ShapeError("each_stage: a tensor of weights has " + std::to_string(weights[dimension]) +
                         " stages on this process, along dimension " + std::to_string(dimension) +
                         " of " + to_string(weights) + ", and the state has " +
                         std::to_string(stages) +
                         "; give weights of as many stages as shifted is given",
                     where);
}
/// Stage i of weights within the manual function: trees of which manual mode takes arguments. All
/// have `stages` there.
template <int Lead, class W>
auto weights_of_stage(const W& all, Index i, Index stages, Where where) {
  const auto of = [&](const auto& one) { return weights_of_stage<Lead>(one, i, stages, where); };
  if constexpr (TypedTensor<W>) {
    constexpr bool split = !varying_axes<typename W::mesh_type>().empty();
    static_assert(split,
                  "[tessera] each_stage is given a tensor of weights that the axis of its stages "
                  "does not split, beside others that it splits; let the function capture what all "
                  "stages share, or stack it");
    if constexpr (split) {
      require_stages(all.extents(), Lead - 1, stages, where);
      return stage_of(all, i, std::make_integer_sequence<int, Lead>{});
    } else {
      return all;
    }
  } else if constexpr (HasFields<W>) {
    using Own = typename UnderOf<W>::outside::one;
    using Mesh = typename FirstTensor<W>::mesh_type;
    return map_tensors_to<LayerUnder<W, typename Own::template On<Mesh>>>(of, all);
  } else if constexpr (requires { std::tuple_size<W>::value; }) {
    return std::apply([&](const auto&... one) { return std::tuple(of(one)...); }, all);
  } else {
    std::vector<decltype(of(*all.begin()))> own;
    for (const auto& one : all) own.push_back(of(one));
    return own;
  }
}
/// In how many dimensions stages lie: those up to the one that the axis Stage splits.
template <class Stage, class W> constexpr int stage_dims() {
  using First = FirstTensor<W>;
  constexpr Sharding s = TensorFacts<First>::sharding();
  for (int d = 0; d < s.rank(); ++d)
    if (s[d].contains(First::mesh_type::template index<Stage>)) return d + 1;
  return 0;
}
}  // namespace detail

/// Returns a function for shifted<Stage> or shifted_in_rounds<Stage>, of the weights and the states
/// of all stages, which calls f(weights, x) for each stage of a process, within manual<Stage>: the
/// weights of one stage, without dimensions of stages (of a layer of OfStages<U, ...> those of one
/// of U), and its state, of which f returns the next, of the same type. Weights are a tensor, a
/// layer, or tuples and vectors of them, each of which the axis splits along its dimension of
/// stages, evenly. Communication: that of f. Collective over the mesh. Throws ShapeError where
/// stages are split unevenly, or weights have other stages than the state, and what f throws.
template <class Stage, class F> auto each_stage(F f, Where where = Where::here()) {
  return [f = std::move(f), where](const auto& weights, const auto& state) {
    using State = std::remove_cvref_t<decltype(state)>;
    constexpr int lead = detail::stage_dims<Stage, std::remove_cvref_t<decltype(weights)>>();
    static_assert(lead > 0,
                  "[tessera] each_stage is given weights that the axis of its stages does not "
                  "split; stages lie along a dimension of their own, P<stage, ...>");
    const State made = manual<Stage>(
        [&](const auto& all, const auto& s) {
          using S = std::remove_cvref_t<decltype(s)>;
          std::vector<S> each;
          for (Index i = 0; i < s.extent(0); ++i)
            each.push_back(
                S(expand_dims<0>(f(detail::weights_of_stage<lead>(all, i, s.extent(0), where),
                                   detail::stage_of(s, i, std::integer_sequence<int, 0>{})))));
          return along<0, Stage>(detail::behind_each_other(std::move(each)));
        },
        where)(weights, state);
    return made;
  };
}

}  // namespace tessera
