// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which k experts get each token, and with which weights, by groups of tokens; tokens that are not
/// valid get none. nn/experts/experts.hpp sends them there; nn/gating.hpp is GShard's own, of two.
///
///     const auto gating = top_k_gating(logits, {.k = 2, .capacity = 3});
///     auto loss = likelihood + 0.01f * gating.balance_loss + 0.001f * gating.z_loss;
///     const auto dropless = top_k_gating(logits, {.k = 4});            // as many places as tokens
///
/// Laws: equals plain loops over the tokens of each group; with k = 2 and a draw it is
/// top2_gating. What a token gets does not depend on the mesh, as long as its gates do not. What
/// lies at tokens that are not valid, NaN too, changes nothing, and has gradient zero.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <tessera/nn/attention_options.hpp>
#include <tessera/nn/cross_entropy.hpp>
#include <tessera/nn/gating.hpp>
#include <tessera/op/rows/statistics.hpp>
#include <tessera/op/rows/top_k.hpp>

namespace tessera {

struct GatingOptions {
  Index k = 2;         ///< experts of a token
  Index capacity = 0;  ///< places of an expert for each group; 0: as many as tokens
  /// Where given, the choices after the first are taken at random, with the probability k times the
  /// weight: GShard's second choice. Else always.
  std::optional<RoutingDraw> draw = {};
};

/// Stands for no bias of the choice.
struct NoChoiceBias {};

/// Where the tokens of all groups go. Letters: G groups of S tokens, E experts of C places for each
/// group, K choices of a token. Gates and weights of half types are floats.
template <class L> struct TopKGating {
  using Logits = L;
  using Real = ComputeType<typename Logits::value_type>;
  using Choices = detail::WithDims<std::int64_t, Logits, 0, 1, -1>;
  template <class T> using Scalar = ShardedTensor<T, typename Logits::mesh_type, P<>>;

  detail::WithDims<Real, Logits, 0, 1, -1> gates;    ///< (G, S, E): softmax; 0 where not valid
  Choices experts;                                   ///< (G, S, K); E: none
  Choices positions;                                 ///< (G, S, K): in their buffers; -1: not sent
  detail::WithDims<Real, Logits, 0, 1, -1> weights;  ///< (G, S, K)
  detail::WithDims<std::int32_t, Logits, 0, -1> load;  ///< (G, E): choices of each expert
  Scalar<Real> balance_loss, z_loss;
  Index capacity = 0;  ///< C
  static constexpr auto fields =
      Fields<&TopKGating::gates, &TopKGating::experts, &TopKGating::positions, &TopKGating::weights,
             &TopKGating::load, &TopKGating::balance_loss, &TopKGating::z_loss>{};
};

namespace fn {
/// A chosen expert; E, which there is not, for a token that is not valid.
struct ChosenIfValid {
  static constexpr std::string_view name = "choice";
  Index experts;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t choice, bool valid) const {
    return valid ? choice : experts;
  }
};
/// The place of a choice in its expert's buffer after those of earlier tokens and choices, or -1.
struct ChoicePosition {
  static constexpr std::string_view name = "place of a choice";
  Index experts, capacity, tokens, k;
  bool random;
  RoutingDraw draw;
  template <RealElement T>
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i, std::int64_t expert,
                                          std::int32_t before, std::int32_t earlier,
                                          T weight) const {
    const std::int64_t place = std::int64_t{before} + earlier;
    if (expert >= experts || place >= capacity) return -1;
    if (!random || i[2] == 0) return place;
    RoutingDraw own = draw;  // the second choice is drawn as GShard's
    own.seed += 0x9E37'79B9'7F4A'7C15u * static_cast<std::uint64_t>(i[2] - 1);
    const double number = detail::routing_number(own, i[0] * tokens + i[1]);
    return static_cast<double>(k) * static_cast<double>(weight) > number ? place : -1;
  }
};
/// A gate over the sum of the chosen ones; 0 of a token without any.
struct ShareOfGates {
  static constexpr std::string_view name = "weight of a choice";
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T gate, T sum) const {
    return sum == T(0) ? T(0) : gate / sum;
  }
  template <int I, class T> KOKKOS_FORCEINLINE_FUNCTION T derivative(T gate, T sum) const {
    if (sum == T(0)) return T(0);
    return I == 0 ? T(1) / sum : -(gate / sum) / sum;
  }
};
/// scale c m / n^2 of a group's n tokens, c first choices of an expert and sum m of its gates.
struct BalanceOfGroup {
  static constexpr std::string_view name = "balance";
  double scale;
  template <RealElement T>
  KOKKOS_FUNCTION T operator()(std::int32_t firsts, T gates, std::int32_t tokens) const {
    return static_cast<T>(share(firsts, tokens)) * gates;
  }
  template <int I, class T>
  KOKKOS_FUNCTION double derivative(std::int32_t firsts, T, std::int32_t tokens) const {
    return share(firsts, tokens);
  }

