// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An encoder-only Transformer, with norms after its layers (BERT, RoBERTa) or before them (ESM2),
/// and the head that says which token stands at a place that was masked.
///
///     auto model = Encoder<Here>::like(make, {.vocabulary = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 8, .layers = 2});
///     auto states = encode(model, ids, {}, valid);           // (batch, sequence, embed)
///     auto scores = masked_scores(model, states);            // (batch, sequence, vocabulary)
///     auto layers = hidden_states(model, ids, {}, valid);    // of the input and after each block
///     auto packed = encode(model, ids, {}, documents);       // of several texts in a row (nn/documents/documents.hpp)
///
/// Laws: equals Hugging Face's BertModel, RobertaModel and EsmModel of equal weights, to rounding
/// (its token_dropout=True is EncoderOptions::token_dropout); what stands at places that are not
/// valid changes no other place; documents that share rows have the states that each has alone, to
/// rounding; the same numbers under all rules and on every mesh, to rounding. Errors: those of the
/// operators that it is made of.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad/recompute.hpp>
#include <tessera/nn/attention.hpp>
#include <tessera/nn/detail/residual.hpp>
#include <tessera/nn/detail/where_valid.hpp>
#include <tessera/nn/embedding.hpp>
#include <tessera/nn/feed_forward.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/positions.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/comparison.hpp>
#include <tessera/op/reduce.hpp>

