// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A run's steps, what it says and writes meanwhile, and what it says at its end: the same however
/// the model is spread over processes.
///
///     learn(job, flags, text, Voice{mesh.process() == 0});
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../support/progress.hpp"
#include "../support/voice.hpp"
#include "flags.hpp"
#include "log.hpp"
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
  /// Returns the probabilities of the characters that come after a row.
  std::function<std::vector<double>(const Rows&)> next;
  std::function<void(Index)> save;       ///< after a step
  std::function<Index()> payload_bytes;  ///< that this process has sent
  std::function<void()> trace;           ///< from here on
  std::function<void()> end_trace;       ///< writes it
  /// Says what the steps were; returns the planned payload of one on this process.
  std::function<Index()> report;
};

/// Returns the characters before a bar, and what the model goes on with.
inline std::string write(const Job& job, const support::Text& text, const Flags& flags) {
  const Index k = flags.sizes.context;
  const auto middle = text.held_out().begin() +
                      static_cast<Index>(text.held_out().size() - static_cast<std::size_t>(k)) / 2;
  std::vector<std::int32_t> ids(middle, middle + k);
  for (Index i = 0; i < flags.sample; ++i) {
    Rows seen = rows_from(ids, {static_cast<Index>(ids.size()) - k}, k - 1);
    seen.ids.push_back(ids.back());  // the last one has nothing after it yet
    seen.next.push_back(0);
    const std::vector<double> p = job.next(seen);
    double left = static_cast<double>(support::mixed(support::mixed(flags.sizes.seed) +
                                                     static_cast<std::uint64_t>(i)) >>
                                      11) *
                  0x1p-53;
    std::size_t pick = 0;  // the first at which the probabilities before it add up to more
    while (pick + 1 < p.size() && (left -= p[pick]) > 0) ++pick;
    ids.push_back(static_cast<std::int32_t>(pick));
  }
  std::string written;
  for (std::size_t i = static_cast<std::size_t>(std::max<Index>(0, k - 80)); i < ids.size(); ++i) {
    if (i == static_cast<std::size_t>(k)) written += " | ";
    written += text.letter(ids[i]);
  }
  return written;
}

/// Takes the steps of a run. Throws UsageError where none is left, Error where a process has sent
/// other bytes than were planned.
inline void learn(const Job& job, const Flags& flags, const support::Text& text, const Voice& say) {
  const Sizes& n = flags.sizes;
  if (job.first >= flags.steps)
    throw tessera::UsageError("--steps: the run has taken " + std::to_string(job.first) +
                              " steps and " + std::to_string(flags.steps) +
                              " are asked for; give more");
  Log log;
  Pace pace(n.batch * n.context, job.gemm_seconds);
  support::Progress progress(flags.steps - job.first, say.speaks);
  Index sent = 0;
  for (Index i = job.first + 1; i <= flags.steps; ++i) {
    const Rows rows = random_rows(text.training(), n.batch, n.context, n.seed, i);
    if (!flags.trace.empty() && i == std::max(job.first + 1, flags.steps - 2)) job.trace();
    const Index before = job.payload_bytes();
    const double nats = job.step(rows, i);
    sent += job.payload_bytes() - before;
    progress.show(i - job.first, pace.after(i - job.first, nats));
    const bool last = i == flags.steps;
    if (!flags.log.empty()) {
      const bool measures = last || i % flags.measure == 0;
      log.add(i * n.batch * n.context, pace.seconds(), nats,
              measures ? job.held_out(4 * n.batch) : NAN);
    }
    if (!flags.save.empty() && (last || (flags.save_every > 0 && i % flags.save_every == 0)))
      job.save(i);
  }
  if (!flags.trace.empty()) job.end_trace();
  const Index each = job.report();
  say("\nProcess 0 sent {} bytes, planned {} x {}\n", sent, flags.steps - job.first, each);
  if (sent != each * (flags.steps - job.first))
    throw tessera::Error("planned and counted communication differ on a process");
  if (!flags.log.empty() && say.speaks) {
    support::write_text(flags.log + ".csv", log.csv());
    support::write_text(flags.log + ".svg", log.svg());
  }
  say("\nHeld-out loss {:.3f} nats a character (counts of characters {:.3f}, of pairs {:.3f})\n",
      job.held_out(tessera::max_int64), text.entropy(0), text.entropy(1));
  const std::string sample = write(job, text, flags);
  if (flags.sample > 0) say("\nA sample, after the bar\n{}\n", sample);
}

}  // namespace train_transformer
