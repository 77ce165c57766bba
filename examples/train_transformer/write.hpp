// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Text that the model goes on with: each character is read once, and its keys and values are kept.
///
///     std::vector<Id> text = write<U>(mesh, weights, sizes, beginning, 300);   // 300 characters
///
/// Laws: a character's scores are those of the text before it since the model began to read it
/// last, to rounding: it reads `context` characters, then goes on from the last half of them. Every
/// process gives, and gets, the same.
#include <algorithm>
#include <string>
#include <vector>

#include <tessera/nn/decoding/generate.hpp>

#include "model.hpp"

namespace train_transformer {

/// Reads texts on: reader(ids, at, last) are the scores (batch, vocabulary) of the character after
/// `last` of each row, as those of decode(). No expert is too full for a character.
template <class U> class Reader {
 public:
  Reader(const ProcessMesh<Grid>& mesh, const Model<U>& model, const Sizes& n, Index batch,
         Index places)
      : model_(model), n_(n) {
    n_.capacity = static_cast<double>(std::max<Index>(1, n.experts));
    for (const Block<U>& block : model.blocks)
      kept_.push_back(KeyValueCache<U>::like(mesh, {.batch = batch,
                                                    .places = places,
                                                    .groups = block.attention.key.extent(1),
                                                    .head_dim = block.attention.key.extent(2)}));
  }

  template <class I, class L> auto operator()(const I& ids, const NewPlaces<U>& at, const L& last) {
    using X = Activations<U>;
    const Turn turn{.training = false, .first_place = at.most + 1 - ids.extent(1)};
    X x = [&] {
      const Layer scope(ids, "embedding");
      return X(look_up<typename X::spec>(model_.table, ids) +
               look_up<typename X::spec>(model_.positions, at.places));
    }();
    for (std::size_t l = 0; l < model_.blocks.size(); ++l) {
      const Layer scope(ids, "block " + std::to_string(l));
      const auto attend = [&](const Attention<U>& layer, const auto& seen, const Dropout&) {
        return cached_attention(layer, seen, kept_[l], at);
      };
      x = std::get<0>(after_block(model_.blocks[l], x, n_, turn, l + 1, attend, Unseen{}));
    }
    const Layer scope(ids, "head");
    const auto row = take<"bsm,b->bm", typename U::template Spec<logical::batch, logical::embed>>(
        x, last, OutOfRange::clamp);
    return dense<typename U::template Spec<logical::batch, logical::vocabulary>>(
        model_.head, layer_norm(model_.norm, row));
  }

 private:
  const Model<U>& model_;
  Sizes n_;
  std::vector<KeyValueCache<U>> kept_;
};

/// Returns so many characters that follow a text, each drawn by its probability. The model reads
/// `context` at once: where they are full it goes on after the last half of them.
/// Collective over the mesh. Communication: that of decode().
template <class U>
std::vector<Id> write(const ProcessMesh<Grid>& mesh, const Model<U>& model, const Sizes& n,
                      std::vector<Id> text, Index count) {
  const auto begins = text.size();
  const auto half = static_cast<std::ptrdiff_t>((n.context + 1) / 2);
  for (Index round = 0; count > 0; ++round) {
    const std::vector<Id> last(text.end() - std::min(half, std::ssize(text)), text.end());
    const Index most = std::min(count, n.context - static_cast<Index>(last.size()) + 1);
    const auto reader = [&](Index batch, Index places) {
      return Reader<U>(mesh, model, n, batch, places);
    };
    GenerateOptions options{.batch = 1, .sampling = {.seed = n.seed}, .first = round};
    const auto made = generate_by<U>(mesh, reader, {{.begin = last, .most = most}}, options);
    text.insert(text.end(), made[0].begin(), made[0].end());
    count -= most;
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(begins), text.end()};
}

}  // namespace train_transformer
