// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memory of a pipeline's parts, tensor by tensor: what simulate() counts by stages, and with
/// it the sums of what is returned, arguments of other parts, and a tensor that several hold once.
///
///     PipelineRound round{{{&program, &cut, &outputs}}, {}, {}};
///     const std::vector<Index> peaks = pipeline_peaks(round, schedule, instructions);
///
/// Laws: equals the peak of each part's arena beside what it held before (tests/pipeline), on the
/// processes that stand in their parts where the programs' own process stands, where the gradients
/// of all micro-batches are planned alike.
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/cut.hpp>
#include <tessera/program/pipeline/instructions.hpp>

namespace tessera::detail {

/// One micro-batch.
struct PipelineRoundPart {
  const Program* program = nullptr;
  const PipelineCut* cut = nullptr;
  const std::vector<int>* outputs = nullptr;  ///< the numbers of the results in the Program
};

/// An argument that a stage reads, and that lies on another part.
struct PipelineArgument {
  int micro_batch = 0, stage = 0, tensor = 0;
  int number = 0;   ///< the same for those that are moved once
  Index bytes = 0;  ///< of the memory that it takes there
};

/// How the sum of an output ends.
struct PipelineOutput {
  int home = -1;         ///< the part it is moved to; -1: none, it stays
  Index bytes = 0;       ///< of its memory, finished
  Index copying = 0;     ///< the peak of the operator that copies, or widens, a first summand
  Index wide = -1;       ///< of a sum's memory in a wider type; -1: it has the output's
  Index rounding = 0;    ///< the peak of the operator that rounds a sum in a wider type
  Index finishing = -1;  ///< the peak of the operator that finishes the sum; -1: it is finished
};

/// All that a part's memory depends on beside the schedule.
struct PipelineRound {
  std::vector<PipelineRoundPart> micro_batches;
  std::vector<PipelineArgument> arguments;
  std::vector<PipelineOutput> outputs;
};

/// Returns the most bytes that each part holds at once beside what it holds at the beginning.
TESSERA_FUNCTION std::vector<Index> pipeline_peaks(
    const PipelineRound& round, const PipelineSchedule& schedule,
    const std::vector<std::vector<PipelineInstruction>>& instructions);

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/memory.hpp>
#endif
