// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The models of GShard's Table 1 by the sizes of its appendix A.2, as trees of parameters, and
/// what they make of texts.
///
///     const auto model = gshard::Translator<On<float>>::like(make, {.layers = 12, .experts = 128});
///     auto scores = gshard::translate(model, source, target, again);       // (batch, sequence, vocabulary)
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace gshard {
using namespace tessera;

struct experts;
/// Experts over all processes, all other weights on each of them (section 3.3, figure 5).
using Split = LayerRules<AxisRule<logical::batch, data>, AxisRule<experts, data>>;
template <class T> using On = Under<T, Grid, Split>;
template <class U>
using Experts = ExpertWeights<typename U::template Tensor<logical::norm, _>,
                              typename U::template Tensor<experts, _, logical::hidden>,
                              typename U::template Tensor<experts, logical::hidden, _>>;

struct Sizes {
  Index layers, experts;
  Index embed = 1024, hidden = 8192, heads = 16, head_dim = 128, source = 64000, target = 32000;
};

/// Attention, in a decoder to the source too, and a feed-forward layer or, in every other layer,
/// experts.
template <class U> struct Block {
  std::vector<LayerNorm<U>> norms;
  std::vector<Attention<U>> attentions;
  std::vector<FeedForward<U>> dense;
  std::vector<Experts<U>> mixture;
  static constexpr auto fields =
      Fields<&Block::norms, &Block::attentions, &Block::dense, &Block::mixture>{};

  static Block like(Parameters<Grid>& make, const Sizes& n, bool decodes, bool mixes) {
    Block block;
    for (int i = 0; i < (decodes ? 3 : 2); ++i)
      block.norms.push_back(LayerNorm<U>::like(make, n.embed));
    for (int i = 0; i < (decodes ? 2 : 1); ++i)
      block.attentions.push_back(
          Attention<U>::like(make, {.embed = n.embed, .heads = n.heads, .head_dim = n.head_dim}));
    if (!mixes) {
      block.dense.push_back(FeedForward<U>::like(make, n.embed, n.hidden));
      return block;
    }
    const auto fan_in = Initializer::fan_in(n.embed);
    using E = Experts<U>;
    E e;
    e.gate = make.tensor<decltype(E::gate)>({n.embed, n.experts}, fan_in);
    e.in = make.tensor<decltype(E::in)>({n.experts, n.embed, n.hidden}, fan_in);
    e.out = make.tensor<decltype(E::out)>({n.experts, n.hidden, n.embed}, fan_in);
    block.mixture.push_back(std::move(e));
    return block;
  }
};
template <class U> struct Translator {
  Embedding<U> source, target;
  std::vector<Block<U>> encoder, decoder;
  Dense<U, logical::embed, logical::vocabulary> head;
  static constexpr auto fields =
      Fields<&Translator::source, &Translator::target, &Translator::encoder, &Translator::decoder,
             &Translator::head>{};

  static Translator like(Parameters<Grid>& make, const Sizes& n) {
    Translator model;
    model.source = Embedding<U>::like(make, n.source, n.embed);
    model.target = Embedding<U>::like(make, n.target, n.embed);
    for (Index l = 0; l < n.layers / 2; ++l) {
      model.encoder.push_back(Block<U>::like(make, n, false, l % 2 == 1));
      model.decoder.push_back(Block<U>::like(make, n, true, l % 2 == 1));
    }
    model.head = Dense<U, logical::embed, logical::vocabulary>::like(make, n.embed, n.target);
    return model;
  }
};

template <class U>
using Texts = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
template <class U>
using Activations = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;

/// Returns x after a block, to which a decoder gives what the encoder made: x and that are (batch,
/// sequence, embed). All tokens of a process are one group of the experts.
template <class U>
Activations<U> after(const Block<U>& block, const Activations<U>& x,
                     const Activations<U>* encoded = nullptr) {
  std::size_t norm = 0;
  const auto normed = [&](const Activations<U>& y) { return layer_norm(block.norms[norm++], y); };
  Activations<U> y = x, seen = normed(x);
  y = y + attention(block.attentions[0], seen, seen, {.causal = encoded != nullptr});
  if (encoded != nullptr) y = y + attention(block.attentions[1], normed(y), *encoded);
  seen = normed(y);
  if (!block.dense.empty()) return y + feed_forward(block.dense[0], seen, fn::Relu{});
  const Index groups = ProcessMesh<Grid>(x.core().mesh()).shape()[0],
              tokens = x.extent(0) * x.extent(1);
  const auto grouped =
      reshape<typename Activations<U>::spec>(seen, {groups, tokens / groups, x.extent(2)});
  const auto made = mixture_of_experts(grouped, block.mixture[0]);
  return y + reshape<typename Activations<U>::spec>(made.output, x.extents());
}

/// Returns the scores of the words of a translation. Layers run again that `again` says, those of
/// the encoder first.
template <class U>
auto translate(const Translator<U>& model, const Texts<U>& source, const Texts<U>& target,
               const std::vector<Recompute>& again) {
  const auto looked_up = [](const auto& table, const Texts<U>& ids) {
    return look_up<typename Activations<U>::spec>(table, ids);
  };
  const auto encodes = [](const Block<U>& block, const Activations<U>& x) {
    return after(block, x);
  };
  const auto decodes = [](const Block<U>& block, const Activations<U>& x,
                          const Activations<U>& encoded) { return after(block, x, &encoded); };
  std::size_t layer = 0;
  Activations<U> encoded = looked_up(model.source, source);
  for (const Block<U>& block : model.encoder)
    encoded = recompute_if(again[layer++], encodes)(block, encoded);
  Activations<U> y = looked_up(model.target, target);
  for (const Block<U>& block : model.decoder)
    y = recompute_if(again[layer++], decodes)(block, y, encoded);
  return dense<typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>>(
      model.head, y);
}

}  // namespace gshard
