// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pipeline on paper: when each action of a schedule runs, how long each part stands idle, and
/// what memory it needs.
///
///     const PipelineRun run = simulate(PipelineModel::chain(4, {{1}, {1}, {1}}),
///                                      gpipe(4, 8));
///     run.idle() == 6;       // (p - 1) (F + I): the literature's (p - 1) (F + B) has W = 0
///     run.bubble();
///
/// Laws: an action begins as soon as its part has ended the one before it and everything that it
/// needs is there. A way back B is that by inputs and then that by weights, and what the first of
/// them makes leaves before the second begins. What a process allocates and frees depends on its
/// own list alone (program/pipeline/instructions.hpp), so its peak is the same however long actions
/// take.
#include <cstdint>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/check.hpp>

namespace tessera {

/// An action's time, in picoseconds from the beginning.
struct PipelineSpan {
  std::int64_t begin = 0, end = 0;
  std::int64_t sends = 0;  ///< when what it makes leaves: of a whole way back, before its end
};

struct PipelinePart {
  std::vector<PipelineSpan> spans;  ///< of the actions of its list
  std::int64_t busy = 0;            ///< picoseconds
  Index peak_bytes = 0;             ///< the most at once, on a process
  Index sent_bytes = 0;             ///< to other parts, by all that needs a process's blocks
  Index received_bytes = 0;
  int most_held = 0;  ///< micro-batches that have gone forward and not back, counted by stages
};

struct PipelineRun {
  std::vector<PipelinePart> parts;
  std::int64_t time = 0;  ///< picoseconds until all have ended

  /// Returns the share of the parts' time in which they stand idle.
  double bubble() const {
    std::int64_t busy = 0;
    for (const PipelinePart& part : parts) busy += part.busy;
    return time == 0 ? 0
                     : 1 - static_cast<double>(busy) /
                               (static_cast<double>(time) * static_cast<double>(parts.size()));
  }
  /// Returns the time that the part which stands idle least is idle.
  std::int64_t idle() const {
    std::int64_t most = 0;
    for (const PipelinePart& part : parts) most = part.busy > most ? part.busy : most;
    return time - most;
  }
  Index peak_bytes() const {
    Index peak = 0;
    for (const PipelinePart& part : parts) peak = part.peak_bytes > peak ? part.peak_bytes : peak;
    return peak;
  }
};

/// Returns the times and the memory of a schedule of the model's stages. Communication: none.
/// Throws UsageError where check_schedule finds a fault.
TESSERA_FUNCTION PipelineRun simulate(const PipelineModel& model, const PipelineSchedule& schedule,
                                      Where where = Where::here());

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/simulate.hpp>
#endif
