// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a schedule can be carried out: each stage goes forward and back once by each
/// micro-batch, on its part (or forward alone, where none goes back), and no action waits for
/// itself.
///
///     const PipelineFault fault = check_schedule(model, schedule);
///     fault.why;       // "part 0 does 0B0 before 0F1, and part 1 ...": each action of a cycle
///
/// Laws: a schedule without a fault ends, however long its actions take and whichever arrives
/// first.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/model.hpp>

namespace tessera {

struct PipelineFault {
  std::string why;                    ///< empty: there is none
  std::vector<PipelineAction> cycle;  ///< each waits for the next, and the last for the first

  bool any() const { return !why.empty(); }
};

/// Returns the first fault of a schedule of the model's stages. Communication: none.
TESSERA_FUNCTION PipelineFault check_schedule(const PipelineModel& model,
                                              const PipelineSchedule& schedule);

/// Throws UsageError with the fault, if there is one. Communication: none.
TESSERA_FUNCTION void require_schedule(const PipelineModel& model, const PipelineSchedule& schedule,
                                       Where where = Where::here());

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/check.hpp>
#endif
