// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a schedule's chart is written.
///
///     explain(schedule, simulate(model, schedule))
///
/// Laws: those of program/pipeline/chart.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/plan/text.hpp>
#include <tessera/program/pipeline/chart.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

/// Returns how many letters a chart has for a run: each action of the shortest kind gets as many as
/// its name has, where that is not more than `most`.
inline int chart_width(const PipelineSchedule& schedule, const PipelineRun& run, int most) {
  double needed = 0;
  for (std::size_t p = 0; p < run.parts.size(); ++p)
    for (std::size_t i = 0; i < run.parts[p].spans.size(); ++i) {
      const PipelineSpan span = run.parts[p].spans[i];
      const auto letters =
          static_cast<double>(1 + std::to_string(schedule.lists[p][i].micro_batch).size());
      if (span.end > span.begin)
        needed = std::max(needed, letters / static_cast<double>(span.end - span.begin));
    }
  return static_cast<int>(
      std::min(static_cast<double>(most), needed * static_cast<double>(run.time) + 0.999));
}

inline std::string chart_line(const std::vector<PipelineAction>& actions,
                              const std::vector<PipelineSpan>& spans, std::int64_t time,
                              int width) {
  std::string line(static_cast<std::size_t>(width), '.');
  const auto column = [&](std::int64_t t) {
    return time == 0 ? std::size_t{0}
                     : static_cast<std::size_t>(static_cast<double>(t) / static_cast<double>(time) *
                                                    static_cast<double>(width) +
                                                0.5);
  };
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const std::size_t begin = column(spans[i].begin), end = column(spans[i].end);
    std::string name = letter_of(actions[i].pass) + std::to_string(actions[i].micro_batch);
    if (name.size() > end - begin) name.resize(end - begin > 0 ? 1 : 0);
    for (std::size_t c = begin; c < end && c < line.size(); ++c)
      line[c] = c - begin < name.size() ? name[c - begin] : '-';
  }
  return line;
}
}  // namespace detail

TESSERA_FUNCTION std::string explain(const PipelineSchedule& schedule, const PipelineRun& run,
                                     int width) {
  const int letters = detail::chart_width(schedule, run, width);
  detail::TextTable table;
  for (std::size_t p = 0; p < run.parts.size(); ++p) {
    const PipelinePart& part = run.parts[p];
    table.row({"part " + std::to_string(p),
               detail::chart_line(schedule.lists[p], part.spans, run.time, letters),
               "busy " + detail::percent_text(run.time == 0 ? 0
                                                            : static_cast<double>(part.busy) /
                                                                  static_cast<double>(run.time)),
               "peak " + detail::bytes_text(part.peak_bytes),
               "sends " + detail::bytes_text(part.sent_bytes)});
  }
  return schedule.name + ": " + std::to_string(schedule.stages()) + " stages on " +
         std::to_string(schedule.parts()) + " parts, " + std::to_string(schedule.micro_batches) +
         " micro-batches, " + detail::time_text(run.time) + "; parts stand idle " +
         detail::percent_text(run.bubble()) + " of it\n" + table.text("  ");
}

}  // namespace tessera
