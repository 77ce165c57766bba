// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which two experts get each token, and with which weights: GShard's gating, by groups of tokens.
/// nn/mixture_of_experts.hpp sends the tokens there.
///
///     const auto gating = top2_gating(logits, expert_capacity(tokens, experts), {.seed = 7, .step = step});
///     auto loss = likelihood + 0.01f * gating.auxiliary_loss;
///     auto mask = dispatch_mask<float>(gating);              // (G, S, E, C) of 0 and 1
///     const auto seen = routing_statistics(gating);          // seen.dropped, seen.margin
///
/// Laws: equals GShard's Algorithm 1, token after token, of each group; what a token gets does not
/// depend on the mesh, as long as its gates do not: routing_statistics says by which margin.
/// Errors: those of the operators that it is made of.
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include <tessera/nn/detail/gating_functions.hpp>
#include <tessera/op/create/create_like.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/indexed/scatter.hpp>
#include <tessera/op/indexed/take.hpp>
#include <tessera/op/rows/arg.hpp>
#include <tessera/op/rows/cumulative.hpp>
#include <tessera/op/rows/softmax.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

/// Returns how many tokens of a group an expert takes: C = max(1, ceil(2 S f / E)). Throws
/// UsageError when the factor f is no number above 0, or the capacity is beyond 31 bits. Source:
/// GShard, section 2.2; f = 1 is its 2N/(G E). Communication: none.
inline Index expert_capacity(Index tokens, Index experts, double factor = 1,
                             Where where = Where::here()) {
  if (!(factor > 0) || std::isinf(factor) || experts < 1 || tokens < 0)
    throw UsageError("expert_capacity: " + std::to_string(tokens) + " tokens, " +
                         std::to_string(experts) + " experts and a factor of " +
                         std::to_string(factor) +
                         "; take at least one expert and a finite factor above 0, such as 1",
                     where);
  const double exact =
      std::ceil(2 * static_cast<double>(tokens) * factor / static_cast<double>(experts));
  if (exact * static_cast<double>(experts) > std::numeric_limits<std::int32_t>::max())
    throw UsageError("expert_capacity: buffers of " + std::to_string(exact) + " tokens for " +
                         std::to_string(experts) +
                         " experts of one group are more than 2^31; make groups smaller",
                     where);
  return exact < 1 ? 1 : static_cast<Index>(exact);
}

namespace detail {
/// Specs of tensors with some of the dimensions of A, and whole ones (-1).
template <class A, int... D> struct DimsOf {
  static constexpr AxisList side(int d) {
    return d < 0 ? AxisList{} : TensorFacts<A>::sharding()[d];
  }
  static constexpr Sharding value = [] {
    Sharding s;
    (s.dims.push_back(side(D)), ...);
    return s;
  }();
};
template <class A, int... D> using SpecOfDims = spec_of<typename A::mesh_type, DimsOf<A, D...>>;
template <class T, class A, int... D>
using WithDims = ShardedTensor<T, typename A::mesh_type, SpecOfDims<A, D...>>;

/// The numbers of experts, or of the slots of all, which nothing splits.
template <class Spec, class A> auto numbers_on(const A& x, const Extents& extents) {
  return from_function<ShardedTensor<std::int64_t, typename A::mesh_type, Spec>>(
      mesh_like(x), extents, fn::RowMajorNumber{});
}
}  // namespace detail

/// Where the tokens of all groups go. Letters: G groups of S tokens, E experts of C places for each
/// group. Logits is the type of the logits; gates and weights of half types are floats.
template <class L> struct Top2Gating {
  using Logits = L;
  using Real = ComputeType<typename Logits::value_type>;
  using Choices = detail::WithDims<std::int64_t, Logits, 0, 1>;

  detail::WithDims<Real, Logits, 0, 1, -1> gates;      ///< (G, S, E): their softmax
  Choices first, second;                               ///< (G, S): experts; E: there is none
  Choices first_position, second_position;             ///< (G, S): in their buffers; -1: not sent
  detail::WithDims<Real, Logits, 0, 1> first_weight;   ///< (G, S): g1 / (g1 + g2)
  detail::WithDims<Real, Logits, 0, 1> second_weight;  ///< (G, S): g2 / (g1 + g2)
  detail::WithDims<std::int32_t, Logits, 0, -1> choices;  ///< (G, E): c_e after the first choices
  ShardedTensor<Real, typename Logits::mesh_type, P<>> auxiliary_loss;  ///< the mean over groups
  Index capacity = 0;                                                   ///< C
  RoutingDraw draw = {};

  Index experts() const { return gates.extent(2); }
  static constexpr auto fields =
      Fields<&Top2Gating::gates, &Top2Gating::first, &Top2Gating::second,
             &Top2Gating::first_position, &Top2Gating::second_position, &Top2Gating::first_weight,
             &Top2Gating::second_weight, &Top2Gating::choices, &Top2Gating::auxiliary_loss>{};
};