namespace tessera {

/// Which parameters an encoder has. places 0: no table of positions, as with rotary ones; kinds 0:
/// no table of kinds (BERT's token types).
struct EncoderSizes {
  Index vocabulary = 256, places = 256, kinds = 0, embed = 256, heads = 8, hidden = 1024,
        layers = 4;
  bool input_norm = true;  ///< of what the tables add up to
  bool last_norm = false;  ///< after the last block, where blocks begin with their norms
  bool head = true;        ///< for masked_scores
};

/// Attention and a feed-forward layer, whose products all have biases, and the norm of each.
template <class U> struct EncoderBlock {
  Attention<U> attention;
  LayerNorm<U> attention_norm;
  FeedForward<U> feed_forward;
  LayerNorm<U> feed_forward_norm;
  static constexpr auto fields =
      Fields<&EncoderBlock::attention, &EncoderBlock::attention_norm, &EncoderBlock::feed_forward,
             &EncoderBlock::feed_forward_norm>{};

  static EncoderBlock like(Parameters<typename U::mesh_type>& make, const EncoderSizes& n,
                           Where where = Where::here()) {
    EncoderBlock block;
    block.attention =
        Attention<U>::like(make, {.embed = n.embed, .heads = n.heads, .bias = true}, where);
    block.attention_norm = LayerNorm<U>::like(make, n.embed);
    block.feed_forward = FeedForward<U>::like(make, n.embed, n.hidden);
    block.feed_forward_norm = LayerNorm<U>::like(make, n.embed);
    return block;
  }
};

/// The head of a masked language model: its scores are products with the encoder's own table, plus
/// a bias. Source: Devlin et al., "BERT" (2019), section 3.1.
template <class U> struct MaskedHead {
  Dense<U, logical::embed, _> dense;
  LayerNorm<U> norm;
  typename U::template Tensor<logical::vocabulary> bias;
  static constexpr auto fields = Fields<&MaskedHead::dense, &MaskedHead::norm, &MaskedHead::bias>{};

  static MaskedHead like(Parameters<typename U::mesh_type>& make, Index embed, Index vocabulary) {
    MaskedHead head;
    head.dense = Dense<U, logical::embed, _>::like(make, embed, embed);
    head.norm = LayerNorm<U>::like(make, embed);
    head.bias = make.template tensor<typename U::template Tensor<logical::vocabulary>>(
        {vocabulary}, Initializer::zeros());
    return head;
  }
};

template <class U> struct Encoder {
  Embedding<U> table;
  std::optional<Embedding<U, logical::positions>> positions;
  std::optional<Embedding<U, _>> kinds;  ///< a few rows, which are never split
  std::optional<LayerNorm<U>> input_norm;
  std::vector<EncoderBlock<U>> blocks;
  std::optional<LayerNorm<U>> norm;
  std::optional<MaskedHead<U>> head;
  static constexpr auto fields =
      Fields<&Encoder::table, &Encoder::positions, &Encoder::kinds, &Encoder::input_norm,
             &Encoder::blocks, &Encoder::norm, &Encoder::head>{};

  static Encoder like(Parameters<typename U::mesh_type>& make, const EncoderSizes& n) {
    Encoder model;
    model.table = Embedding<U>::like(make, n.vocabulary, n.embed, 0.1);
    if (n.places > 0)
      model.positions = Embedding<U, logical::positions>::like(make, n.places, n.embed, 0.1);
    if (n.kinds > 0) model.kinds = Embedding<U, _>::like(make, n.kinds, n.embed, 0.1);
    if (n.input_norm) model.input_norm = LayerNorm<U>::like(make, n.embed);
    for (Index l = 0; l < n.layers; ++l) model.blocks.push_back(EncoderBlock<U>::like(make, n));
    if (n.last_norm) model.norm = LayerNorm<U>::like(make, n.embed);
    if (n.head) model.head = MaskedHead<U>::like(make, n.embed, n.vocabulary);
    return model;
  }
};

/// ESM2's input: rows of masked tokens are zeros, and the rows of a text are multiplied by (1 -
/// usual) over the share of its tokens that are not masked, so that a text without masks looks as
/// one in training does. Source: Lin et al. (2022), in the code of their model.
struct TokenDropout {
  Index mask = 0;       ///< the masked token's id
  double usual = 0.12;  ///< the share of masked tokens in training: eight tenths of 15 %
};

/// How an encoder runs, whatever its weights are.
struct EncoderOptions {
  bool norm_first = false;  ///< x + layer(norm(x)), as in ESM2; else norm(x + layer(x)), as in BERT
  double epsilon = 1e-5;    ///< of all norms
  Index first_place = 0;    ///< the row of the table of positions for the first token
  Dropout dropout = {};     ///< of the input, residuals and attention
  /// That of all blocks; .rotary turns queries and keys. It drops as `dropout` says.
  AttentionOptions attention = {};
  /// Of which blocks a gradient keeps the arguments alone, as in DecoderOptions.
  std::vector<Recompute> again = {};
  std::optional<TokenDropout> token_dropout = {};  ///< of texts that have rows of their own
};
/// Stands for texts all of whose tokens are of kind 0.
struct OneKind {};

/// Returns x after a block: x is (batch, sequence, embed), the result like x; `valid`, if given, is
/// (batch, sequence), bool, or Documents. Communication: that of attention and feed_forward: under
/// TensorParallel an all-reduce of x's size each. Collective over the mesh. Source: Devlin et al.
/// (2019); norms before the layers as in Lin et al., "Language models of protein sequences at the
/// scale of evolution" (2022).
template <class U, TypedTensor A, class V = AllValid>
A encoder_block(const EncoderBlock<U>& block, const A& x, const EncoderOptions& options = {},
                const V& valid = {}, Where where = Where::here()) {
  const Dropout& drop = options.dropout;
  AttentionOptions own = options.attention;
  own.dropout = drop.at(0);
  const auto around = [&](const A& y, std::uint64_t place, const LayerNorm<U>& norm,
                          const auto& layer) {
    return detail::residual(
        y, options.norm_first, drop.at(place),
        [&](const A& z) { return layer_norm(norm, z, options.epsilon, where); }, layer, where);
  };
  const A first = around(x, 1, block.attention_norm, [&](const A& seen) {
    return attention(block.attention, seen, seen, own, valid, where);
  });
  return around(first, 2, block.feed_forward_norm, [&](const A& seen) {
    return feed_forward(block.feed_forward, seen, fn::Gelu{}, where);
  });
}

namespace fn {
/// (1 - usual) length / kept: the factor of a text.
template <class T> struct KeptTokens {
  static constexpr std::string_view name = "scale of kept tokens";
  static constexpr Slope slope = Slope::zero;
  double usual;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(std::int64_t kept, std::int64_t length) const {
    return tessera::detail::from_double<T>((1 - usual) * static_cast<double>(length) /
                                           static_cast<double>(max_of(kept, Index{1})));
  }
};
}  // namespace fn

namespace detail {
/// Returns x, (batch, sequence, embed), after token dropout. Throws UsageError for documents.
template <TypedTensor X, TypedTensor I, class V>
X without_masked(const X& x, const I& ids, const TokenDropout& drop, const V& valid, Where where) {
  if constexpr (by_documents<V>) {
    throw UsageError(
        "encode: token dropout scales a text by its share of masked tokens, and rows here hold "
        "several documents; give each text a row of its own, or no EncoderOptions::token_dropout",
        where);
  } else {
    using T = typename X::value_type;
    const auto kept = not_equal(ids, static_cast<typename I::value_type>(drop.mask), where);
    const auto count = [&](const auto& of) {
      if constexpr (std::is_same_v<V, AllValid>)
        return sum<"bs->b">(of, where);
      else
        return sum<"bs->b">(tessera::where(valid, of, false, where), where);
    };
    const auto scale =
        map(fn::KeptTokens<T>{drop.usual}, count(kept), count(equal(ids, ids, where)), where);
    return map<"abz,a->abz", typename X::spec>(fn::Multiply{}, where_valid(x, kept, where), scale,
                                               where);
  }
}

/// Returns the input of the first block, (batch, sequence, embed).
template <class X, class U, TypedTensor I, class V, class K>
X encoder_input(const Encoder<U>& model, const I& ids, const EncoderOptions& options,
                const V& valid, const K& kinds, Where where) {
  X x = look_up<typename X::spec>(model.table, ids, where);
  if (options.token_dropout) x = without_masked(x, ids, *options.token_dropout, valid, where);
  if (model.positions) x = with_positions(*model.positions, x, valid, options.first_place, where);
  if constexpr (std::is_same_v<K, OneKind>) {
    if (model.kinds)
      x = X(map<"abz,z->abz", typename X::spec>(
          fn::Add{}, x, squeeze<0>(slice<0>(model.kinds->weight, {0}, {1}, {}, where), where),
          where));
  } else {
    if (!model.kinds)
      throw UsageError(
          "encode: kinds of tokens are given, and the encoder has no table of kinds; give none, or "
          "make it with EncoderSizes{.kinds = 2}",
          where);
    x = x + look_up<typename X::spec>(*model.kinds, kinds, where);
  }
  if (model.input_norm) x = layer_norm(*model.input_norm, x, options.epsilon, where);
  return dropout(x, options.dropout.at(0), where);
}

/// Returns x after blocks, (batch, sequence, embed). Adds what each block is given to `kept`,
/// unless that is null.
template <class U, TypedTensor X, class V>
X encoder_blocks(const std::vector<EncoderBlock<U>>& blocks, X x, const EncoderOptions& options,
                 const V& valid, Where where, std::vector<X>* kept) {
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    if (kept != nullptr) kept->push_back(x);
    const Layer scope(x, "block " + std::to_string(l));
    EncoderOptions own = options;
    own.dropout = options.dropout.at(l + 1);
    const auto run = [own, valid, where](const EncoderBlock<U>& block, const X& given) {
      return encoder_block(block, given, own, valid, where);
    };
    const Recompute again = l < options.again.size() ? options.again[l] : Recompute(false);
    x = recompute_if(again, run, where)(blocks[l], x);
  }
  return x;
}

/// The states of tokens.
template <class U>
using States = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;

/// Returns what comes after the last norm; `kept` as above.
template <class U, TypedTensor I, class V, class K>
States<U> encode(const Encoder<U>& model, const I& ids, const EncoderOptions& options,
                 const V& valid, const K& kinds, Where where, std::vector<States<U>>* kept) {
  States<U> x = [&] {
    const Layer scope(ids, "embedding");
    return encoder_input<States<U>>(model, ids, options, valid, kinds, where);
  }();
  x = encoder_blocks(model.blocks, std::move(x), options, valid, where, kept);
  if (!model.norm) return x;
  const Layer scope(ids, "norm");
  return layer_norm(*model.norm, x, options.epsilon, where);
}
}  // namespace detail

