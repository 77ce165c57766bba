// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The search for a schedule: the fastest that it finds within a limit on memory, and a time that
/// no schedule of these stages on these parts can beat.
///
///     const FoundSchedule found = search_schedule(model, {0, 1, 2, 3}, 8, {.memory_limit = 1 << 20});
///     found.run.time;   found.bound;   found.gap()          // 0: it is proved to be best
///     explain(found)
///
/// Laws: found.bound <= found.run.time; the result depends on the arguments alone, not on the
/// clock. Source of the bound: a part's actions as the jobs of one machine with heads and tails,
/// which may be interrupted (Jackson's preemptive schedule; Carlier 1982), and, with a limit on
/// memory, what all micro-batches hold over the least time between their way forward and back.
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/simulate.hpp>

namespace tessera {

struct ScheduleSearch {
  Index memory_limit = max_int64;  ///< bytes at once on a process of any part
  bool split_backward = true;      ///< the way back may go in two steps
  int tries = 2000;                ///< changes of a schedule that are tried
};

struct FoundSchedule {
  PipelineSchedule schedule;  ///< without lists where none was found within the limit
  PipelineRun run;
  std::int64_t bound = 0;  ///< picoseconds
  int tried = 0;           ///< schedules that were simulated

  bool any() const { return !schedule.lists.empty(); }
  /// Returns by which share the schedule is slower than the bound, at most.
  double gap() const {
    return bound == 0 ? 0 : static_cast<double>(run.time) / static_cast<double>(bound) - 1;
  }
};

/// Returns the fastest schedule that was found of the model's stages, each in its part, with so
/// many micro-batches. Communication: none. Throws UsageError where numbers do not fit together.
TESSERA_FUNCTION FoundSchedule search_schedule(const PipelineModel& model,
                                               const std::vector<int>& part_of, int micro_batches,
                                               const ScheduleSearch& options = {},
                                               Where where = Where::here());

/// Returns the time that no schedule beats. Communication: none.
TESSERA_FUNCTION std::int64_t pipeline_bound(const PipelineModel& model,
                                             const std::vector<int>& part_of, int micro_batches,
                                             Index memory_limit = max_int64);

/// Returns the time, the bubble, the peak and the bound, in words.
TESSERA_FUNCTION std::string explain(const FoundSchedule& found);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/search.hpp>
#endif
