// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The model: an encoder-decoder that reads residues and writes a token for each, and the ways to
/// split it.
///
///     const Kind kind = kind_of("weights/anarcii_accuracy.safetensors");
///     const Model<Here> model(mesh, kind);
///     const std::vector<Written> made = model.write(sources, 210);      // tokens and their scores
///
/// Laws: what is written for a source does not depend on the others, to rounding.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/io/checkpoint.hpp>
#include <tessera/nn.hpp>
#include <tessera/nn/translation/write.hpp>
#include <tessera/tessera.hpp>

#include "../support/facts.hpp"
#include "numbering.hpp"
#include "windows.hpp"

namespace number_antibodies {

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;

/// Ways to split the model over data x model (tessera/nn/rules.hpp).
namespace by {
using Batch = DataParallel<Axes<data, model>>;
using Tensors = TensorParallel<data, model>;
using Shards = FullySharded<Axes<data, model>>;
/// The places of sequences, and those of the tokens that are kept, over `model`.
using Places = LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::cache, model>>;
}  // namespace by

/// A model's sizes, and its file; none: its weights are random numbers.
struct Kind {
  std::string file, source = "random numbers";
  TranslatorSizes sizes{.source = 25,
                        .target = 136,
                        .places = 210,
                        .embed = 24,
                        .heads = 3,
                        .hidden = 40,
                        .encoder_layers = 2,
                        .decoder_layers = 2,
                        .tied_scores = false,
                        .last_norms = false};
  TranslatorOptions options() const {
    return {.norm_first = false, .embedding_scale = std::sqrt(static_cast<double>(sizes.embed))};
  }
};

/// Returns what a file says of its model, read by this process alone. Throws FileError for a file
/// of another format, UsageError for one that says too little.
inline Kind kind_of(const std::string& path) {
  const support::Facts facts("--weights", path, read_checkpoint_header(path).metadata,
                             "a file that examples/number_antibodies/fetch.py has made");
  Kind kind;
  kind.file = path;
  kind.source = facts.text("from");
  const auto read = [&](const char* key, Index& size) { size = facts.number<Index>(key); };
  TranslatorSizes& n = kind.sizes;
  read("source", n.source), read("target", n.target), read("places", n.places);
  read("embed", n.embed), read("heads", n.heads), read("hidden", n.hidden);
  read("encoder_layers", n.encoder_layers), read("decoder_layers", n.decoder_layers);
  if (n.source != 25 || n.target != 136)
    throw UsageError("--weights: " + path + " is for " + std::to_string(n.source) + " and " +
                     std::to_string(n.target) +
                     " tokens, and antibodies' residues and numbers have 25 and 136; give a file "
                     "that examples/number_antibodies/fetch.py has made");
  const Index longest = static_cast<Index>(longest_text) + 2;
  if (n.places < longest)
    throw UsageError("--weights: " + path + " has positions for " + std::to_string(n.places) +
                     " tokens, and " + std::to_string(longest) +
                     " are read at once; give a file that examples/number_antibodies/fetch.py has "
                     "made");
  return kind;
}

/// Tokens, and beside each the largest score of the one after it.
struct Written {
  std::vector<Id> tokens;
  std::vector<float> scores;
};

template <class U> class Model {
 public:
  Model(const ProcessMesh<Grid>& mesh, const Kind& kind) : mesh_(mesh), options_(kind.options()) {
    Parameters<Grid> make(mesh, 1);
    model_ = Translator<U>::like(make, kind.sizes);
    if (!kind.file.empty())
      read_checkpoint(mesh, kind.file, model_,
                      {.progress = progress_bar("reading weights", mesh.process() == 0)});
  }

  /// Returns what is written for each source, the likeliest token each time, until it ends, or has
  /// as many as the source, or `steps`. Communication: that of encode and decode; each step every
  /// process gets the new tokens and their scores. Collective over the mesh.
  std::vector<Written> write(const std::vector<std::vector<Id>>& sources, Index steps) const {
    const auto rows = static_cast<Index>(sources.size());
    std::size_t longest = 0;
    for (const auto& source : sources) longest = std::max(longest, source.size());
    steps = std::min(steps, static_cast<Index>(longest));
    Cache cache = encoded(sources, longest, steps);
    std::vector<Written> made(sources.size(), {{token::begin}, {}});
    std::vector<std::uint8_t> seen(static_cast<std::size_t>(rows * steps), 0);
    std::vector<Id> last(sources.size(), token::begin);
    for (Index step = 0; step < steps; ++step) {
      for (Index r = 0; r < rows; ++r)
        seen[static_cast<std::size_t>(r * steps + step)] =
            last[static_cast<std::size_t>(r)] != token::padding;
      auto at =
          NewPlaces<U>::at(mesh_, std::vector(sources.size(), std::vector<Index>{step}), steps);
      at.seen = from_host<decltype(at.seen)>(mesh_, {rows, 1, steps}, seen);
      const auto scores =
          decode(model_, cache, from_host<Ids>(mesh_, {rows, 1}, last), at,
                 from_host<Row>(mesh_, {rows}, std::vector<Id>(sources.size(), 0)), options_);
      last = to_host(cast<Id>(argmax<"bv->b">(scores))).values;
      const std::vector<float> best = to_host(max<"bv->b">(scores)).values;
      bool all_ended = true;
      for (std::size_t r = 0; r < sources.size(); ++r) {
        made[r].tokens.push_back(last[r]);
        made[r].scores.push_back(best[r]);
        all_ended = all_ended && ended(made[r], sources[r]);
      }
      if (all_ended) break;
    }
    return made;
  }

 private:
  using Ids = typename U::template Of<Id, logical::batch, logical::sequence>;
  using Row = typename U::template Of<Id, logical::batch>;
  using Cache = TranslatorCache<U>;

  static bool ended(const Written& made, const std::vector<Id>& source) {
    return made.tokens.size() > source.size() ||
           std::find(made.tokens.begin(), made.tokens.end(), token::end) != made.tokens.end();
  }
  Cache encoded(const std::vector<std::vector<Id>>& sources, std::size_t longest,
                Index steps) const {
    const auto rows = static_cast<Index>(sources.size()), places = static_cast<Index>(longest);
    std::vector<Id> ids, lengths;
    for (const std::vector<Id>& source : sources) {
      ids.insert(ids.end(), source.begin(), source.end());
      ids.resize(ids.size() + longest - source.size(), token::padding);
      lengths.push_back(static_cast<Id>(source.size()));
    }
    const auto valid = places_before<U>(from_host<Row>(mesh_, {rows}, lengths), places);
    const auto states =
        encode(model_, from_host<Ids>(mesh_, {rows, places}, ids), options_, valid).states;
    return Cache::like(model_, states, steps, valid);
  }

  ProcessMesh<Grid> mesh_;
  TranslatorOptions options_;
  Translator<U> model_;
};

}  // namespace number_antibodies
