// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Carries a schedule out: each process does what the list of its part says, and no process waits
/// for more than what it needs.
///
///     PipelineRunner runner(mesh.core(), parts, map, schedule, where);
///     std::vector<TensorCore> results = runner.run(micro_batches, homes);   // sums over them
///
/// Laws: the operators of a stage run on its part alone; a tensor goes from process k of one part
/// to process k of another as its block lies. What a process allocates depends on its list alone,
/// so that a run on a dry mesh has the same peak.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/pipeline/detail/known.hpp>
#include <tessera/program/pipeline/memory.hpp>
#include <tessera/program/pipeline/simulate.hpp>

namespace tessera::detail {

class PipelineRunner {
 public:
  /// `parts` are those of `whole`, in the order of the schedule's. Throws UsageError where their
  /// numbers differ.
  TESSERA_FUNCTION PipelineRunner(std::shared_ptr<MeshCore> whole,
                                  std::vector<std::shared_ptr<MeshCore>> parts, StageMap map,
                                  PipelineSchedule schedule, Where where);

  /// Returns the part that this process is in.
  const std::shared_ptr<MeshCore>& own() const { return parts_[static_cast<std::size_t>(own_)]; }
  /// Returns the sum of each output over the micro-batches, on the part `homes` names; where it is
  /// null, on the part of the stage that makes it. Collective over the whole mesh. Communication:
  /// that of the operators, the model's flows, and one move for each argument that a stage reads
  /// from another part and for each output that is made elsewhere. Throws UsageError where the
  /// function cannot be cut, or micro-batches differ in their operators, and MismatchError where
  /// processes have other lists.
  TESSERA_FUNCTION std::vector<TensorCore> run(std::vector<ListedMicroBatch>& micro_batches,
                                               const std::vector<std::shared_ptr<MeshCore>>& homes);

  const PipelineSchedule& schedule() const { return schedule_; }
  /// Returns when the actions of the last run began and ended, on the first process of each part,
  /// with the bytes and peaks of planned(). Collective over the whole mesh. Communication: small,
  /// in no ledger. Throws UsageError before the first run.
  TESSERA_FUNCTION PipelineRun measured() const;
  /// Returns the model of the last run's stages. Throws UsageError before the first.
  TESSERA_FUNCTION const PipelineModel& model() const;
  /// Returns the last run on paper: simulate()'s times, and of each part the exact peak and bytes
  /// on its process that stands there where this one does. Throws UsageError before the first.
  TESSERA_FUNCTION PipelineRun planned() const;

 private:
  TESSERA_FUNCTION const PipelineKnown& known(const std::vector<ListedMicroBatch>& micro_batches);
  PipelineKnown make(const std::vector<ListedMicroBatch>& micro_batches,
                     std::uint64_t digest) const;
  /// How the sums of the outputs end.
  std::vector<PipelineOutput> ends() const;
  std::string words() const;
  std::size_t at_own() const { return static_cast<std::size_t>(own_); }

  std::shared_ptr<MeshCore> whole_;
  std::vector<std::shared_ptr<MeshCore>> parts_;
  StageMap map_;
  PipelineSchedule schedule_;
  Where where_;
  int own_ = 0;
  std::vector<PipelineKnown> known_;
  std::size_t last_ = 0;
  // Of the last run:
  std::vector<PipelineSpan> spans_;  ///< of its actions, in nanoseconds of this process's clock
  std::vector<PipelineArgument> arguments_;
  std::vector<int> homes_;  ///< the part of each output; -1: any
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/pipeline/detail/runner.hpp>
#endif
