// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Small encoder-decoders, of sizes that no mesh divides evenly, and batches of padded texts.
///
///     const TranslationCase<TensorParallel<data, model>> c(mesh, gshard_like);
///     Values all = c.numbers();            // the scores that count, the loss, all gradients
#include <vector>

#include <tessera/nn/translation/translate.hpp>

#include "nn/layer_cases.hpp"

namespace nn_test {

struct TranslationKind {
  const char* name;
  TranslatorSizes sizes;
  TranslatorOptions options;
};
/// Post-norm, one table for all, learned positions, experts that drop tokens, dropout.
inline const TranslationKind gshard_like{
    "experts",
    {.source = 11,
     .target = 11,
     .places = 7,
     .embed = 6,
     .heads = 3,
     .hidden = 7,
     .encoder_layers = 2,
     .decoder_layers = 3,
     .experts = 5,
     .tied_tables = true,
     .input_norms = true,
     .last_norms = false},
    {.norm_first = false,
     .gelu = true,
     .embedding_scale = 2.5,
     .first_place = 1,
     .dropout = {.rate = 0.1, .seed = 8, .step = 3},
     .experts = {.k = 2, .capacity_factor = 0.9, .texts = 5, .draw = RoutingDraw{7, 2}}}};
/// Pre-norm by RMS, relative positions, two heads for a key, dense, nothing tied.
inline const TranslationKind relative{"relative",
                                      {.source = 11,
                                       .target = 9,
                                       .buckets = 6,
                                       .embed = 8,
                                       .heads = 4,
                                       .groups = 2,
                                       .hidden = 7,
                                       .encoder_layers = 2,
                                       .decoder_layers = 2,
                                       .tied_scores = false,
                                       .biases = false},
                                      {.attention = {.farthest = 5}}};
/// Rotary positions in a window, a router of one expert, of which none is dropped.
inline const TranslationKind rotary_in_window{
    "window",
    {.source = 8,
     .target = 9,
     .embed = 8,
     .heads = 2,
     .hidden = 7,
     .encoder_layers = 2,
     .decoder_layers = 2,
     .experts = 3,
     .choice_bias = true},
    {.attention = {.window = 3, .rotary = true}, .experts = {.k = 1, .capacity_factor = 0}}};

template <class R> struct TranslationCase {
  using U = On<R>;
  using Mask = typename U::template Of<bool, logical::batch, logical::sequence>;
  using Lengths = typename U::template Of<std::int32_t, logical::batch>;
  static constexpr Index batch = 5, from = 6, to = 4;

  TranslatorOptions options;
  Translator<U> model;
  TokenIds<U> source, target, next;
  Mask source_valid, target_valid;

  TranslationCase(const ProcessMesh<Grid>& mesh, const TranslationKind& kind)
      : options(kind.options) {
    Parameters<Grid> make(mesh, 3);
    model = Translator<U>::like(make, kind.sizes);
    source = from_function<TokenIds<U>>(mesh, {batch, from}, Ids{kind.sizes.source});
    target = from_function<TokenIds<U>>(mesh, {batch, to}, Ids{kind.sizes.target});
    next = from_function<TokenIds<U>>(mesh, {batch, to}, Ids{kind.sizes.target - 2});
    const auto lengths = [&](std::vector<std::int32_t> n) {
      return from_host<Lengths>(mesh, {batch}, n);
    };
    source_valid = places_before<U>(lengths({6, 2, 5, 1, 4}), from);
    target_valid = places_before<U>(lengths({3, 4, 1, 4, 2}), to);
  }
  auto scores(const Translator<U>& of) const {
    return translate(of, source, target, options, source_valid, target_valid);
  }
  auto loss(const Translator<U>& of) const {
    return translation_loss(scores(of), next,
                            {.smoothing = 0.1, .z = 1e-3, .balance = 0.3, .gate_z = 0.1},
                            target_valid);
  }
  /// The scores, zero where a target has ended, the loss, and all gradients.
  Values numbers() const {
    const auto [made, gradient] = value_and_grad([&](const Translator<U>& w) {
      const auto out = scores(w);
      return std::tuple(loss(w), out.scores);
    })(model);
    const auto& all = std::get<1>(made);
    const auto counted = map<"ab,abc->abc", typename std::decay_t<decltype(all)>::spec>(
        fn::Fixed<fn::Select, 2, double>{{}, 0.0}, target_valid, all);
    Values values{to_host(counted).values, {static_cast<double>(value(std::get<0>(made)))}};
    for (auto& one : values_of(gradient)) values.push_back(std::move(one));
    return values;
  }
};

/// Calls check(name, rules) for lists of rules that split all there is; each takes seconds to
/// compile.
template <class F> void for_translation_rules(const F& check) {
  check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
  check("fully sharded", std::type_identity<FullySharded<BothAxes>>{});
  check("sequence", std::type_identity<SequenceSplit<data, model>>{});
  check("experts", std::type_identity<ExpertParallel<BothAxes>>{});
  check("experts and tensors", std::type_identity<ExpertTensorParallel<data, model>>{});
}

}  // namespace nn_test
