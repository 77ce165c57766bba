// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A decoder that reads on: new tokens after those whose keys and values are kept.
///
///     auto kept = DecoderCache<Here>::like(mesh, model, 2, 5);           // two texts of up to 5 tokens
///     auto scores = decode(model, kept, ids, NewPlaces<Here>::at(mesh, {{0, 1}, {3, 4}}, 5), last);
///
/// Laws: the scores are those of next_tokens of the whole texts, to rounding, in any steps.
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/nn/decoder.hpp>
#include <tessera/nn/decoding/cache.hpp>

namespace tessera {

template <class U> struct DecoderCache {
  std::vector<KeyValueCache<U>> layers;
  static constexpr auto fields = Fields<&DecoderCache::layers>{};

  /// Returns empty caches for a model, `batch` texts and so many places. Communication: none.
  /// Collective over the mesh.
  static DecoderCache like(const ProcessMesh<typename U::mesh_type>& mesh, const Decoder<U>& model,
                           Index batch, Index places, Where where = Where::here()) {
    DecoderCache all;
    for (const DecoderBlock<U>& block : model.blocks)
      all.layers.push_back(KeyValueCache<U>::like(mesh,
                                                  {.batch = batch,
                                                   .places = places,
                                                   .groups = block.attention.key.extent(1),
                                                   .head_dim = block.attention.key.extent(2)},
                                                  where));
    return all;
  }
};

namespace detail {
/// Throws UsageError where a text has no beginning, or a token that the model has not, ShapeError
/// where its places, with all but the last token written, are more than the model's.
template <class U>
void require_text(const char* call, std::size_t number, const std::vector<std::int32_t>& begin,
                  Index most, const Decoder<U>& model, Where where) {
  const auto fail = [&](const std::string& what) {
    return std::string(call) + ": text " + std::to_string(number) + what;
  };
  if (begin.empty())
    throw UsageError(fail(" has no beginning, and a model needs a token to go on from; give at "
                          "least one, such as that which begins all texts"),
                     where);
  const Index tokens = model.table.weight.extent(0), places = model.positions.weight.extent(0),
              length = static_cast<Index>(begin.size());
  for (std::size_t i = 0; i < begin.size(); ++i)
    if (begin[i] < 0 || begin[i] >= tokens)
      throw UsageError(fail(" begins with token " + std::to_string(begin[i]) + " at place " +
                            std::to_string(i) + ", and the model has tokens 0 to " +
                            std::to_string(tokens - 1) + "; give one of them"),
                       where);
  if (most > places - length + 1)
    throw ShapeError(
        fail(" has " + std::to_string(length) + " tokens, and " + std::to_string(most) +
             " more are asked for, and the model has positions "
             "for " +
             std::to_string(places) +
             ", of which the last token written needs none; ask for fewer, or make a "
             "model with more"),
        where);
}

/// The new tokens after all blocks, (batch, new, embed).
template <class U, TypedTensor I>
auto decoded(const Decoder<U>& model, DecoderCache<U>& cache, const I& ids, const NewPlaces<U>& at,
             const AttentionOptions& options, Where where) {
  using X = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
  if (cache.layers.size() != model.blocks.size())
    throw ShapeError("decode: the model has " + std::to_string(model.blocks.size()) +
                         " layers, and the cache keeps keys and values of " +
                         std::to_string(cache.layers.size()) + "; make the cache for the model",
                     where);
  X x = [&] {
    const Layer scope(ids, "embedding");
    return X(look_up<typename X::spec>(model.table, ids, where) +
             look_up<typename X::spec>(model.positions, at.places, where));
  }();
  for (std::size_t l = 0; l < model.blocks.size(); ++l) {
    const Layer scope(ids, "block " + std::to_string(l));
    x = block_around(
        model.blocks[l], x, Dropout{},
        [&](const Attention<U>& layer, const X& seen) {
          return cached_attention(layer, seen, cache.layers[l], at, options, where);
        },
        where);
  }
  return x;
}

/// The scores of the token after x, (..., embed): (..., vocabulary).
template <class U, class... Rows, TypedTensor A>
auto scores_after(const Decoder<U>& model, const A& x, Where where) {
  return dense<typename U::template Spec<Rows..., logical::vocabulary>>(
      model.head, layer_norm(model.norm, x, 1e-5, where), NoActivation{}, where);
}
}  // namespace detail

/// Returns the scores of the token after each new one, (batch, new, vocabulary): ids is (batch,
/// new). Keeps the keys and values. Options: attention's rotary positions. Communication: that of
/// the layers, and of cached_attention. Collective over the mesh. Throws ShapeError when extents
/// disagree, or a token's place is beyond the model's positions.
template <class U, TypedTensor I>
auto decode(const Decoder<U>& model, DecoderCache<U>& cache, const I& ids, const NewPlaces<U>& at,
            const AttentionOptions& options = {}, Where where = Where::here()) {
  if (at.most >= model.positions.weight.extent(0))
    throw ShapeError("decode: a token stands at place " + std::to_string(at.most) +
                         ", and the model has positions for " +
                         std::to_string(model.positions.weight.extent(0)) +
                         " places, from 0 on; read fewer, or make a model with more",
                     where);
  const auto x = detail::decoded(model, cache, ids, at, options, where);
  const Layer scope(ids, "head");
  return detail::scores_after<U, logical::batch, logical::sequence>(model, x, where);
}
/// Those of the token after one of them alone, (batch, vocabulary): `last` (batch), int32, says
/// after which; those beyond it fill the row up, may be beyond the model's positions, and their
/// places are written anew when the text goes on.
template <class U, TypedTensor I, TypedTensor L>
auto decode(const Decoder<U>& model, DecoderCache<U>& cache, const I& ids, const NewPlaces<U>& at,
            const L& last, const AttentionOptions& options = {}, Where where = Where::here()) {
  const auto x = detail::decoded(model, cache, ids, at, options, where);
  const Layer scope(ids, "head");
  const auto row = take<"bsm,b->bm", typename U::template Spec<logical::batch, logical::embed>>(
      x, last, OutOfRange::clamp, where);
  return detail::scores_after<U, logical::batch>(model, row, where);
}

}  // namespace tessera