 private:
  KOKKOS_FUNCTION double share(std::int32_t firsts, std::int32_t tokens) const {
    const double n = tokens;
    return tokens > 0 ? scale * firsts / (n * n) : 0;
  }
};
struct OneOf {
  KOKKOS_FUNCTION std::int32_t operator()(bool valid) const { return valid ? 1 : 0; }
};
struct AlwaysOne {
  KOKKOS_FUNCTION std::int32_t operator()(std::int64_t) const { return 1; }
};
}  // namespace fn

namespace detail {
/// The square of the log of the sum of exp, as a mean over the valid tokens.
template <class Real, class A, class V>
auto z_loss_of(const A& logits, const V& valid, Where where) {
  const auto total = logsumexp<"gse->gs">(logits, where);
  const auto squares = map(fn::Multiply{}, total, total, where);
  if constexpr (std::is_same_v<V, AllValid>) {
    using Scalar = ShardedTensor<Real, typename A::mesh_type, P<>>;
    const auto all = sum<"gs->", P<>>(squares, where);
    const Index count = logits.extent(0) * logits.extent(1);
    return Scalar(all * from_double<Real>(1 / static_cast<double>(max_of(count, Index{1}))));
  } else {
    return mean_where(squares, valid, where);
  }
}

/// How many of so many numbers were chosen before each choice, (G, S, K): all first choices come
/// before second ones, and so on, and those of one kind in the tokens' order.
template <class Choices> struct ChoiceRanks {
  using Line = SpecOfDims<Choices, 0, 1, -1>;
  WithDims<std::int32_t, Choices, 0, 1, -1> before;   ///< among those of its kind
  WithDims<std::int32_t, Choices, 0, 1, -1> earlier;  ///< among earlier kinds
  WithDims<std::int32_t, Choices, 0, -1, -1> each;    ///< (G, K, E): how often each was chosen
  WithDims<std::int32_t, Choices, 0, -1> count;       ///< (G, E)

  ChoiceRanks(const Choices& choices, Index numbers, Where where) {
    const auto ones = map<"gsk,e->gske", SpecOfDims<Choices, 0, 1, -1, -1>>(
        fn::OneWhereSame{}, choices, numbers_on<P<_>>(choices, {numbers}), where);
    each = reduce<As<Sum, std::int32_t>, "gske->gke", SpecOfDims<Choices, 0, -1, -1>>(ones, where);
    count = reduce<As<Sum, std::int32_t>, "gke->ge", SpecOfDims<Choices, 0, -1>>(each, where);
    before = take<"gske,gsk->gsk", Line>(
        cumulative<As<Sum, std::int32_t>, "gske", 's'>(ones, {.exclusive = true}, where), choices,
        OutOfRange::drop, where);
    earlier = take<"gke,gsk->gsk", Line>(
        cumulative<As<Sum, std::int32_t>, "gke", 'k'>(each, {.exclusive = true}, where), choices,
        OutOfRange::drop, where);
  }
};

template <class Logits, class V, class B>
TopKGating<Logits> run_top_k_gating(const Logits& given, const GatingOptions& options,
                                    const V& valid, const B& bias, Where where) {
  using Result = TopKGating<Logits>;
  using Real = typename Result::Real;
  using Line = SpecOfDims<Logits, 0, 1>;
  using EachGroup = SpecOfDims<Logits, 0, -1>;
  using Gates = SpecOfDims<Logits, 0, 1, -1>;
  constexpr bool masked = !std::is_same_v<V, AllValid>;
  mesh_of(given.core(), {"top_k_gating", where});
  const Index groups = given.extent(0), tokens = given.extent(1), experts = given.extent(2);
  if (options.k < 1 || options.k > experts || options.capacity < 0)
    throw UsageError("top_k_gating: " + std::to_string(options.k) + " of " +
                         std::to_string(experts) + " experts for a token, and a capacity of " +
                         std::to_string(options.capacity) +
                         "; choose at least 1 and no more than there are, and a capacity of at "
                         "least 1, or 0 for as many places as tokens",
                     where);
  Result to;
  to.capacity = options.capacity == 0 ? max_of(tokens, Index{1}) : options.capacity;
  const auto logits = widened(kept(given, valid, where), where);
  to.gates = kept(softmax<"gse", 'e', Gates>(logits, where), valid, where);

  const auto scores = [&] {
    if constexpr (std::is_same_v<B, NoChoiceBias>)
      return to.gates;
    else
      return map<"gse,e->gse", Gates>(fn::Add{}, to.gates, bias, where);
  }();
  const auto best = top_k<"gse", 'e', Gates>(scores, options.k, where).indices;
  if constexpr (masked)
    to.experts = map<"gsk,gs->gsk", Gates>(fn::ChosenIfValid{experts}, best, valid, where);
  else
    to.experts = best;
  const auto chosen = take<"gse,gsk->gsk", Gates>(to.gates, to.experts, OutOfRange::drop, where);
  to.weights = options.k == 1
                   ? chosen
                   : map<"gsk,gs->gsk", Gates>(fn::ShareOfGates{}, chosen,
                                               sum<"gsk->gs", Line>(chosen, where), where);

  const ChoiceRanks ranks(to.experts, experts, where);
  to.load = ranks.count;
  const fn::ChoicePosition place{experts,
                                 to.capacity,
                                 tokens,
                                 options.k,
                                 options.draw.has_value(),
                                 options.draw.value_or(RoutingDraw{})};
  to.positions = map_with_index<"gsk,gsk,gsk,gsk->gsk", Gates>(
      at(where), place, to.experts, ranks.before, ranks.earlier, to.weights);

  const auto here = [&] {
    if constexpr (masked)
      return map<"gs->gs", Line>(fn::OneOf{}, valid, where);
    else
      return map<"gs->gs", Line>(
          fn::AlwaysOne{}, squeeze<2>(slice<2>(to.experts, {0}, {1}, {}, where), where), where);
  }();
  const auto counted = reduce<As<Sum, std::int32_t>, "gs->g", SpecOfDims<Logits, 0>>(here, where);
  const auto firsts = squeeze<1>(slice<1>(ranks.each, {0}, {1}, {}, where), where);
  const double all = static_cast<double>(max_of(groups, Index{1})) * static_cast<double>(experts);
  to.balance_loss = sum<"ge->", P<>>(
      map<"ge,ge,g->ge", EachGroup>(fn::BalanceOfGroup{1 / all}, firsts,
                                    sum<"gse->ge", EachGroup>(to.gates, where), counted, where),
      where);
  to.z_loss = z_loss_of<Real>(logits, valid, where);
  return to;
}
}  // namespace detail

