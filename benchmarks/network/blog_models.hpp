// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The blog on GSPMD (2021) trains LaMDA, MLPerf-BERT and GLaM: their published sizes, and a step
/// of training.
///
///     const Program program = blog::step<logical::groups>(mesh, blog::lamda);
#include <string>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/nn.hpp>
#include <tessera/nn/experts/expert_layer.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace blog {
using namespace tessera;

/// groups: keys and values of a token; heads share them. tokens: of a text.
struct Sizes {
  Index layers, embed, hidden, heads, groups, experts, batch, tokens, vocabulary;
  bool causal;
};
constexpr Index head_dim = 128;
/// 137e9 parameters (Thoppilan et al., "LaMDA", 2022, section 3); texts as Lingvo trains a model of
/// this size on as many cores (its DenseLm128B32x32).
inline constexpr Sizes lamda{64, 8192, 65536, 128, 128, 0, 512, 1024, 32000, true};
/// 481e9 parameters (Lingvo, MLPerfBertDense500B2K).
inline constexpr Sizes bert{64, 16384, 131072, 256, 1, 0, 4096, 512, 30522, false};
/// 1.2e12 parameters (Du et al., "GLaM", 2021, table 4, and a million tokens a step, section 5).
inline constexpr Sizes glam{64, 8192, 32768, 128, 128, 64, 1024, 1024, 256000, true};

/// GSPMD's "2D finalized", and the experts where the batch is. Heads: what the heads are split by,
/// logical::groups, or logical::repeats where they share keys and values.
template <class Heads>
using Split = LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::experts, data>,
                         AxisRule<Heads, model>, AxisRule<logical::hidden, model>,
                         AxisRule<logical::vocabulary, model>, AxisRule<logical::embed, data>,
                         AxisRule<logical::embed, model>>;

/// Attention, and a feed-forward layer with a gate or, in every other layer of a mixture, experts.
template <class U> struct Block {
  LayerNorm<U> attention_norm, norm;
  Attention<U> attention;
  std::vector<GatedFeedForward<U>> dense;
  std::vector<Experts<U>> mixture;
  static constexpr auto fields = Fields<&Block::attention_norm, &Block::norm, &Block::attention,
                                        &Block::dense, &Block::mixture>{};

  static Block like(Parameters<Grid>& make, const Sizes& n, bool mixes) {
    Block block;
    block.attention_norm = LayerNorm<U>::like(make, n.embed);
    block.norm = LayerNorm<U>::like(make, n.embed);
    block.attention = Attention<U>::like(
        make, {.embed = n.embed, .heads = n.heads, .groups = n.groups, .head_dim = head_dim});
    if (mixes)
      block.mixture.push_back(
          Experts<U>::like(make, {.embed = n.embed, .experts = n.experts, .hidden = n.hidden}));
    else
      block.dense.push_back(GatedFeedForward<U>::like(make, n.embed, n.hidden));
    return block;
  }
};
template <class U> struct Model {
  Embedding<U> table;
  std::vector<Block<U>> blocks;
  LayerNorm<U> norm;
  Dense<U, logical::embed, logical::vocabulary> head;
  static constexpr auto fields =
      Fields<&Model::table, &Model::blocks, &Model::norm, &Model::head>{};

  static Model like(Parameters<Grid>& make, const Sizes& n) {
    Model model;
    model.table = Embedding<U>::like(make, n.vocabulary, n.embed);
    for (Index l = 0; l < n.layers; ++l)
      model.blocks.push_back(Block<U>::like(make, n, n.experts > 0 && l % 2 == 1));
    model.norm = LayerNorm<U>::like(make, n.embed);
    model.head = Dense<U, logical::embed, logical::vocabulary>::like(make, n.embed, n.vocabulary);
    return model;
  }
};

template <class U, class X> X after(const Block<U>& w, const X& x, const Sizes& n) {
  const X seen = layer_norm(w.attention_norm, x);
  const X y = x + attention(w.attention, seen, seen, {.causal = n.causal});
  const X z = layer_norm(w.norm, y);
  if (!w.dense.empty()) return X(y + feed_forward(w.dense[0], z, fn::Gelu{}));
  return X(y + expert_layer(w.mixture[0], z, {}, fn::Gelu{}).output);
}

/// A step of training with Adafactor, in bfloat16. The first `again` layers run again on the way
/// back.
template <class Heads> Program step(const ProcessMesh<Grid>& mesh, const Sizes& n, int again = 0) {
  using U = Under<bfloat16, Grid, Split<Heads>>;
  using Ids = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
  using X = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
  using Scores = typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>;
  Recording recording(mesh);
  Parameters<Grid> make(mesh, 1);
  auto model = Model<U>::like(make, n);
  Optimizer<Adafactor> optimizer(Adafactor{}, model);
  const auto ids = zeros<Ids>(mesh, {n.batch, n.tokens});
  const auto run = optimizer.value_and_grad([&](const Model<U>& w) {
    X x = look_up<typename X::spec>(w.table, ids);
    const auto layer = [&](const Block<U>& block, const X& in) { return after(block, in, n); };
    int done = 0;
    for (const Block<U>& one : w.blocks) x = recompute_if(Recompute(done++ < again), layer)(one, x);
    x = layer_norm(w.norm, x);
    return mean(cross_entropy(dense<Scores>(w.head, x), ids));
  })(model);
  optimizer.step(model, run.gradient);
  return recording.take();
}

}  // namespace blog