namespace detail {
template <class Logits>
Top2Gating<Logits> run_gating(const Logits& logits, Index capacity, const RoutingDraw& draw,
                              Where where) {
  using Result = Top2Gating<Logits>;
  using Real = typename Result::Real;
  using Line = SpecOfDims<Logits, 0, 1>;
  using EachGroup = SpecOfDims<Logits, 0, -1>;
  using Gates = SpecOfDims<Logits, 0, 1, -1>;
  mesh_of(logits.core(), {"top2_gating", where});
  const Index groups = logits.extent(0), tokens = logits.extent(1), experts = logits.extent(2);
  if (experts < 1 || capacity < 1)
    throw UsageError("top2_gating: " + std::to_string(experts) + " experts of capacity " +
                         std::to_string(capacity) + "; both are at least 1",
                     where);
  Result to;
  to.capacity = capacity;
  to.draw = draw;
  if constexpr (std::is_same_v<Real, typename Logits::value_type>)
    to.gates = softmax<"gse", 'e', Gates>(logits, where);
  else
    to.gates = softmax<"gse", 'e', Gates>(cast<Real>(logits, where), where);
  const auto numbers = numbers_on<P<_>>(logits, {experts});
  const auto counted = [&](const auto& choice) {
    return map<"gs,e->gse", Gates>(fn::OneWhereSame{}, choice, numbers, where);
  };
  const auto running = [&](const auto& ones) {
    return cumulative<As<Sum, std::int32_t>, "gse", 's'>(ones, {.exclusive = true}, where);
  };
  const auto of_choice = [&](const auto& x, const auto& choice) {
    return take<"gse,gs->gs", Line>(x, choice, OutOfRange::drop, where);
  };

  to.first = argmax<"gse->gs", Line>(to.gates, where);
  to.second =
      experts == 1
          ? full_like(to.first, 1, where)  // there is none: all that is taken there is 0
          : argmax<"gse->gs", Line>(map<"gse,gs,e->gse", Gates>(fn::WithoutChosen{}, to.gates,
                                                                to.first, numbers, where),
                                    where);
  const auto first_gate = of_choice(to.gates, to.first);
  const auto second_gate = of_choice(to.gates, to.second);
  const auto both = map(fn::Add{}, first_gate, second_gate, where);
  to.first_weight = map(fn::Divide{}, first_gate, both, where);
  to.second_weight = map(fn::Divide{}, second_gate, both, where);

  const auto firsts = counted(to.first);
  to.choices = reduce<As<Sum, std::int32_t>, "gse->ge", EachGroup>(firsts, where);
  to.first_position =
      map<"gs->gs", Line>(fn::FirstPosition{capacity}, of_choice(running(firsts), to.first), where);
  to.second_position = map_with_index<"gs,gs,gs->gs", Line>(
      fn::SecondPosition{capacity, draw}, of_choice(running(counted(to.second)), to.second),
      take<"ge,gs->gs", Line>(to.choices, to.second, OutOfRange::drop, where), to.second_weight,
      where);

  const double size = static_cast<double>(groups) * static_cast<double>(experts) *
                      static_cast<double>(tokens) * static_cast<double>(tokens);
  to.auxiliary_loss = sum<"ge->", P<>>(
      map<"ge,ge->ge", EachGroup>(fn::BalanceTerm{size > 0 ? 1 / size : 0}, to.choices,
                                  sum<"gse->ge", EachGroup>(to.gates, where), where),
      where);
  return to;
}
}  // namespace detail

/// Returns where tokens go by their logits, (G, S, E). Gates are the softmax of the logits; of
/// equal gates the first expert's counts as the larger. First choices are taken in the tokens'
/// order while an expert's count is below `capacity`, and counted beyond it; then second choices,
/// by counts that go on from there, where also 2 g2 / (g1 + g2) exceeds the token's random number.
/// Each second choice is counted, taken or not. The auxiliary loss is the mean over groups of
/// (1/E) sum over e of (c_e / S) m_e, with c_e counted after the first choices, and the mean gates
/// m_e; without tokens it is 0.
/// Communication: none where groups alone are split, but for the loss: an all-reduce of one number.
/// Collective over the mesh. Gradients go through gates, weights and the loss; choices are
/// constants. Source: GShard, Algorithm 1.
template <TypedTensor Logits>
auto top2_gating(const Logits& logits, Index capacity, const RoutingDraw& draw = {},
                 Where where = Where::here()) {
  constexpr bool legal = RealElement<typename Logits::value_type> && Logits::rank == 3;
  static_assert(legal,
                "[tessera] the logits of a gating are floating-point numbers for each group, token "
                "and expert; give a tensor (G, S, E)");
  if constexpr (legal) return detail::run_gating(logits, capacity, draw, where);
}