/// Returns where tokens go by their logits, (G, S, E): `valid`, if given, is (G, S), bool; `bias`,
/// if given, (E), is added to the gates for the choice alone. Gates are the softmax of the logits;
/// each token chooses the k experts with the largest, of equal ones the first; its weights are
/// their gates over the gates' sum, with k = 1 the gate itself. First choices take places in the
/// tokens' order while an expert has some, then second ones, and so on; each is counted, taken or
/// not. balance_loss is the mean over groups of (1/E) sum over e of c_e m_e, with the share c_e of
/// tokens whose first choice it is and the mean gate m_e; z_loss is the mean over tokens of the
/// square of the log of the sum of exp of their logits. Gradients go through gates, weights and
/// losses; choices are constants. Communication: none where groups alone are split, but for the
/// losses: all-reduces of a number. Collective over the mesh. Throws UsageError for a k that is not
/// in 1 ... E, and a negative capacity. Source: GShard, Algorithm 1; Zoph et al., "ST-MoE" (2022),
/// section 3; Wang et al., "Auxiliary-Loss-Free Load Balancing" (2024), and DeepSeek-V3 (2024).
template <TypedTensor Logits, class V = AllValid, class B = NoChoiceBias>
auto top_k_gating(const Logits& logits, const GatingOptions& options = {}, const V& valid = {},
                  const B& bias = {}, Where where = Where::here()) {
  constexpr bool legal = RealElement<typename Logits::value_type> && Logits::rank == 3;
  static_assert(legal,
                "[tessera] the logits of a gating are floating-point numbers for each group, token "
                "and expert; give a tensor (G, S, E)");
  if constexpr (legal) return detail::run_top_k_gating(logits, options, valid, bias, where);
}

namespace fn {
/// bias + rate where an expert has fewer choices than the mean, bias - rate where it has more.
struct BiasStep {
  static constexpr std::string_view name = "bias of a choice";
  double rate, experts;
  template <RealElement T>
  KOKKOS_FUNCTION T operator()(T bias, std::int64_t load, std::int64_t all) const {
    const double more = static_cast<double>(load) * experts - static_cast<double>(all);
    const double by = more > 0 ? -rate : more < 0 ? rate : 0;
    return tessera::detail::from_double<T>(static_cast<double>(bias) + by);
  }
};
}  // namespace fn

/// Returns the bias of the choice after a step: load, (E), integers, says how many choices each
/// expert got. No gradient is taken of it. Communication: none where both are whole. Collective
/// over the mesh. Source: Wang et al. (2024), Algorithm 1. Throws ShapeError when extents disagree.
template <TypedTensor B, TypedTensor L>
B balanced_bias(const B& bias, const L& load, double rate, Where where = Where::here()) {
  const auto all = sum<"e->">(load, where);
  return B(map<"e,e,->e", typename B::spec>(fn::BiasStep{rate, static_cast<double>(bias.extent(0))},
                                            bias, load, all, where));
}

}  // namespace tessera
