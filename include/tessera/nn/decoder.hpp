// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A decoder-only Transformer, written once; the rules of its types say how it is split.
///
///     auto model = Decoder<Here>::like(make, {.vocabulary = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 8, .layers = 2});
///     auto scores = next_tokens(model, ids);                 // (batch, sequence, vocabulary)
///     auto loss = mean(cross_entropy(scores, targets));
///     auto packed = next_tokens(model, ids, {}, documents);  // of several texts in a row (nn/documents/documents.hpp)
///     auto same = next_tokens(model, ids, {.attention = {.block = 2}, .again = {true, false}});   // in less memory
///
/// Laws: the scores of a place depend on its token and those before it alone; the same numbers
/// under all rules, on every mesh, in blocks and with blocks that run again, to rounding. Errors:
/// those of the operators that it is made of.
#include <string>
#include <vector>

#include <tessera/grad/recompute.hpp>
#include <tessera/nn/attention.hpp>
#include <tessera/nn/detail/residual.hpp>
#include <tessera/nn/embedding.hpp>
#include <tessera/nn/feed_forward.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/positions.hpp>
#include <tessera/op/elements/arithmetic.hpp>

namespace tessera {

/// 0: groups as many as heads, head_dim embed / heads.
struct DecoderSizes {
  Index vocabulary = 256, places = 256, embed = 256, heads = 8, groups = 0, head_dim = 0,
        hidden = 1024, layers = 4;
};

/// x + attention(norm(x)), and then x + feed_forward(norm(x)). Source: Vaswani et al. (2017); norms
/// before the layers as in Radford et al. (2019).
template <class U> struct DecoderBlock {
  LayerNorm<U> attention_norm;
  Attention<U> attention;
  LayerNorm<U> feed_forward_norm;
  FeedForward<U> feed_forward;
  static constexpr auto fields =
      Fields<&DecoderBlock::attention_norm, &DecoderBlock::attention,
             &DecoderBlock::feed_forward_norm, &DecoderBlock::feed_forward>{};

  static DecoderBlock like(Parameters<typename U::mesh_type>& make, const DecoderSizes& n) {
    DecoderBlock block;
    block.attention_norm = LayerNorm<U>::like(make, n.embed);
    block.attention = Attention<U>::like(
        make, {.embed = n.embed, .heads = n.heads, .groups = n.groups, .head_dim = n.head_dim});
    block.feed_forward_norm = LayerNorm<U>::like(make, n.embed);
    block.feed_forward = FeedForward<U>::like(make, n.embed, n.hidden);
    return block;
  }
};

template <class U> struct Decoder {
  Embedding<U> table;
  Embedding<U, logical::positions> positions;
  std::vector<DecoderBlock<U>> blocks;
  LayerNorm<U> norm;
  Dense<U, logical::embed, logical::vocabulary> head;
  static constexpr auto fields = Fields<&Decoder::table, &Decoder::positions, &Decoder::blocks,
                                        &Decoder::norm, &Decoder::head>{};

  static Decoder like(Parameters<typename U::mesh_type>& make, const DecoderSizes& n) {
    Decoder model;
    model.table = Embedding<U>::like(make, n.vocabulary, n.embed);
    model.positions = Embedding<U, logical::positions>::like(make, n.places, n.embed, 0.1);
    for (Index l = 0; l < n.layers; ++l) model.blocks.push_back(DecoderBlock<U>::like(make, n));
    model.norm = LayerNorm<U>::like(make, n.embed);
    model.head = Dense<U, logical::embed, logical::vocabulary>::like(make, n.embed, n.vocabulary);
    return model;
  }
};

/// How a decoder runs, whatever its weights are.
struct DecoderOptions {
  Dropout dropout = {};  ///< as in GShard, appendix A.2: of the input, residuals and attention
  /// That of all blocks, which is causal and drops as `dropout` says.
  AttentionOptions attention = {};
  /// Of which blocks a gradient keeps the arguments alone, and runs them again; those beyond its
  /// end are kept. Of those that are Open{} it is chosen (run/choose_of.hpp).
  std::vector<Recompute> again = {};
};

namespace detail {
/// x after a block whose attention is `attend(layer, normed x)`.
template <class U, TypedTensor A, class Attend>
A block_around(const DecoderBlock<U>& block, const A& x, const Dropout& drop, const Attend& attend,
               Where where) {
  const auto around = [&](const A& y, std::uint64_t place, const LayerNorm<U>& norm,
                          const auto& layer) {
    return residual(
        y, true, drop.at(place), [&](const A& z) { return layer_norm(norm, z, 1e-5, where); },
        layer, where);
  };
  const A first = around(x, 1, block.attention_norm,
                         [&](const A& seen) { return attend(block.attention, seen); });
  return around(first, 2, block.feed_forward_norm, [&](const A& seen) {
    return feed_forward(block.feed_forward, seen, fn::Gelu{}, where);
  });
}
}  // namespace detail

/// Returns x after a block: x is (batch, sequence, embed), the result like x; options.dropout is
/// that of attention and of both residuals; `valid` is as attention's. Communication: that of
/// attention and feed_forward: under TensorParallel an all-reduce of x's size each. Collective over
/// the mesh.
template <class U, TypedTensor A, class V>
A decoder_block(const DecoderBlock<U>& block, const A& x, const DecoderOptions& options,
                const V& valid, Where where = Where::here()) {
  AttentionOptions causal = options.attention;
  causal.causal = true;
  causal.dropout = options.dropout.at(0);
  return detail::block_around(
      block, x, options.dropout,
      [&](const Attention<U>& layer, const A& seen) {
        return attention(layer, seen, seen, causal, valid, where);
      },
      where);
}
template <class U, TypedTensor A>
A decoder_block(const DecoderBlock<U>& block, const A& x, const DecoderOptions& options = {},
                Where where = Where::here()) {
  return decoder_block(block, x, options, AllValid{}, where);
}

/// Returns the scores of the next tokens: ids is (batch, sequence), the result (batch, sequence,
/// vocabulary); `valid` is (batch, sequence), bool, or Documents of several texts in a row.
/// Communication: that of the layers; of blocks that run again once more. Collective over the mesh.
/// Throws ShapeError when the text is longer than the table of positions, UsageError for numbers of
/// documents without places.
template <class U, TypedTensor I, class V>
auto next_tokens(const Decoder<U>& model, const I& ids, const DecoderOptions& options,
                 const V& valid, Where where = Where::here()) {
  using X = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
  const auto layer = [&](const std::string& name) { return Layer(ids, name); };
  X x = [&] {
    const Layer scope = layer("embedding");
    const X rows = look_up<typename X::spec>(model.table, ids, where);
    return dropout(detail::with_positions(model.positions, rows, valid, 0, where),
                   options.dropout.at(0), where);
  }();
  for (std::size_t l = 0; l < model.blocks.size(); ++l) {
    const Layer scope = layer("block " + std::to_string(l));
    DecoderOptions own{options.dropout.at(l + 1), options.attention};
    const auto run = [own, valid, where](const DecoderBlock<U>& block, const X& given) {
      return decoder_block(block, given, own, valid, where);
    };
    const Recompute again = l < options.again.size() ? options.again[l] : Recompute(false);
    x = recompute_if(again, run, where)(model.blocks[l], x);
  }
  const Layer scope = layer("head");
  return dense<typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>>(
      model.head, layer_norm(model.norm, x, 1e-5, where), detail::NoActivation{}, where);
}
template <class U, TypedTensor I>
auto next_tokens(const Decoder<U>& model, const I& ids, const DecoderOptions& options = {},
                 Where where = Where::here()) {
  return next_tokens(model, ids, options, AllValid{}, where);
}

}  // namespace tessera
