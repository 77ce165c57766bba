// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A model in training: its weights and their optimizer, a step, the losses of what is held out,
/// translations, and files to go on from.
///
///     Trainer<U> trainer(mesh, flags, text);
///     Scalar<U> nats = trainer.step(placed, texts, 1);
///     std::vector<double> nats_a_token = trainer.losses_of(held_out, 32);  // of each language
///
/// Laws: a run that is continued goes on with the same losses, on any mesh and split in any way, to
/// rounding.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "../support/saved_run.hpp"
#include "flags.hpp"

namespace translation {

template <class U> class Trainer {
 public:
  Trainer(const ProcessMesh<Grid>& mesh, const Flags& flags, const Text& text)
      : Trainer(mesh, flags, text, born(mesh, flags.settings, text)) {}

  const Translator<U>& weights() const { return weights_; }

  /// Improves the weights; returns the cross-entropy before that, a scalar.
  Scalar<U> step(const Placed<U>& batch, Index texts, Index number) {
    const auto run = optimizer_.value_and_grad([&](const Translator<U>& weights) {
      return losses(weights, batch, n_, options_of(n_, texts, number));
    })(weights_);
    const Layer scope(batch.source, "optimizer");
    optimizer_.step(weights_, run.gradient);
    return std::get<1>(run.value);
  }

  /// Returns the mean loss of each language, in nats a token, of at most so many sentences of each
  /// length.
  std::vector<double> losses_of(const Text& text, Index most) const {
    std::vector<double> all;
    Settings plain = n_;
    plain.smoothing = 0;
    for (const Language& language : text.languages) {
      double nats = 0;
      Index tokens = 0;
      for_each_batch(language, text, most, [&](const Batch& batch, Index) {
        const auto made = losses(weights_, Placed<U>(mesh_, batch), plain, options_of(n_));
        nats += static_cast<double>(value(std::get<1>(made))) * static_cast<double>(batch.tokens);
        tokens += batch.tokens;
      });
      all.push_back(nats / static_cast<double>(std::max<Index>(1, tokens)));
    }
    return all;
  }

  /// Returns which part of the choices of experts finds no place in step `number`; 0 without
  /// experts.
  double dropped(const Batch& batch, Index texts, Index number) const {
    const Placed<U> placed(mesh_, batch);
    const auto made =
        translate(weights_, placed.source, placed.target, options_of(n_, texts, number),
                  places_before<U>(placed.source_lengths, batch.length),
                  places_before<U>(placed.target_lengths, batch.length));
    if (!made.experts.dropped) return 0;
    double choices = 0;
    for (const auto& load : made.experts.load)
      for (const std::int64_t count : to_host(load).values) choices += static_cast<double>(count);
    return static_cast<double>(value(*made.experts.dropped)) / choices;
  }

  /// Gives the translations of at most so many sentences of a language and length, some at a time:
  /// f(rows, first row, texts).
  void translations(const Language& language, const Text& text, Index most, Index beams,
                    const std::function<void(const Batch&, Index,
                                             const std::vector<std::vector<Id>>&)>& f) const {
    for_each_batch(language, text, most, [&](const Batch& batch, Index first) {
      std::vector<std::vector<Id>> sources;
      for (Index r = 0; r < batch.rows; ++r) {
        const auto begin = batch.source.begin() + r * batch.length;
        sources.emplace_back(begin, begin + batch.source_lengths[static_cast<std::size_t>(r)]);
      }
      const Index longest = 2 * batch.length;
      std::vector<std::vector<Id>> made;
      if (beams == 1) {
        made = generate(mesh_, weights_, sources, {.begin = text.begin, .most = longest},
                        {.batch = batch.rows, .end = text.end, .sampling = {.temperature = 0}},
                        options_of(n_));
      } else {
        for (auto& found :
             beam_search(mesh_, weights_, sources, text.begin,
                         {.beams = beams, .most = longest, .end = text.end, .length_penalty = 0.6},
                         options_of(n_)))
          made.push_back(found.front().tokens);
      }
      f(batch, first, made);
    });
  }

  /// Communication, errors: as write_checkpoint.
  void save(const std::string& path, Index step, const std::string& text) {
    support::save_run(mesh_, path, weights_, optimizer_, step, facts(text));
  }
  /// Returns the step that was written. Throws UsageError for a run of other text.
  Index resume(const std::string& path, const std::string& text) {
    return support::resume_run(mesh_, path, weights_, optimizer_, facts(text));
  }

 private:
  Trainer(const ProcessMesh<Grid>& mesh, const Flags& flags, const Text&, Translator<U> weights)
      : mesh_(mesh),
        n_(flags.settings),
        tokens_(flags.batches.tokens),
        weights_(std::move(weights)),
        optimizer_(
            Adafactor{.rate = InverseSquareRoot{.rate = flags.rate, .constant = flags.constant}},
            weights_) {}

  std::vector<support::RunFact> facts(const std::string& text) const {
    return {{"text", text, "give the --ids and --languages that it learnt from"},
            {"seed", std::to_string(n_.seed), "give --seed that number"}};
  }
  static Translator<U> born(const ProcessMesh<Grid>& mesh, const Settings& n, const Text& text) {
    Parameters<Grid> make(mesh, n.seed);
    return Translator<U>::like(make, sizes_of(n, text));
  }

  /// f(batch, number of its first row), of at most `most` sentences of each length.
  template <class F>
  void for_each_batch(const Language& language, const Text& text, Index most, const F& f) const {
    for (const Rows& rows : language.rows) {
      const Index count = std::min(most, rows.count());
      const Index each = std::max<Index>(1, tokens_ / rows.length);
      for (Index first = 0; first < count; first += each) {
        Batch batch;
        batch.length = rows.length;
        for (Index r = first; r < std::min(first + each, count); ++r) batch.add(rows, r, text);
        f(batch, first);
      }
    }
  }

  ProcessMesh<Grid> mesh_;
  Settings n_;
  Index tokens_;
  Translator<U> weights_;
  Optimizer<Adafactor> optimizer_;
};

}  // namespace translation
