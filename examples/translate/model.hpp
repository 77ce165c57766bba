// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The model: GShard's encoder-decoder with a mixture of experts in every other layer of both
/// stacks (sections 2 and 4, appendix A.2), and the ways to split it.
///
///     using Here = Under<float, Grid, by::Experts>;
///     auto model = Translator<Here>::like(make, sizes_of(settings, text));
///     auto [objective, nats] = losses(model, placed, settings, step);          // scalars
#include <cmath>
#include <cstdint>
#include <tuple>

#include <tessera/nn.hpp>
#include <tessera/nn/translation/write.hpp>
#include <tessera/tessera.hpp>

#include "batches.hpp"

namespace translation {

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;

namespace by {
/// Everybody has all weights but experts, of which each has some, and a part of the batch.
using Experts = ExpertParallel<Axes<data, model>>;
/// Heads, hidden elements and the vocabulary over `model`, experts and the batch over `data`.
using Tensors = ExpertTensorParallel<data, model>;
}  // namespace by

struct Settings {
  Index layers = 3;  ///< of each stack
  Index width = 128, heads = 4, head_dim = 0, hidden = 512;
  Index experts = 0, k = 1;
  double capacity = 1.25, balance = 0.01, dropout = 0.1, smoothing = 0;
  std::uint64_t seed = 1;
};

inline TranslatorSizes sizes_of(const Settings& n, const Text& text) {
  return {.source = text.source_vocabulary,
          .target = text.english_vocabulary,
          .buckets = 32,
          .embed = n.width,
          .heads = n.heads,
          .head_dim = n.head_dim,
          .hidden = n.hidden,
          .encoder_layers = n.layers,
          .decoder_layers = n.layers,
          .experts = n.experts};
}

/// How the model runs as it translates: nothing is dropped.
inline TranslatorOptions options_of(const Settings& n) {
  return {.embedding_scale = std::sqrt(static_cast<double>(n.width)),
          .experts = {.k = std::min(n.k, std::max<Index>(1, n.experts)), .capacity_factor = 0}};
}
/// How it runs in a step; `texts` compete for places of experts.
inline TranslatorOptions options_of(const Settings& n, Index texts, Index step) {
  TranslatorOptions options = options_of(n);
  const auto number = static_cast<std::uint64_t>(step);
  options.dropout = {.rate = n.dropout, .seed = n.seed, .step = number};
  options.experts.capacity_factor = n.capacity;
  options.experts.texts = texts;
  if (n.experts > 0 && n.k > 1) options.experts.draw = RoutingDraw{.seed = n.seed, .step = step};
  return options;
}

template <class U> using Scalar = typename U::template Tensor<>;

/// A batch on its way to the mesh: every process has all of it and keeps its own.
template <class U> struct Placed {
  using Ids = typename U::template Of<Id, logical::batch, logical::sequence>;
  using Lengths = typename U::template Of<Id, logical::batch>;
  Ids source, target, next;
  Lengths source_lengths, target_lengths;
  Placed(const ProcessMesh<Grid>& mesh, const Batch& batch)
      : source(from_host<Ids>(mesh, {batch.rows, batch.length}, batch.source)),
        target(from_host<Ids>(mesh, {batch.rows, batch.length}, batch.target)),
        next(from_host<Ids>(mesh, {batch.rows, batch.length}, batch.next)),
        source_lengths(from_host<Lengths>(mesh, {batch.rows}, batch.source_lengths)),
        target_lengths(from_host<Lengths>(mesh, {batch.rows}, batch.target_lengths)) {}
};

/// Returns what is made small, and the cross-entropy alone: means, in nats a token.
template <class U>
std::tuple<Scalar<U>, Scalar<U>> losses(const Translator<U>& model, const Placed<U>& batch,
                                        const Settings& n, const TranslatorOptions& options) {
  const auto source_valid = places_before<U>(batch.source_lengths, batch.source.extent(1));
  const auto target_valid = places_before<U>(batch.target_lengths, batch.target.extent(1));
  const auto made =
      translate(model, batch.source, batch.target, options, source_valid, target_valid);
  const Layer scope(batch.source, "loss");
  const Scalar<U> nats = translation_loss(
      made, batch.next, {.smoothing = n.smoothing, .balance = 0, .gate_z = 0}, target_valid);
  if (!made.experts.balance_loss) return {nats, nats};
  return {nats + *made.experts.balance_loss * static_cast<float>(n.balance), nats};
}

}  // namespace translation
