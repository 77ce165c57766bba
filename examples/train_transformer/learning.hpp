// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A run's steps, what it says and writes meanwhile, and what it says at its end: the same however
/// the model is spread over processes.
///
///     learn(job, flags, text, Voice{mesh.process() == 0});
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../support/learning_log.hpp"
#include "../support/progress.hpp"
#include "../support/saved_run.hpp"
#include "../support/voice.hpp"
#include "flags.hpp"
#include "rows.hpp"

namespace train_transformer {

using support::Voice;

/// A model in training, by what a run asks of it. All are collective over the processes.
struct Job {
  Index first = 0;          ///< steps that were taken before
  double gemm_seconds = 0;  ///< of a step's products
  /// Takes a step by rows of text; returns the loss before it.
  std::function<double(const Rows&, Index)> step;
  /// Returns the loss of at most so many rows that were held out.
  std::function<double(Index)> held_out;
  /// Returns so many characters that follow a text.
  std::function<std::vector<std::int32_t>(const std::vector<std::int32_t>&, Index)> write;
  std::function<void(Index)> save;       ///< after a step
  std::function<Index()> payload_bytes;  ///< that this process has sent
  std::function<void()> trace;           ///< from here on
  std::function<void()> end_trace;       ///< writes it
  /// Says what the steps were; returns the planned payload of one on this process.
  std::function<Index()> report;
};

/// Returns the characters before a bar, and what the model goes on with.
inline std::string sample(const Job& job, const support::Text& text, const Flags& flags) {
  const auto k = static_cast<std::ptrdiff_t>(flags.sizes.context);
  const auto middle = text.held_out().begin() + (std::ssize(text.held_out()) - k) / 2;
  const std::vector<std::int32_t> before(middle, middle + k);
  std::string made;
  for (auto id = before.end() - std::min<std::ptrdiff_t>(k, 80); id != before.end(); ++id)
    made += text.letter(*id);
  made += " | ";
  for (const std::int32_t id : job.write(before, flags.sample)) made += text.letter(id);
  return made;
}

/// Takes the steps of a run. Throws UsageError where none is left, Error where a process has sent
/// other bytes than were planned.
inline void learn(const Job& job, const Flags& flags, const support::Text& text, const Voice& say) {
  const Sizes& n = flags.sizes;
  support::require_steps(job.first, flags.steps);
  support::LearningLog log({"characters"});
  support::Progress progress(flags.steps - job.first, say.speaks);
  Index sent = 0;
  for (Index i = job.first + 1; i <= flags.steps; ++i) {
    const Rows rows = random_rows(text.training(), n.batch, n.context, n.seed, i);
    if (!flags.trace.empty() && i == std::max(job.first + 1, flags.steps - 2)) job.trace();
    const Index before = job.payload_bytes();
    const double nats = job.step(rows, i);
    sent += job.payload_bytes() - before;
    log.add({static_cast<double>(i * n.batch * n.context)}, nats);
    const double each = log.seconds() / static_cast<double>(i - job.first);
    progress.show(
        i - job.first,
        fmt::format("loss {:.3f}  {:.1f}k characters/s  {:.0f}% of GEMM rate", log.recent_loss(),
                    static_cast<double>(n.batch * n.context) / each / 1e3,
                    100 * job.gemm_seconds / each));
    const bool last = i == flags.steps;
    if (!flags.log.empty() && (last || i % flags.measure == 0))
      log.measure({job.held_out(4 * n.batch)});
    if (!flags.save.empty() && (last || (flags.save_every > 0 && i % flags.save_every == 0)))
      job.save(i);
  }
  if (!flags.trace.empty()) job.end_trace();
  const Index each = job.report();
  say("\nProcess 0 sent {} bytes, planned {} x {}\n", sent, flags.steps - job.first, each);
  if (sent != each * (flags.steps - job.first))
    throw tessera::Error("planned and counted communication differ on a process");
  if (say.speaks) support::write_log(flags.log, log, "characters", "nats a character");
  say("\nHeld-out loss {:.3f} nats a character (counts of characters {:.3f}, of pairs {:.3f})\n",
      job.held_out(tessera::max_int64), text.entropy(0), text.entropy(1));
  if (flags.sample == 0) return;
  const std::string made = sample(job, text, flags);
  say("\nA sample, after the bar\n{}\n", made);
}

}  // namespace train_transformer
