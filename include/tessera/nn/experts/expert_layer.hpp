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
///     const auto all = expert_layer(layer, x, {.k = 2, .capacity_factor = 0, .counted = true});   // nothing is dropped
///
/// Laws: equals plain loops over tokens, for every mesh and all rules; the output of a token that
/// no expert got is 0; of a capacity_factor of 0 nothing is dropped but what is not drawn, and
/// a token's output depends on no other token. Errors: those of the operators that it is made of.
#include <optional>
#include <string>
#include <type_traits>

#include <tessera/grad/stop_gradient.hpp>
#include <tessera/kernel/functions/activation.hpp>
#include <tessera/nn/experts/detail/dropless.hpp>
#include <tessera/nn/experts/experts.hpp>
#include <tessera/nn/experts/top_k_gating.hpp>
#include <tessera/nn/mixture_of_experts.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/product/epilogue.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/shape/reshape.hpp>

namespace tessera {

namespace fn {
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
      map<"gec->gec">(fn::NumberFromSum{},
                      scatter<Sum, "gsk,gsk,gsk->gec", SpecOfDims<Logits, 0, -1, -1>>(
                          gating.experts, gating.positions, numbers,
                          {gating.gates.extent(2), gating.capacity}, OutOfRange::drop, where),
                      where);
  return take<"gsm,gec->egcm", ByGroup<X>>(x, tokens, OutOfRange::drop, where);
}
/// Returns what the experts make of tokens X that go to buffers of `gating.capacity` places.
template <class U, class X, class Logits, class F>
X by_places(const Experts<U>& layer, const X& x, const TopKGating<Logits>& gating,
            const F& activation, Where where) {
  using Buffers = ByExpert<X, decltype(layer.in)>;
  const auto sent = in_layer(x, "dispatch", where,
                             [&] { return reshard<Buffers>(buffers_of(x, gating, where), where); });
  const auto made = in_layer(x, "experts", where, [&] {
    return einsum<"egch,ehm->egcm", Buffers>(
        einsum<"egcm,emh->egch">(sent, layer.in, then(activation), where), layer.out, where);
  });
  return in_layer(x, "combine", where, [&] {
    return weighed<X>(take<"egcm,gsk,gsk->gskm", SpecOfDims<X, 0, 1, -1, 2>>(
                          reshard<ByGroup<X>>(made, where), gating.experts, gating.positions,
                          OutOfRange::drop, where),
                      gating.weights, where);
  });
}

template <class U, class X, class V, class F>
ExpertOutput<X> run_experts(const Experts<U>& layer, const X& x, const ExpertOptions& options,
                            const F& activation, const V& valid, Where where) {
  require_experts(x, layer.gate, layer.in, layer.out, where);
  const bool dropless = options.capacity_factor == 0;
  const auto gating = in_layer(x, "gating", where, [&] {
    const auto logits = einsum<"gsm,me->gse", SpecOfDims<X, 0, 1, -1>>(x, layer.gate, where);
    GatingOptions how{options.k, 0, options.draw};
    if (!dropless)
      how.capacity =
          expert_capacity(x.extent(1), layer.gate.extent(1),
                          options.capacity_factor * static_cast<double>(options.k) / 2, where);
    return layer.choice_bias
               ? top_k_gating(logits, how, valid, stop_gradient(*layer.choice_bias), where)
               : top_k_gating(logits, how, valid, NoChoiceBias{}, where);
  });
  ExpertOutput<X> to;
  to.output = dropless ? by_sorted_rows(layer, x, gating, options, activation, where)
                       : by_places(layer, x, gating, activation, where);
  to.balance_loss = gating.balance_loss;
  to.z_loss = gating.z_loss;
  to.load = sum<"ge->e", P<_>>(cast<std::int64_t>(gating.load, where), where);
  to.dropped = sum<"gsk->", P<>>(map<"gsk,gsk->gsk">(fn::ChoiceDropped{layer.gate.extent(1)},
                                                     gating.experts, gating.positions, where),
                                 where);
  return to;
}
}  // namespace detail

/// Returns what the experts make of tokens x, (batch, sequence, embed), like x: expert e makes
/// activation(v in[e]) out[e] of a row v, and a token the sum of those of its experts by their
/// weights. `valid`, if given, is (batch, sequence), bool; tokens that are not valid go nowhere,
/// get 0, and may be anything. Memory: the numbers of choices, (groups, tokens, choices of a token,
/// experts), int32, by which they have ranks; with a capacity the buffers, (experts, groups,
/// places, embed), and their hidden rows; with a capacity_factor of 0 the rows and weights of
/// nn/experts/detail/dropless.hpp. Communication: as mixture_of_experts: where batch and experts
/// are split over the same axes an all-to-all of the buffers, all their places, before the experts
/// and one after, nothing else but numbers; with a capacity_factor of 0 of rows, with their
/// experts' numbers, and where options.counted the loads to the host. Groups of texts that do not
/// fit a process's part of the batch are moved before, and their outputs after. Collective over the
/// mesh. Throws ShapeError when extents disagree or options.texts does not divide the batch,
/// UsageError as top_k_gating and expert_capacity. Source: GShard, Algorithm 2.
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
