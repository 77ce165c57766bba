// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What an encoder-decoder makes of texts: the states of a source, the scores of a target's next
/// tokens, and the loss of a batch.
///
///     const auto valid = places_before<Here>(lengths, 5);                // lengths is (batch), of sources
///     const auto made = translate(model, source, target, {}, valid);     // made.scores: (batch, sequence, vocabulary)
///     auto loss = translation_loss(made, next, {.smoothing = 0.1, .balance = 0.01}, target_valid);
///     auto states = encode(model, source, {}, valid).states;             // once; then next_tokens(model, states, target)
///
/// Laws: equals Hugging Face's T5 and BART of equal weights, to rounding, where T5's weights of
/// queries are multiplied by sqrt(head_dim), since it does not divide scores by that, and, where
/// tables are tied, the scale of its decoder's last norm by 1 / sqrt(embed); the scores of a place
/// depend on the source, its token and those before it alone, with experts of a capacity_factor of
/// 0 to rounding; what stands at places that are not valid, NaN too, changes no other place and no
/// gradient; the same numbers under all rules and on every mesh, to rounding. Errors: those of the
/// operators that it is made of.
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/nn/cross_entropy.hpp>
#include <tessera/nn/detail/residual.hpp>
#include <tessera/nn/experts/expert_layer.hpp>
#include <tessera/nn/translation/translator.hpp>

