// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An encoder-decoder that writes: the keys and values of a source are computed once, those of the
/// target are kept as it grows.
///
///     const auto states = encode(model, source, {}, valid).states;
///     auto kept = TranslatorCache<Here>::like(model, states, 5, valid);            // for 5 tokens of each target
///     auto scores = decode(model, kept, ids, NewPlaces<Here>::at(mesh, {{0}, {0}}, 5));   // (batch, new, vocabulary)
///
/// Laws: the scores are those of next_tokens of the whole targets, to rounding, in any steps, where
/// experts drop nothing: so they do here, whatever the options say. Nothing that is kept is ever
/// gathered.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/nn/decoding/cache.hpp>
#include <tessera/nn/translation/translate.hpp>

namespace tessera {

/// What is kept for a batch of targets and their sources, of each layer of the decoder.
template <class U> struct TranslatorCache {
  using Mask = typename U::template Of<bool, logical::batch, logical::cache>;
  std::vector<KeyValueCache<U>> target;
  std::vector<KeyValueCache<U>> source;
  std::optional<Mask> source_valid;
  static constexpr auto fields =
      Fields<&TranslatorCache::target, &TranslatorCache::source, &TranslatorCache::source_valid>{};

  /// Returns caches for targets of so many places, and the keys and values of states, (batch,
  /// sequence, embed), of which `valid`, if given, (batch, sequence), bool, says which are: each
  /// text has a row of its own.
  /// Communication: that of two products a layer. Collective over the mesh.
  template <TypedTensor A, class V = AllValid>
  static TranslatorCache like(const Translator<U>& model, const A& states, Index places,
                              const V& valid = {}, Where where = Where::here());
};

namespace detail {
/// Returns the options with which texts are written: without dropout, and with experts that get all
/// tokens, of which none then depends on others.
inline TranslatorOptions dropping_nothing(TranslatorOptions options) {
  options.dropout = {};
  options.experts.capacity_factor = 0;
  options.experts.texts = 1;
  options.experts.draw = {};
  return options;
}
/// Returns the keys and values of a layer's attention to states.
template <class U, TypedTensor A>
KeyValueCache<U> keys_of_source(const Attention<U>& layer, const A& states, Where where) {
  using Kept = typename KeyValueCache<U>::Tensor;
  const auto product = [&](const auto& weight, const auto& bias) {
    return biased(Kept(einsum<"btm,mgd->btgd", typename Kept::spec>(states, weight, where)), bias,
                  where);
  };
  return {product(layer.key, layer.key_bias), product(layer.value, layer.value_bias)};
}
}  // namespace detail

template <class U>
template <TypedTensor A, class V>
TranslatorCache<U> TranslatorCache<U>::like(const Translator<U>& model, const A& states,
                                            Index places, const V& valid, Where where) {
  constexpr bool own_rows = !detail::by_documents<V>;
  static_assert(
      own_rows,
      "[tessera] a text that is written grows in a row of its own, and the mask of its "
      "source is of documents that share rows; give each source a row, and a mask of bool");
  TranslatorCache all;
  if constexpr (own_rows) {
    using X = typename TranslatorStates<U>::X;
    const ProcessMesh<typename U::mesh_type> mesh(states.core().mesh());
    const X seen = detail::kept(X(states), valid, where);
    for (const TranslatorBlock<U>& block : model.decoder.blocks) {
      all.target.push_back(KeyValueCache<U>::like(mesh,
                                                  {.batch = states.extent(0),
                                                   .places = places,
                                                   .groups = block.attention.key.extent(1),
                                                   .head_dim = block.attention.key.extent(2)},
                                                  where));
      all.source.push_back(detail::keys_of_source(*block.source_attention, seen, where));
    }
    if constexpr (!std::is_same_v<V, AllValid>)
      all.source_valid = reshard<typename Mask::spec>(valid, where);
  }
  return all;
}

namespace detail {
/// The new tokens after all blocks, (batch, new, embed).
template <class U, TypedTensor I>
auto decoded(const Translator<U>& model, TranslatorCache<U>& cache, const I& ids,
             const NewPlaces<U>& at, TranslatorOptions options, Where where) {
  using X = typename TranslatorStates<U>::X;
  const std::size_t layers = model.decoder.blocks.size();
  if (cache.target.size() != layers)
    throw ShapeError("decode: the model has " + std::to_string(layers) +
                         " layers, and the cache keeps keys and values of " +
                         std::to_string(cache.target.size()) + "; make the cache for the model",
                     where);
  options = dropping_nothing(options);
  const TranslatorStack<U>& stack = model.decoder;
  X x = [&] {
    const Layer scope(ids, "target");
    X y = look_up<typename X::spec>(model.target, ids, where);
    if (options.embedding_scale != 1)
      y = y * from_double<typename X::value_type>(options.embedding_scale);
    if (stack.positions) {
      using Given = std::decay_t<decltype(at.places)>;
      const Given rows = options.first_place == 0
                             ? at.places
                             : Given(at.places + static_cast<std::int32_t>(options.first_place));
      y = y + look_up<typename X::spec>(*stack.positions, rows, where);
    }
    return stack.input_norm ? normed(*stack.input_norm, y, options.epsilon, where) : y;
  }();
  for (std::size_t l = 0; l < layers; ++l) {
    const Layer scope(ids, "decoder " + std::to_string(l));
    x = translator_block_around(
            stack.blocks[l], x, options, AllValid{}, where,
            [&](const Attention<U>& layer, const X& y) {
              return cached_attention(layer, y, cache.target[l], at, options.attention,
                                      stack.relative, where);
            },
            [&](const Attention<U>& layer, const X& y) {
              return cache.source_valid
                         ? attention_to_kept(layer, y, cache.source[l], *cache.source_valid, where)
                         : attention_to_kept(layer, y, cache.source[l], AllValid{}, where);
            })
            .states;
  }
  const Layer scope(ids, "decoder norm");
  return stack.norm ? normed(*stack.norm, x, options.epsilon, where) : x;
}
/// Throws ShapeError where a token's place is beyond the model's positions.
template <class U>
void require_places(const Translator<U>& model, Index most, const TranslatorOptions& options,
                    Where where) {
  if (!model.decoder.positions) return;
  const Index there = model.decoder.positions->weight.extent(0) - options.first_place;
  if (most >= there)
    throw ShapeError("decode: a token stands at place " + std::to_string(most) +
                         ", and the model has positions for " + std::to_string(there) +
                         " places, from 0 on; read fewer, or make a model with more",
                     where);
}
}  // namespace detail

/// Returns the scores of the token after each new one of the targets, (batch, new, vocabulary): ids
/// is (batch, new). Keeps the keys and values. Communication: that of the layers, and of
/// cached_attention. Collective over the mesh. Throws ShapeError when extents disagree, or a
/// token's place is beyond the model's positions.
template <class U, TypedTensor I>
auto decode(const Translator<U>& model, TranslatorCache<U>& cache, const I& ids,
            const NewPlaces<U>& at, const TranslatorOptions& options = {},
            Where where = Where::here()) {
  detail::require_places(model, at.most, options, where);
  using Spec = typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>;
  return detail::translator_scores<Spec>(
      model, detail::decoded(model, cache, ids, at, options, where), where);
}
/// Those of the token after one of them alone, (batch, vocabulary): `last` (batch), int32, says
/// after which.
template <class U, TypedTensor I, TypedTensor L>
auto decode(const Translator<U>& model, TranslatorCache<U>& cache, const I& ids,
            const NewPlaces<U>& at, const L& last, const TranslatorOptions& options = {},
            Where where = Where::here()) {
  const auto x = detail::decoded(model, cache, ids, at, options, where);
  const auto row = take<"bsm,b->bm", typename U::template Spec<logical::batch, logical::embed>>(
      x, last, OutOfRange::clamp, where);
  return detail::translator_scores<typename U::template Spec<logical::batch, logical::vocabulary>>(
      model, row, where);
}

}  // namespace tessera