namespace detail {
/// The slots (G, S) of both choices, and the numbers (E, C) of all.
template <class Logits> auto slots_of(const Top2Gating<Logits>& gating, Where where) {
  const fn::Slot slot{gating.capacity};
  return std::tuple(map<"gs,gs->gs">(slot, gating.first, gating.first_position, where),
                    map<"gs,gs->gs">(slot, gating.second, gating.second_position, where),
                    numbers_on<P<_, _>>(gating.first, {gating.experts(), gating.capacity}));
}
}  // namespace detail

/// Returns, as elements T, the weight by which what an expert makes of a place counts for a token:
/// (G, S, E, C), not zero at two places of a token at most. Communication: none. Collective over
/// the mesh. Source: GShard, Algorithm 2 (combine_weights).
template <RealElement T, class Logits>
auto combine_weights(const Top2Gating<Logits>& gating, Where where = Where::here()) {
  const auto [first, second, slots] = detail::slots_of(gating, where);
  return map<"gs,gs,gs,gs,ec->gsec", detail::SpecOfDims<Logits, 0, 1, -1, -1>>(
      at(where), fn::WeightInSlot<T>{}, first, gating.first_weight, second, gating.second_weight,
      slots);
}

/// Returns, as elements T, which token lies in which place: 1 where combine_weights is not zero.
/// It is a constant for gradients. Communication: none. Collective over the mesh. Source: GShard,
/// Algorithm 2 (dispatch_mask).
template <RealElement T, class Logits>
auto dispatch_mask(const Top2Gating<Logits>& gating, Where where = Where::here()) {
  const auto [first, second, slots] = detail::slots_of(gating, where);
  return map<"gs,gs,ec->gsec", detail::SpecOfDims<Logits, 0, 1, -1, -1>>(fn::OneInSlot<T>{}, first,
                                                                         second, slots, where);
}

/// What became of the tokens of all groups.
template <class Logits> struct RoutingStatistics {
  using Counts = ShardedTensor<std::int64_t, typename Logits::mesh_type, P<_>>;
  template <class T> using Scalar = ShardedTensor<T, typename Logits::mesh_type, P<>>;
  Counts first_choices;          ///< (E): tokens whose first choice it is
  Counts sent;                   ///< (E): tokens that it got
  Scalar<std::int64_t> dropped;  ///< tokens that no expert got
  /// The least difference of any token between its first and second gate, its second and third, and
  /// 2 g2 / (g1 + g2) and its random number: gates that differ by less than half of it, as they may
  /// between meshes, send every token the same way.
  Scalar<double> margin;
};

/// Returns the statistics of a gating. Communication: all-reduces of (E) and of numbers, over the
/// axes that split groups. Collective over the mesh.
template <class Logits>
RoutingStatistics<Logits> routing_statistics(const Top2Gating<Logits>& gating,
                                             Where where = Where::here()) {
  using Line = detail::SpecOfDims<Logits, 0, 1>;
  using Gates = detail::SpecOfDims<Logits, 0, 1, -1>;
  const auto sent_to = [&](const auto& choice, const auto& position) {
    return scatter<Sum, "gs,gs->e", P<_>>(choice, map<"gs->gs", Line>(fn::Sent{}, position, where),
                                          {gating.experts()}, OutOfRange::drop, where);
  };
  const auto of_choice = [&](const auto& choice) {
    return take<"gse,gs->gs", Line>(gating.gates, choice, OutOfRange::drop, where);
  };
  const auto third = reduce<Max, "gse->gs", Line>(
      map<"gse,gs,gs,e->gse", Gates>(at(where), fn::WithoutBoth{}, gating.gates, gating.first,
                                     gating.second,
                                     detail::numbers_on<P<_>>(gating.gates, {gating.experts()})),
      where);
  RoutingStatistics<Logits> to;
  to.first_choices = sum<"ge->e", P<_>>(gating.choices, where);
  to.sent = map(fn::Add{}, sent_to(gating.first, gating.first_position),
                sent_to(gating.second, gating.second_position), where);
  to.dropped = sum<"gs->", P<>>(map<"gs,gs->gs", Line>(fn::SentNowhere{}, gating.first_position,
                                                       gating.second_position, where),
                                where);
  to.margin =
      reduce<Min, "gs->", P<>>(map_with_index<"gs,gs,gs,gs->gs", Line>(
                                   at(where), fn::Margin{gating.draw}, of_choice(gating.first),
                                   of_choice(gating.second), third, gating.second_weight),
                               where);
  return to;
}

}  // namespace tessera
