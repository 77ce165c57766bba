// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls and copies of a step that moves elements, computed for the plan's process.
///
///     detail::MoveWork work = detail::move_work(plan, plan.steps[0]);      // work.call, work.pack, work.unpack
///
/// Laws: the calls are those that a PMPI layer intercepts; their payload_bytes and network_bytes
/// add up to the step's; the staging memory adds up to step.scratch.
#include <tessera/plan/move/merge_split.hpp>
#include <tessera/plan/move/relocation.hpp>
#include <tessera/plan/move/staged.hpp>
#include <tessera/plan/region/region_work.hpp>
#include <tessera/plan/work/collective_work.hpp>

namespace tessera::detail {

/// Returns the work of a step that communicates, or takes regions, on the plan's process; for a
/// step in several rounds, of round `round`.
inline MoveWork move_work(const Plan& plan, const Step& step, Index round = 0) {
  if (step.region >= 0) return region_work(plan, step);
  if (is_relocation(plan, step)) return relocation_work(plan, step, round);
  if (step.merges) return merge_work(plan, step, round);
  return step.near.empty() ? CollectiveWork(plan, step).make() : StagedWork(plan, step).make();
}

}  // namespace tessera::detail
