// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of the verbs of a sort.
///
///     kernel_of_verb<step::Sort>(run);        // each line of run.in(0) in order, into run.out()
///
/// Laws: see run/verb/verb_run.hpp.
#include <tessera/kernel/sort/arrange.hpp>
#include <tessera/kernel/sort/merge.hpp>
#include <tessera/kernel/sort/sort.hpp>
#include <tessera/plan/step/sort.hpp>
#include <tessera/run/verb/verb_run.hpp>

namespace tessera::detail {

inline const bool sort_runs = runs(kernel_of_verb<step::Sort>, [](const VerbRun& run) {
  tessera::detail::sort(run.type(), run.work<LocalSort>(), run.in(0), run.out(), run.at.scratch);
});
inline const bool order_runs = runs(kernel_of_verb<step::Order>, [](const VerbRun& run) {
  tessera::detail::order(run.type(), run.work<LocalSort>(), run.in(0), run.in(1), run.out(),
                         run.at.scratch);
});
inline const bool arrange_runs = runs(kernel_of_verb<step::Arrange>, [](const VerbRun& run) {
  tessera::detail::arrange(run.type(), run.work<LocalSort>(), run.in(0), run.in(1), run.out());
});

/// Merges two messages into the tensors of a step.
inline void run_merge(const VerbRun& run) {
  const auto& work = run.work<MergeWork>();
  const auto in = [](const void* message, Index bytes) {
    return static_cast<const std::byte*>(message) + bytes;
  };
  MergeRuns runs;
  for (int k = 0; k < work.tensors.size(); ++k) {
    const MergedTensor& tensor = work.tensors[k];
    runs.add(in(run.in(0), tensor.own), in(run.in(1), tensor.other),
             const_cast<void*>(run.in(k + 2)), size_of(tensor.type));
  }
  tessera::detail::merge(run.plan.slots[run.step().in[0]].desc.type, work.lines, runs);
}
inline const bool merge_runs = runs(kernel_of_verb<step::Communicate>, &run_merge);

}  // namespace tessera::detail
