// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An encoder in training: its weights and their optimizer, a step, the loss of what is held out,
/// and files to go on from, or to be used by protein_encoder.
///
///     Trainer<U> trainer(mesh, flags, kind);
///     Scalar<U> nats = trainer.step(Placed<U>(mesh, rows), 1);
///     trainer.write("antibodies.safetensors");
///
/// Laws: a run that is continued with the same flags goes on with the same losses, on any mesh and
/// split in any way, to rounding.
#include <string>
#include <vector>

#include "../support/saved_run.hpp"
#include "flags.hpp"
#include "masking.hpp"

namespace train_protein_encoder {

template <class U> using Scalar = typename U::template Tensor<>;

/// Rows on their way to the mesh: every process has all of them and keeps its own.
template <class U> struct Placed {
  Ids<U> ids, targets;
  Placed(const ProcessMesh<Grid>& mesh, const MaskedRows& rows)
      : ids(from_host<Ids<U>>(mesh, rows.extents(), rows.ids)),
        targets(from_host<Ids<U>>(mesh, rows.extents(), rows.targets)) {}
};

/// Returns the mean cross-entropy of the letters that are to be found, in nats.
template <class U>
Scalar<U> masked_loss(const Encoder<U>& model, const Placed<U>& rows, const EncoderOptions& options,
                      Id padding) {
  const auto states = encode(model, rows.ids, options, not_equal(rows.ids, padding));
  const auto scores = masked_scores(model, states, options);
  const Layer scope(rows.ids, "loss");
  return mean_where(cross_entropy(scores, rows.targets), rows.targets >= 0);
}

/// Stands for the texts that a run learns from.
inline std::string digest_of(const Texts& texts) {
  std::uint64_t digest = texts.size();
  for (const auto& text : texts)
    for (const Id id : text) digest = Dropout::mixed(digest ^ static_cast<std::uint64_t>(id));
  return std::to_string(digest);
}

template <class U> class Trainer {
 public:
  Trainer(const ProcessMesh<Grid>& mesh, const Flags& flags, const Kind& kind)
      : mesh_(mesh),
        kind_(kind),
        dropout_{.rate = flags.dropout, .seed = flags.seed},
        weights_(born(mesh, flags, kind)),
        optimizer_(AdamW{.rate = WarmupCosine{.peak = flags.rate,
                                              .warmup = flags.steps / 20 + 1,
                                              .steps = flags.steps + 1,
                                              .floor = flags.rate / 50},
                         .beta2 = 0.98,
                         .decay = flags.decay},
                   weights_, {.clip = 1, .decays = matrices_only}) {}

  const Encoder<U>& weights() const { return weights_; }

  /// Improves the weights; returns the loss before that, a scalar.
  Scalar<U> step(const Placed<U>& rows, Index number) {
    EncoderOptions options = kind_.options;
    options.dropout = dropout_;
    options.dropout.step = static_cast<std::uint64_t>(number);
    const auto run = value_and_grad([&](const Encoder<U>& weights) {
      return masked_loss(weights, rows, options, kind_.vocabulary.padding);
    })(weights_);
    const Layer scope(rows.ids, "optimizer");
    optimizer_.step(weights_, run.gradient);
    return run.value;
  }
  /// Returns the mean loss of batches, each letter counted once.
  double loss_of(const std::vector<MaskedRows>& batches) const {
    double nats = 0;
    Index count = 0;
    for (const MaskedRows& rows : batches) {
      const auto mean =
          masked_loss(weights_, Placed<U>(mesh_, rows), kind_.options, kind_.vocabulary.padding);
      nats += static_cast<double>(value(mean)) * static_cast<double>(rows.counted());
      count += rows.counted();
    }
    return nats / static_cast<double>(max_of(count, Index{1}));
  }

  /// Communication, errors: as write_checkpoint.
  void save(const std::string& path, Index step, const std::string& texts, std::uint64_t seed) {
    support::save_run(mesh_, path, weights_, optimizer_, step, facts(texts, seed));
  }
  /// Returns the step that was written. Throws UsageError for a run of other sequences.
  Index resume(const std::string& path, const std::string& texts, std::uint64_t seed) {
    return support::resume_run(mesh_, path, weights_, optimizer_, facts(texts, seed));
  }
  /// Writes the weights as protein_encoder reads them. Communication, errors: as write_checkpoint.
  void write(const std::string& path) const {
    write_checkpoint(mesh_, path, weights_, facts_of(kind_));
  }

 private:
  static std::vector<support::RunFact> facts(const std::string& texts, std::uint64_t seed) {
    return {{"sequences", texts, "give the --sequences that it learnt from"},
            {"seed", std::to_string(seed), "give --seed that number"}};
  }
  static Encoder<U> born(const ProcessMesh<Grid>& mesh, const Flags& flags, const Kind& kind) {
    Parameters<Grid> make(mesh, flags.seed);
    return Encoder<U>::like(make, kind.sizes);
  }

  ProcessMesh<Grid> mesh_;
  Kind kind_;
  Dropout dropout_;
  Encoder<U> weights_;
  Optimizer<AdamW> optimizer_;
};

}  // namespace train_protein_encoder
