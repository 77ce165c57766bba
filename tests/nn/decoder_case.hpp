// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A small decoder, of sizes that no mesh divides evenly: its loss and gradients.
///
///     Numbers all = nn_test::decoder_numbers<TensorParallel<data, model>>(mesh);
#include <vector>

#include "nn/layer_cases.hpp"
#include "nn/packed_case.hpp"

namespace nn_test {

using Numbers = std::vector<double>;

struct Text {
  Index batch = 5, sequence = 4;
};
inline const DecoderOptions with_dropout{.dropout = {.rate = 0.1, .seed = 8, .step = 3}};
/// Whole tokens, their targets, and the loss of a step with dropout as a function of the weights.
template <class R>
auto decoder_loss(const ProcessMesh<Grid>& mesh, Index vocabulary, Text text,
                  const DecoderOptions& options = with_dropout) {
  using Tokens = TokenIds<On<R>>;
  const Extents extents{text.batch, text.sequence};
  return [options, ids = from_function<Tokens>(mesh, extents, Ids{vocabulary}),
          targets = from_function<Tokens>(mesh, extents, Ids{max_of(Index{1}, vocabulary - 2)})](
             const auto& w) { return mean(cross_entropy(next_tokens(w, ids, options), targets)); };
}
inline constexpr DecoderSizes ragged_decoder{
    .vocabulary = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 7, .layers = 2};

/// The loss, and all gradients.
template <class R>
Numbers decoder_numbers(const ProcessMesh<Grid>& mesh, const DecoderSizes& sizes = ragged_decoder,
                        Text text = {}, const DecoderOptions& options = with_dropout) {
  Parameters<Grid> make(mesh, 3);
  const auto weights = Decoder<On<R>>::like(make, sizes);
  const auto loss = decoder_loss<R>(mesh, sizes.vocabulary, text, options);
  const auto [value_of, gradient] = value_and_grad(loss)(weights);
  Numbers all{value(value_of)};
  append(all, gradient);
  return all;
}

/// The scores of texts, packed or not, and all gradients.
template <class R>
Values packed_decoder_numbers(const ProcessMesh<Grid>& mesh, const Packing& packing, bool documents,
                              const DecoderOptions& options = {}) {
  DecoderSizes sizes = ragged_decoder;
  sizes.places = 6;
  Parameters<Grid> make(mesh, 3);
  return packed_numbers<R>(mesh, Decoder<On<R>>::like(make, sizes), packing, documents, 11,
                           [&](const auto& w, const auto& ids, const auto& mask) {
                             return next_tokens(w, ids, options, mask);
                           });
}

}  // namespace nn_test
