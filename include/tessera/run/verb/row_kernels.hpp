// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of verbs along rows that several operators have: moments and exact sums.
///
///     kernel_of_verb<step::Moments>(run);     // of each row of run.in(0), into run.out()
///
/// Laws: see run/verb/verb_run.hpp.
#include <cstdint>

#include <tessera/kernel/rows/bins.hpp>
#include <tessera/kernel/rows/moments.hpp>
#include <tessera/plan/step/bins.hpp>
#include <tessera/plan/step/moments.hpp>
#include <tessera/run/verb/verb_run.hpp>

namespace tessera::detail {

inline std::int64_t* integers(void* memory) { return static_cast<std::int64_t*>(memory); }
inline const std::int64_t* integers(const void* memory) {
  return static_cast<const std::int64_t*>(memory);
}

inline const bool moments_runs = runs(kernel_of_verb<step::Moments>, [](const VerbRun& run) {
  // with a mean that is known, or one to write, or neither
  const Step& step = run.step();
  void* const mean = step.also.empty() ? nullptr : run.also(0);
  tessera::detail::moments(run.type(), run.work<LocalReduce>(), run.in(0),
                           step.in.size() > 1 ? run.in(1) : nullptr, run.scale, mean, run.out(),
                           step.as<step::Moments>().centred);
});
inline const bool exponent_runs = runs(kernel_of_verb<step::Exponent>, [](const VerbRun& run) {
  tessera::detail::exponents(run.type(), run.work<LocalBins>(), run.in(0), integers(run.out()));
});
inline const bool bins_runs = runs(kernel_of_verb<step::Bins>, [](const VerbRun& run) {
  tessera::detail::bins(run.type(), run.work<LocalBins>(), run.in(0), integers(run.in(1)),
                        integers(run.out()));
});
inline const bool unbin_runs = runs(kernel_of_verb<step::Unbin>, [](const VerbRun& run) {
  tessera::detail::unbin(run.made().desc.type, run.work<LocalBins>(), run.scale != 1,
                         integers(run.in(0)), integers(run.in(1)), run.out());
});

}  // namespace tessera::detail