namespace tessera {

/// What the experts of a model say beside what they make; nothing where there are none.
template <class U> struct ExpertReport {
  using Output =
      ExpertOutput<typename U::template Tensor<logical::batch, logical::sequence, logical::embed>>;
  using Load = decltype(Output::load);
  std::optional<decltype(Output::z_loss)> balance_loss, z_loss;  ///< the sums over layers
  std::optional<decltype(Output::dropped)> dropped;              ///< the sum over layers
  std::vector<Load> load;                                        ///< of each layer of experts
  static constexpr auto fields = Fields<&ExpertReport::balance_loss, &ExpertReport::z_loss,
                                        &ExpertReport::dropped, &ExpertReport::load>{};

  /// Adds what further layers say.
  void add(const ExpertReport& more) {
    const auto sum = [](auto& to, const auto& x) {
      if (x) to = to ? *to + *x : *x;
    };
    sum(balance_loss, more.balance_loss);
    sum(z_loss, more.z_loss);
    sum(dropped, more.dropped);
    load.insert(load.end(), more.load.begin(), more.load.end());
  }
};

/// States (batch, sequence, embed) after some blocks.
template <class U> struct TranslatorStates {
  using X = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
  X states;
  ExpertReport<U> experts;
  static constexpr auto fields = Fields<&TranslatorStates::states, &TranslatorStates::experts>{};
};
/// Scores (batch, sequence, vocabulary) of the next tokens.
template <class U> struct TranslatorScores {
  typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary> scores;
  ExpertReport<U> experts;
  static constexpr auto fields = Fields<&TranslatorScores::scores, &TranslatorScores::experts>{};
};

namespace fn {
/// Whether place i[1] comes before a text's end.
struct BeforeEnd {
  static constexpr std::string_view name = "before the end";
  KOKKOS_FUNCTION bool operator()(std::int32_t length, std::int32_t place) const {
    return place < length;
  }
};
}  // namespace fn

/// Returns which places of texts have a token, (batch, sequence): lengths is (batch), int32, and
/// `sequence` the places of a row. Communication: none. Collective over the mesh.
template <class U, TypedTensor L>
auto places_before(const L& lengths, Index sequence, Where where = Where::here()) {
  using Line = typename U::template Of<std::int32_t, logical::sequence>;
  const auto places =
      from_function<Line>(detail::mesh_like(lengths), {sequence}, fn::RowMajorNumber{}, where);
  return map<"b,s->bs", typename U::template Spec<logical::batch, logical::sequence>>(
      fn::BeforeEnd{}, lengths, places, where);
}

namespace detail {
/// Of a block: its options, with draws of its own; `place` is its number among all blocks, from 1.
inline TranslatorOptions for_block(TranslatorOptions options, std::uint64_t place) {
  options.dropout = options.dropout.at(place);
  if (options.experts.draw)
    options.experts.draw->seed = Dropout::mixed(options.experts.draw->seed ^ place);
  return options;
}
/// How a text attends to another one.
inline AttentionOptions to_source(const AttentionOptions& options, const Dropout& drop) {
  AttentionOptions own = options;
  own.causal = own.rotary = false;
  own.first = own.window = 0;
  own.dropout = drop;
  return own;
}

/// Returns x after a feed-forward layer or experts, beside its residual.
template <class U, class X, class V>
TranslatorStates<U> after_feed_forward(const TranslatorBlock<U>& block, const X& x,
                                       const TranslatorOptions& options, const V& valid,
                                       Where where) {
  TranslatorStates<U> to;
  const auto norm = [&](const X& y) {
    return normed(block.feed_forward_norm, y, options.epsilon, where);
  };
  const auto run = [&](const X& y, const auto& activation) {
    if (block.feed_forward) return feed_forward(*block.feed_forward, y, activation, where);
    const auto made = expert_layer(*block.experts, y, options.experts, activation,
                                   valid_of(mask_of_keys(valid), where), where);
    to.experts = {made.balance_loss, made.z_loss, made.dropped, {made.load}};
    return made.output;
  };
  to.states = residual(
      x, options.norm_first, options.dropout.at(3), norm,
      [&](const X& y) { return options.gelu ? run(y, fn::Gelu{}) : run(y, fn::Relu{}); }, where);
  return to;
}
/// Returns x after a block whose attention is `attend(layer, y)`, and that of a decoder to the
/// source `attend_source(layer, y)`.
template <class U, class X, class V, class Attend, class AttendSource>
TranslatorStates<U> translator_block_around(const TranslatorBlock<U>& block, const X& x,
                                            const TranslatorOptions& options, const V& valid,
                                            Where where, const Attend& attend,
                                            const AttendSource& attend_source) {
  const auto around = [&](const X& y, std::uint64_t place, const Norm<U>& norm, const auto& layer) {
    return residual(
        y, options.norm_first, options.dropout.at(place),
        [&](const X& z) { return normed(norm, z, options.epsilon, where); }, layer, where);
  };
  X y = around(x, 1, block.attention_norm, [&](const X& z) { return attend(block.attention, z); });
  if (block.source_attention)
    y = around(y, 2, *block.source_norm,
               [&](const X& z) { return attend_source(*block.source_attention, z); });
  return after_feed_forward(block, y, options, valid, where);
}

/// Returns the input of a stack's first block. What is not valid is zero, and finite from there on.
template <class X, class U, class I, class V>
X translator_input(const Embedding<U>& table, const TranslatorStack<U>& stack, const I& ids,
                   const TranslatorOptions& options, const Dropout& drop, const V& valid,
                   Where where) {
  X x = kept(look_up<typename X::spec>(table, ids, where), valid_of(mask_of_keys(valid), where),
             where);
  if (options.embedding_scale != 1)
    x = x * from_double<typename X::value_type>(options.embedding_scale);
  if (stack.positions) x = with_positions(*stack.positions, x, valid, options.first_place, where);
  if (stack.input_norm) x = normed(*stack.input_norm, x, options.epsilon, where);
  return dropout(x, drop, where);
}

/// Returns which places of a source those of a target see, as the masks of both say.
template <class V, class W> auto source_mask(const V& valid, const W& source_valid) {
  if constexpr (by_documents<V> && by_documents<W>)
    return CrossDocuments{mask_of_queries(valid), mask_of_keys(source_valid)};
  else
    return source_valid;
}

/// Returns x after the blocks of a stack; number `first` of all is its first one. `source` are the
/// encoder's states for a decoder, of which source_valid says which are.
template <class U, class X, class V, class W>
TranslatorStates<U> through_stack(const TranslatorStack<U>& stack, const X& x,
                                  const std::optional<X>& source, const TranslatorOptions& options,
                                  std::size_t first, const V& valid, const W& source_valid,
                                  Where where) {
  TranslatorStates<U> to{x, {}};
  for (std::size_t l = 0; l < stack.blocks.size(); ++l) {
    const Layer scope(x, (source ? "decoder " : "encoder ") + std::to_string(l));
    const TranslatorOptions own = for_block(options, first + l + 1);
    const auto run = [own, valid, source_valid, where](
                         const TranslatorBlock<U>& block, const X& given,
                         const std::optional<X>& seen,
                         const std::optional<RelativeBias<U>>& relative) {
      AttentionOptions to_itself = own.attention;
      to_itself.causal = seen.has_value();
      to_itself.dropout = own.dropout.at(0);
      return translator_block_around(
          block, given, own, valid, where,
          [&](const Attention<U>& layer, const X& y) {
            return attention(layer, y, y, to_itself, valid, relative, where);
          },
          [&](const Attention<U>& layer, const X& y) {
            return attention(layer, y, *seen, to_source(own.attention, own.dropout.at(4)),
                             source_mask(valid, source_valid), where);
          });
    };
    const Recompute again =
        first + l < options.again.size() ? options.again[first + l] : Recompute(false);
    const TranslatorStates<U> made =
        recompute_if(again, run, where)(stack.blocks[l], to.states, source, stack.relative);
    to.states = made.states;
    to.experts.add(made.experts);
  }
  const Layer scope(x, source ? "decoder norm" : "encoder norm");
  if (stack.norm) to.states = normed(*stack.norm, to.states, options.epsilon, where);
  return to;
}

/// Returns the scores of states (..., embed), split by vocabulary as the table is.
template <class Spec, class U, TypedTensor A>
auto translator_scores(const Translator<U>& model, const A& states, Where where) {
  const Layer scope(states, "scores");
  return model.head ? dense<Spec>(*model.head, states, NoActivation{}, where)
                    : logits<Spec>(model.target, states, where);
}
}  // namespace detail

/// Returns the states of sources, and what experts say: ids is (batch, sequence), integers;
/// `valid`, if given, is (batch, sequence), bool, false where a text has ended: states there mean
/// nothing, or Documents of several texts in a row. Communication: that of the layers; of blocks
/// that run again once more. Collective over the mesh. Throws ShapeError when the text is longer
/// than the table of positions.
template <class U, TypedTensor I, class V = AllValid>
TranslatorStates<U> encode(const Translator<U>& model, const I& ids,
                           const TranslatorOptions& options = {}, const V& valid = {},
                           Where where = Where::here()) {
  using X = typename TranslatorStates<U>::X;
  const X x = [&] {
    const Layer scope(ids, "source");
    return detail::translator_input<X>(model.source_table(), model.encoder, ids, options,
                                       options.dropout.at(0), valid, where);
  }();
  return detail::through_stack(model.encoder, x, std::optional<X>(), options, 0, valid, AllValid{},
                               where);
}

/// Returns the scores of the tokens that follow each one of a target, and what the decoder's
/// experts say: states are the encoder's, (batch, places, embed), ids (batch, sequence);
/// `source_valid` and `target_valid`, if given, are bool, (batch, places) and (batch, sequence), or
/// both are Documents: then a target sees the source of its number.
/// Communication, errors: as encode.
template <class U, TypedTensor A, TypedTensor I, class W = AllValid, class V = AllValid>
TranslatorScores<U> next_tokens(const Translator<U>& model, const A& states, const I& ids,
                                const TranslatorOptions& options = {}, const W& source_valid = {},
                                const V& target_valid = {}, Where where = Where::here()) {
  static_assert(
      detail::by_documents<V> == detail::by_documents<W>,
      "[tessera] sources and targets are both packed, or neither is; give Documents of both");
  using X = typename TranslatorStates<U>::X;
  const std::size_t first = model.encoder.blocks.size();
  const X x = [&] {
    const Layer scope(ids, "target");
    return detail::translator_input<X>(model.target, model.decoder, ids, options,
                                       options.dropout.at(first + model.decoder.blocks.size() + 1),
                                       target_valid, where);
  }();
  auto made = detail::through_stack(model.decoder, x, std::optional<X>(states), options, first,
                                    target_valid, source_valid, where);
  using Spec = typename decltype(TranslatorScores<U>::scores)::spec;
  return {detail::translator_scores<Spec>(model, made.states, where), std::move(made.experts)};
}

/// Returns the scores of the tokens that follow each one of a target, and what all experts say:
/// source and target are (batch, sequence), integers, of lengths of their own. Communication,
/// errors: as encode.
template <class U, TypedTensor I, TypedTensor J, class W = AllValid, class V = AllValid>
TranslatorScores<U> translate(const Translator<U>& model, const I& source, const J& target,
                              const TranslatorOptions& options = {}, const W& source_valid = {},
                              const V& target_valid = {}, Where where = Where::here()) {
  const TranslatorStates<U> encoded = encode(model, source, options, source_valid, where);
  TranslatorScores<U> made =
      next_tokens(model, encoded.states, target, options, source_valid, target_valid, where);
  ExpertReport<U> all = encoded.experts;
  all.add(made.experts);
  made.experts = std::move(all);
  return made;
}

/// What a loss has beside the likelihood.
struct TranslationLoss {
  double smoothing = 0;   ///< of the targets (CrossEntropyOptions)
  double z = 0;           ///< of the scores
  double balance = 0.01;  ///< times the experts' balance_loss
  double gate_z = 0.001;  ///< times their z_loss
};

/// Returns the mean cross-entropy of the scores over the places that count, those of all documents,
/// plus the experts' losses, a scalar: `next` are the tokens that follow, (batch, sequence).
/// Communication: that of cross_entropy and mean_where. Collective over the mesh. Throws as
/// cross_entropy.
template <class U, TypedTensor I, class V = AllValid>
auto translation_loss(const TranslatorScores<U>& made, const I& next,
                      const TranslationLoss& how = {}, const V& valid = {},
                      Where where = Where::here()) {
  const auto losses =
      cross_entropy(made.scores, next, {.smoothing = how.smoothing, .z = how.z}, where);
  using Real = typename decltype(losses)::value_type;
  using Scalar = std::decay_t<decltype(*made.experts.z_loss)>;
  Scalar loss = [&] {
    if constexpr (std::is_same_v<V, AllValid>)
      return Scalar(mean(losses, where));
    else
      return Scalar(
          mean_where(losses, detail::valid_of(detail::mask_of_keys(valid), where), where));
  }();
  const auto add = [&](const std::optional<Scalar>& more, double share) {
    if (more && share != 0) loss = loss + *more * detail::from_double<Real>(share);
  };
  add(made.experts.balance_loss, how.balance);
  add(made.experts.z_loss, how.gate_z);
  return loss;
}

/// Moves the biases by which a model's experts are chosen against the loads of a step, outside the
/// gradient: `made` is what the step reports (balanced_bias). Communication: none. Collective over
/// the mesh. Throws UsageError when the report is of other layers.
template <class U>
void balance_choices(Translator<U>& model, const ExpertReport<U>& made, double rate,
                     Where where = Where::here()) {
  std::size_t layers = 0, layer = 0;
  for (const TranslatorStack<U>* stack : {&model.encoder, &model.decoder})
    for (const TranslatorBlock<U>& block : stack->blocks) layers += block.experts.has_value();
  if (layers != made.load.size())
    throw UsageError("balance_choices: the model has " + std::to_string(layers) +
                         " layers of experts, and the report is of " +
                         std::to_string(made.load.size()) + "; give what translate reports",
                     where);
  for (TranslatorStack<U>* stack : {&model.encoder, &model.decoder})
    for (TranslatorBlock<U>& block : stack->blocks) {
      if (!block.experts) continue;
      if (block.experts->choice_bias)
        block.experts->choice_bias =
            balanced_bias(*block.experts->choice_bias, made.load[layer], rate, where);
      ++layer;
    }
}

}  // namespace tessera
