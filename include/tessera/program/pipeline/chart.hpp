// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A schedule as a chart: a line for each part, time from left to right. show/pipeline_svg.hpp
/// draws the same as an SVG.
///
///     explain(one_f_one_b(2, 3), run)
///
///     part 0  F0F1....B0--F2B1--..B2--  busy 75.0 %  peak 4 KiB    sends 1.5 KiB
///     part 1  ..F0B0--F1B1--F2B2--....  busy 75.0 %  peak 2.5 KiB  sends 1.5 KiB
///
/// Laws: the text is a function of its arguments alone; a chart is at most `width` wide, and an
/// action of less than a letter's time shares its letter's place with the one after it.
#include <cstdio>
#include <string>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/simulate.hpp>

namespace tessera {
namespace detail {
inline std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}
}  // namespace detail

/// Returns the chart of a run that simulate() or a trace has given, with the share of time in which
/// each part is busy, its peak, and what it sends. Communication: none.
TESSERA_FUNCTION std::string explain(const PipelineSchedule& schedule, const PipelineRun& run,
                                     int width = 96);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/chart.hpp>
#endif
