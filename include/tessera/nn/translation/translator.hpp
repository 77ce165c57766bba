// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The parameters of an encoder-decoder Transformer, and how it runs: an encoder of the source, and
/// a decoder of the target that attends to it; feed-forward layers or, in every other layer of both
/// stacks, experts (GShard's layout). nn/translation/translate.hpp computes it.
///
///     const TranslatorSizes sizes_of{.source = 13, .target = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 8,
///                                    .encoder_layers = 2, .decoder_layers = 2, .experts = 4};
///     auto model = Translator<Here>::like(make, sizes_of);
///     const TranslatorOptions gshard{.experts = {.k = 2, .capacity_factor = 1.25}};
///
/// Laws: the parameters of one set of sizes are the same on every mesh and under all rules.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <tessera/grad/recompute.hpp>
#include <tessera/nn/attention.hpp>
#include <tessera/nn/embedding.hpp>
#include <tessera/nn/experts/experts.hpp>
#include <tessera/nn/feed_forward.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/positions.hpp>

namespace tessera {

/// Which parameters an encoder-decoder has.
struct TranslatorSizes {
  Index source = 256, target = 256;  ///< tokens that there are
  Index places = 0;                  ///< of tables of positions; 0: none, as with rotary ones
  Index buckets = 0;                 ///< of relative positions, a table for each stack; 0: none
  Index embed = 256, heads = 8, groups = 0, head_dim = 0;  ///< 0: as AttentionSizes has it
  Index hidden = 1024;
  Index encoder_layers = 6, decoder_layers = 6;
  Index experts = 0;         ///< in every other layer, from the second one on; 0: none
  bool choice_bias = false;  ///< of the experts' gates (ExpertSizes)
  bool tied_tables = false;  ///< the source's table is the target's
  bool tied_scores = true;   ///< scores are products with the target's table
  bool biases = true;        ///< of products and norms; norms without are RMS norms
  bool input_norms = false;  ///< of what tables add up to
  bool last_norms = true;    ///< after each stack, where layers begin with their norms
};

/// Attention, in a decoder also to the source, and a feed-forward layer or experts.
template <class U> struct TranslatorBlock {
  Norm<U> attention_norm;
  Attention<U> attention;
  std::optional<Norm<U>> source_norm;
  std::optional<Attention<U>> source_attention;
  Norm<U> feed_forward_norm;
  std::optional<FeedForward<U>> feed_forward;
  std::optional<Experts<U>> experts;
  static constexpr auto fields =
      Fields<&TranslatorBlock::attention_norm, &TranslatorBlock::attention,
             &TranslatorBlock::source_norm, &TranslatorBlock::source_attention,
             &TranslatorBlock::feed_forward_norm, &TranslatorBlock::feed_forward,
             &TranslatorBlock::experts>{};

  /// Returns layer `number` of a stack, counted from 0.
  static TranslatorBlock like(Parameters<typename U::mesh_type>& make, const TranslatorSizes& n,
                              Index number, bool decodes) {
    const AttentionSizes attention{.embed = n.embed,
                                   .heads = n.heads,
                                   .groups = n.groups,
                                   .head_dim = n.head_dim,
                                   .bias = n.biases};
    TranslatorBlock block;
    block.attention_norm = Norm<U>::like(make, n.embed, n.biases);
    block.attention = Attention<U>::like(make, attention);
    if (decodes) {
      block.source_norm = Norm<U>::like(make, n.embed, n.biases);
      block.source_attention = Attention<U>::like(make, attention);
    }
    block.feed_forward_norm = Norm<U>::like(make, n.embed, n.biases);
    if (n.experts > 0 && number % 2 == 1)
      block.experts = Experts<U>::like(make, {.embed = n.embed,
                                              .experts = n.experts,
                                              .hidden = n.hidden,
                                              .choice_bias = n.choice_bias});
    else
      block.feed_forward = FeedForward<U>::like(make, n.embed, n.hidden, n.biases);
    return block;
  }
};

/// One side: what stands before its blocks, these, and what comes after them.
template <class U> struct TranslatorStack {
  std::optional<Embedding<U, logical::positions>> positions;
  std::optional<RelativeBias<U>> relative;  ///< which all blocks share
  std::optional<Norm<U>> input_norm;
  std::vector<TranslatorBlock<U>> blocks;
  std::optional<Norm<U>> norm;
  static constexpr auto fields =
      Fields<&TranslatorStack::positions, &TranslatorStack::relative, &TranslatorStack::input_norm,
             &TranslatorStack::blocks, &TranslatorStack::norm>{};

  static TranslatorStack like(Parameters<typename U::mesh_type>& make, const TranslatorSizes& n,
                              bool decodes, Where where = Where::here()) {
    TranslatorStack stack;
    if (n.places > 0)
      stack.positions = Embedding<U, logical::positions>::like(make, n.places, n.embed, 0.1);
    if (n.input_norms) stack.input_norm = Norm<U>::like(make, n.embed, n.biases);
    const Index layers = decodes ? n.decoder_layers : n.encoder_layers;
    for (Index l = 0; l < layers; ++l)
      stack.blocks.push_back(TranslatorBlock<U>::like(make, n, l, decodes));
    if (n.buckets > 0) {
      const Index groups = n.groups == 0 ? n.heads : n.groups;
      stack.relative = RelativeBias<U>::like(
          make, {.buckets = n.buckets, .groups = groups, .repeats = n.heads / groups}, where);
    }
    if (n.last_norms) stack.norm = Norm<U>::like(make, n.embed, n.biases);
    return stack;
  }
};

template <class U> struct Translator {
  std::optional<Embedding<U>> source;  ///< none where the target's table is for both
  Embedding<U> target;
  TranslatorStack<U> encoder, decoder;
  std::optional<Dense<U, logical::embed, logical::vocabulary>>
      head;  ///< none where scores are tied
  static constexpr auto fields =
      Fields<&Translator::source, &Translator::target, &Translator::encoder, &Translator::decoder,
             &Translator::head>{};

  /// Throws UsageError where one table is for sources and targets of other numbers of tokens.
  static Translator like(Parameters<typename U::mesh_type>& make, const TranslatorSizes& n,
                         Where where = Where::here()) {
    if (n.tied_tables && n.source != n.target)
      throw UsageError("a translator: one table is to be for " + std::to_string(n.source) +
                           " tokens of sources and " + std::to_string(n.target) +
                           " of targets; give one vocabulary for both, or two tables",
                       where);
    // A table that makes scores is small; the options' embedding_scale makes its rows larger.
    const double deviation = n.tied_scores ? 1 / std::sqrt(static_cast<double>(n.embed)) : 1;
    Translator model;
    if (!n.tied_tables) model.source = Embedding<U>::like(make, n.source, n.embed, deviation);
    model.target = Embedding<U>::like(make, n.target, n.embed, deviation);
    model.encoder = TranslatorStack<U>::like(make, n, false, where);
    model.decoder = TranslatorStack<U>::like(make, n, true, where);
    if (!n.tied_scores)
      model.head = Dense<U, logical::embed, logical::vocabulary>::like(make, n.embed, n.target);
    return model;
  }
  const Embedding<U>& source_table() const { return source ? *source : target; }
};

/// How an encoder-decoder runs, whatever its weights are.
struct TranslatorOptions {
  bool norm_first = true;  ///< x + layer(norm(x)), as T5; else norm(x + layer(x)), as BART
  double epsilon = 1e-5;   ///< of all norms
  bool gelu = false;       ///< in feed-forward layers and experts; else relu
  /// Of the tables' rows; sqrt(embed) where they make the scores too. Source: Vaswani et al.
  /// (2017), section 3.4.
  double embedding_scale = 1;
  Index first_place = 0;  ///< the row of the tables of positions for the first token
  Dropout dropout = {};   ///< as in GShard, appendix A.2: of inputs, residuals and attention
  AttentionOptions attention =
      {};  ///< of both stacks; window, rotary and farthest of a text to itself
  ExpertOptions experts = {};
  /// Of which blocks a gradient keeps the arguments alone, the encoder's first (DecoderOptions).
  std::vector<Recompute> again = {};
};

}  // namespace tessera
