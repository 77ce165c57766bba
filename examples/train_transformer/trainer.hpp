// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A model in training: its weights, their optimizer, a step, the loss of text that is held out,
/// and files to go on from.
///
///     Trainer<U> trainer(mesh, flags);
///     auto nats = trainer.step(Batch<U>(mesh, rows, context), 1);
///     trainer.save(mesh, "run.safetensors", 1, text);
///
/// Laws: a run that is continued goes on with the same losses, on any mesh and split in any way, to
/// rounding.
#include <string>
#include <vector>

#include "../support/saved_run.hpp"
#include "flags.hpp"
#include "rows.hpp"

namespace train_transformer {

/// Rows on their way to the mesh: every process has all of them and keeps its own.
template <class U> struct Batch {
  Ids<U> ids, next;
  Batch(const ProcessMesh<Grid>& mesh, const Rows& rows, Index context)
      : ids(from_host<Ids<U>>(mesh, {rows.count, context}, rows.ids)),
        next(from_host<Ids<U>>(mesh, {rows.count, context}, rows.next)) {}
};

inline UpdatePolicy policy_of(const Flags& flags) {
  UpdatePolicy policy;
  if (flags.update == "replicated") return policy;
  policy.kind =
      flags.update == "sharded" ? UpdatePolicy::Kind::sharded : UpdatePolicy::Kind::cheapest;
  policy.axes = {0, 1};
  return policy;
}

/// Stands for the text that ids come from: another one gives them another meaning.
inline std::string digest_of(const support::Text& text) {
  std::uint64_t digest = static_cast<std::uint64_t>(text.vocabulary());
  for (const std::int32_t id : text.training())
    digest = support::mixed(digest ^ static_cast<std::uint64_t>(id));
  return std::to_string(digest);
}

template <class U> class Trainer {
 public:
  Trainer(const ProcessMesh<Grid>& mesh, const Flags& flags)
      : Trainer(born(mesh, flags.sizes), flags) {}
  Trainer(Model<U> weights, const Flags& flags)
      : n_(flags.sizes),
        weights_(std::move(weights)),
        optimizer_(AdamW{.rate = WarmupCosine{.peak = flags.rate,
                                              .warmup = flags.steps / 20 + 1,
                                              .steps = flags.steps + 1,
                                              .floor = flags.rate / 50},
                         .beta2 = 0.98,
                         .decay = flags.decay},
                   weights_, {.clip = flags.clip, .decays = matrices_only}, policy_of(flags)) {}

  const Model<U>& weights() const { return weights_; }

  /// Improves the weights; returns the cross-entropy before that, a scalar.
  Scalar<U> step(const Batch<U>& batch, Index number) {
    const auto run = optimizer_.value_and_grad([&](const Model<U>& weights) {
      return losses(weights, batch.ids, batch.next, n_, {number, true});
    })(weights_);
    const Layer scope(batch.ids, "optimizer");
    optimizer_.step(weights_, run.gradient);
    return std::get<1>(run.value);
  }

  /// Improves the weights by their gradient.
  void improve(const Model<U>& gradient) { optimizer_.step(weights_, gradient); }

  /// Returns the mean loss of text that was held out, as held_out_mean() counts it.
  double held_out_loss(const ProcessMesh<Grid>& mesh, const std::vector<std::int32_t>& text,
                       Index most_rows) const {
    return held_out_mean(
        text, n_.context, n_.batch, most_rows,
        [&](const Rows& rows, const std::vector<float>& counted) {
          const Batch<U> batch(mesh, rows, n_.context);
          const auto [out, auxiliary] = scores(weights_, batch.ids, n_, {0, false});
          const auto all = to_host(cross_entropy(out, batch.next));
          double nats = 0;
          for (std::size_t i = 0; i < counted.size(); ++i)
            nats += static_cast<double>(all.values[i]) * static_cast<double>(counted[i]);
          return nats;
        });
  }

  /// Communication, errors: as write_checkpoint.
  void save(const DynamicMesh& mesh, const std::string& path, Index step, const std::string& text) {
    support::save_run(mesh, path, weights_, optimizer_, step, facts(text));
  }
  /// Returns the step that was written. Throws UsageError for a run of other data.
  Index resume(const DynamicMesh& mesh, const std::string& path, const std::string& text) {
    return support::resume_run(mesh, path, weights_, optimizer_, facts(text));
  }

 private:
  std::vector<support::RunFact> facts(const std::string& text) const {
    return {{"text", text, "give --text the text that it learnt from"},
            {"seed", std::to_string(n_.seed), "give --seed that number"}};
  }
  static Model<U> born(const ProcessMesh<Grid>& mesh, const Sizes& n) {
    Parameters<Grid> make(mesh, n.seed);
    return Model<U>::like(make, n);
  }

  Sizes n_;
  Model<U> weights_;
  Optimizer<AdamW, UpdatePolicy> optimizer_;
};

}  // namespace train_transformer