/// Returns the states of tokens: ids is (batch, sequence), integers, the result (batch, sequence,
/// embed); `valid`, if given, is (batch, sequence), bool, false where a text has ended: states
/// there mean nothing, or Documents of several texts in a row; `kinds`, if given, is (batch,
/// sequence), integers. Communication: that of the layers; of blocks that run again once more; with
/// token dropout, where the sequence is split, two all-reduces of a number of each text. Collective
/// over the mesh. Throws ShapeError when the text is longer than the table of positions, UsageError
/// for kinds without their table, for numbers of documents without places where there is a table of
/// positions, and for documents with token dropout.
template <class U, TypedTensor I, class V = AllValid, class K = OneKind>
auto encode(const Encoder<U>& model, const I& ids, const EncoderOptions& options = {},
            const V& valid = {}, const K& kinds = {}, Where where = Where::here()) {
  return detail::encode(model, ids, options, valid, kinds, where, nullptr);
}

/// Returns the input of the first block and the states after each block, those after the last as
/// encode returns them. Communication, errors: as encode.
template <class U, TypedTensor I, class V = AllValid, class K = OneKind>
auto hidden_states(const Encoder<U>& model, const I& ids, const EncoderOptions& options = {},
                   const V& valid = {}, const K& kinds = {}, Where where = Where::here()) {
  std::vector<detail::States<U>> states;
  const auto last = detail::encode(model, ids, options, valid, kinds, where, &states);
  states.push_back(last);
  return states;
}

/// Returns the scores of every token at every place: states is (batch, sequence, embed), the result
/// (batch, sequence, vocabulary), split by vocabulary as the table is; softmax gives probabilities.
/// Communication: that of two products and a norm. Collective over the mesh. Throws UsageError for
/// an encoder without a head.
template <class U, TypedTensor A>
auto masked_scores(const Encoder<U>& model, const A& states, const EncoderOptions& options = {},
                   Where where = Where::here()) {
  if (!model.head)
    throw UsageError(
        "masked_scores: the encoder has no head; make it with EncoderSizes{.head = true}, or read "
        "the weights of one that has",
        where);
  const Layer scope(states, "head");
  const A seen = layer_norm(
      model.head->norm, A(dense<typename A::spec>(model.head->dense, states, fn::Gelu{}, where)),
      options.epsilon, where);
  const auto scores =
      logits<typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>>(
          model.table, seen, where);
  return detail::biased(scores, std::optional(model.head->bias), where);
}

}  // namespace tessera
