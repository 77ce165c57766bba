// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of the verbs of sliding windows.
///
///     kernel_of_verb<step::ReduceWindow>(run);    // run.in(0) under each window, into run.out()
///
/// Laws: see run/verb/verb_run.hpp.
#include <tessera/kernel/convolve/convolve.hpp>
#include <tessera/kernel/window/reduce_window.hpp>
#include <tessera/kernel/window/select_scatter.hpp>
#include <tessera/plan/step/window.hpp>
#include <tessera/run/verb/verb_run.hpp>

namespace tessera::detail {

inline const bool convolve_runs = runs(kernel_of_verb<step::Convolve>, [](const VerbRun& run) {
  tessera::detail::convolve(run.type(), run.work<LocalConvolve>(), run.in(0), run.in(1), run.out(),
                            run.extras.portable ? Convolver::portable : Convolver::fastest);
});
inline const bool reduce_window_runs =
    runs(kernel_of_verb<step::ReduceWindow>, [](const VerbRun& run) {
      tessera::detail::reduce_window(run.type(), run.plan.reduction, run.work<LocalReduceWindow>(),
                                     run.in(0), run.out(), run.scale);
    });
inline const bool select_and_scatter_runs =
    runs(kernel_of_verb<step::SelectAndScatter>, [](const VerbRun& run) {
      tessera::detail::select_and_scatter(run.type(), run.plan.reduction == Reduction::max,
                                          run.work<LocalSelectScatter>(), run.in(0), run.in(1),
                                          run.at.scratch, run.out());
    });
inline const bool select_and_gather_runs =
    runs(kernel_of_verb<step::SelectAndGather>, [](const VerbRun& run) {
      tessera::detail::select_and_gather(run.type(), run.plan.reduction == Reduction::max,
                                         run.work<LocalReduceWindow>(), run.in(0), run.in(1),
                                         run.out());
    });

}  // namespace tessera::detail
