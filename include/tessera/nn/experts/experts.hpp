// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A layer of experts in place of a feed-forward layer: each token of a batch of texts uses k of
/// them. nn/experts/top_k_gating.hpp says which.
///
///     auto layer = Experts<Here>::like(make, {.embed = 6, .experts = 4, .hidden = 8});
///     const auto made = expert_layer(layer, x, {.k = 2, .capacity_factor = 1.25});   // x is (batch, sequence, embed)
///     auto y = x + made.output;                               // tokens that overflow pass by
///     auto loss = likelihood + 0.01f * made.balance_loss;
///
/// Laws: equals plain loops over tokens, for every mesh and all rules; the output of a token that
/// no expert got is 0; of a capacity_factor of 0 nothing is dropped, and a token's output depends
/// on no other token. Errors: those of the operators that it is made of.
#include <optional>
#include <string>

#include <tessera/kernel/functions/activation.hpp>
#include <tessera/nn/experts/top_k_gating.hpp>
#include <tessera/nn/mixture_of_experts.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/product/epilogue.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/shape/reshape.hpp>

namespace tessera {

/// choice_bias: experts are chosen by gates plus a bias, which no gradient changes (balanced_bias).
struct ExpertSizes {
  Index embed = 0, experts = 1, hidden = 0;
  bool choice_bias = false;
};

template <class U> struct Experts {
  template <class... Names> using Tensor = typename U::template Tensor<Names...>;
  using Real = ComputeType<typename U::value_type>;
  using Bias = typename U::template Of<Real, _>;
  Tensor<logical::norm, _> gate;  ///< which is small, and whole
  Tensor<logical::experts, logical::embed, logical::hidden> in;
  Tensor<logical::experts, logical::hidden, logical::embed> out;
  std::optional<Bias> choice_bias;
  static constexpr auto fields =
      Fields<&Experts::gate, &Experts::in, &Experts::out, &Experts::choice_bias>{};

  static Experts like(Parameters<typename U::mesh_type>& make, const ExpertSizes& n,
                      Where where = Where::here()) {
    const auto from_embed = Initializer::fan_in(n.embed);
    Experts layer;
    layer.gate =
        make.template tensor<decltype(layer.gate)>({n.embed, n.experts}, from_embed, where);
    layer.in =
        make.template tensor<decltype(layer.in)>({n.experts, n.embed, n.hidden}, from_embed, where);
    layer.out = make.template tensor<decltype(layer.out)>({n.experts, n.hidden, n.embed},
                                                          Initializer::fan_in(n.hidden), where);
    if (n.choice_bias)
      layer.choice_bias = make.template tensor<Bias>({n.experts}, Initializer::zeros(), where);
    return layer;
  }
};

/// How a layer of experts runs, whatever its weights are.
struct ExpertOptions {
  Index k = 2;  ///< experts of a token
  /// Places of an expert for a group of S tokens: ceil(k S f / E), and at least one; 0: S, so that
  /// nothing is dropped.
  double capacity_factor = 1;
  Index texts = 1;  ///< texts of a group, which compete for places; they divide the batch
  std::optional<RoutingDraw> draw = {};  ///< of further choices (GatingOptions)
};

/// What a layer of experts returns.
template <class X> struct ExpertOutput {
  using Real = ComputeType<typename X::value_type>;
  template <class T> using Scalar = ShardedTensor<T, typename X::mesh_type, P<>>;
  X output;                                                       ///< like the tokens
  Scalar<Real> balance_loss, z_loss;                              ///< of the gates
  ShardedTensor<std::int64_t, typename X::mesh_type, P<_>> load;  ///< (E): choices of each expert
  Scalar<std::int64_t> dropped;  ///< choices that found no place, or were not drawn
  static constexpr auto fields =
      Fields<&ExpertOutput::output, &ExpertOutput::balance_loss, &ExpertOutput::z_loss,
             &ExpertOutput::load, &ExpertOutput::dropped>{};
};

namespace fn {
/// The number of the token in a place from 0 on, by the sum of the numbers from 1 on; -1: none.
struct TokenFromSum {
  static constexpr std::string_view name = "token of a place";
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t sum) const { return sum - 1; }
};
/// Whether a choice is of an expert that there is, and has no place.
struct ChoiceDropped {
  static constexpr std::string_view name = "dropped";
  Index experts;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t expert, std::int64_t position) const {
    return expert < experts && position < 0 ? 1 : 0;
  }
};
}  // namespace fn

namespace detail {
/// Returns how many places an expert has.
inline Index places_of(const ExpertOptions& options, Index tokens, Index experts, Where where) {
  if (options.capacity_factor == 0) return 0;
  return expert_capacity(tokens, experts,
                         options.capacity_factor * static_cast<double>(options.k) / 2, where);
}
/// Returns texts x, (batch, sequence, ...), as groups of so many.
template <class A> A in_groups(const A& x, Index texts, Where where) {
  if (texts == 1) return x;
  Extents extents = x.extents();
  if (texts < 1 || extents[0] % texts != 0)
    throw ShapeError("expert_layer: a batch of " + std::to_string(extents[0]) +
                         " texts in groups of " + std::to_string(texts) +
                         "; give a number of texts that divides the batch",
                     where);
  extents[0] /= texts;
  extents[1] *= texts;
  return reshape<typename A::spec>(x, extents, where);
}

/// Returns the experts' buffers (E, G, C, M), where the groups lie.
template <class X, class Logits>
auto buffers_of(const X& x, const TopKGating<Logits>& gating, Where where) {
  const auto numbers = map_with_index<"gsk->gsk">(fn::NumberInGroup{}, gating.experts, where);
  const auto tokens =
      map<"gec->gec">(fn::TokenFromSum{},
                      scatter<Sum, "gsk,gsk,gsk->gec", SpecOfDims<Logits, 0, -1, -1>>(
                          gating.experts, gating.positions, numbers,
                          {gating.gates.extent(2), gating.capacity}, OutOfRange::drop, where),
                      where);
  return take<"gsm,gec->egcm", ByGroup<X>>(x, tokens, OutOfRange::drop, where);
}
/// Returns what tokens X get from the buffers, each by its weights.
template <class X, class B, class Logits>
X from_buffers_of(const B& buffers, const TopKGating<Logits>& gating, Where where) {
  using Real = typename TopKGating<Logits>::Real;
  using T = typename X::value_type;
  const auto rows = take<"egcm,gsk,gsk->gskm", SpecOfDims<X, 0, 1, -1, 2>>(
      buffers, gating.experts, gating.positions, OutOfRange::drop, where);
  if constexpr (std::is_same_v<T, Real>)
    return X(einsum<"gskm,gsk->gsm", typename X::spec>(rows, gating.weights, where));
  else
    return X(cast<T>(
        einsum<"gskm,gsk->gsm", typename X::spec>(cast<Real>(rows, where), gating.weights, where),
        where));
}

template <class U, class X, class V, class F>
ExpertOutput<X> run_experts(const Experts<U>& layer, const X& x, const ExpertOptions& options,
                            const F& activation, const V& valid, Where where) {
  using In = decltype(layer.in);
  using Buffers = ByExpert<X, In>;
  require_experts(x, layer.gate, layer.in, layer.out, where);
  const auto in_layer = [&](const char* name, const auto& run) {
    const Layer scope(x, name, where);
    return run();
  };
  const auto gating = in_layer("gating", [&] {
    const auto logits = einsum<"gsm,me->gse", SpecOfDims<X, 0, 1, -1>>(x, layer.gate, where);
    const GatingOptions how{options.k, places_of(options, x.extent(1), layer.gate.extent(1), where),
                            options.draw};
    return layer.choice_bias
               ? top_k_gating(logits, how, valid, stop_gradient(*layer.choice_bias), where)
               : top_k_gating(logits, how, valid, NoChoiceBias{}, where);
  });
  const auto sent =
      in_layer("dispatch", [&] { return reshard<Buffers>(buffers_of(x, gating, where), where); });
  const auto made = in_layer("experts", [&] {
    return einsum<"egch,ehm->egcm", Buffers>(
        einsum<"egcm,emh->egch">(sent, layer.in, then(activation), where), layer.out, where);
  });
  return in_layer("combine", [&] {
    ExpertOutput<X> to;
    to.output = from_buffers_of<X>(reshard<ByGroup<X>>(made, where), gating, where);
    to.balance_loss = gating.balance_loss;
    to.z_loss = gating.z_loss;
    to.load = sum<"ge->e", P<_>>(cast<std::int64_t>(gating.load, where), where);
    to.dropped = sum<"gsk->", P<>>(map<"gsk,gsk->gsk">(fn::ChoiceDropped{layer.gate.extent(1)},
                                                       gating.experts, gating.positions, where),
                                   where);
    return to;
  });
}
}  // namespace detail

/// Returns what the experts make of tokens x, (batch, sequence, embed), like x: expert e makes
/// activation(v in[e]) out[e] of a row v, and a token the sum of those of its experts by their
/// weights. `valid`, if given, is (batch, sequence), bool; tokens that are not valid go nowhere,
/// get 0, and may be anything. Memory: of the buffers, (experts, groups, places, embed).
/// Communication: as mixture_of_experts: where batch and experts are split over the same axes an
/// all-to-all of the buffers before the experts and one after, nothing else but numbers. Collective
/// over the mesh. Throws ShapeError when extents disagree or options.texts does not divide the
/// batch, UsageError as top_k_gating and expert_capacity. Source: GShard, Algorithm 2.
template <class U, TypedTensor X, class F = fn::Relu, class V = AllValid>
ExpertOutput<X> expert_layer(const Experts<U>& layer, const X& x, const ExpertOptions& options = {},
                             const F& activation = {}, const V& valid = {},
                             Where where = Where::here()) {
  const auto grouped = [&] {
    if constexpr (std::is_same_v<V, AllValid>)
      return valid;
    else
      return detail::in_groups(valid, options.texts, where);
  }();
  auto made = detail::run_experts(
      layer, detail::in_groups(detail::kept(x, valid, where), options.texts, where), options,
      activation, grouped, where);
  if (options.texts != 1) made.output = reshape<typename X::spec>(made.output, x.extents(), where);
  return made;
}

}  // namespace tessera
