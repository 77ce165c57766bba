// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pipeline's schedule as a drawing: a self-contained SVG with a row for each part, time from
/// left to right, a shade for each pass, and one hue for the stages of each place in their part.
///
///     std::ofstream("schedule.svg") << draw_svg(schedule, simulate(model, schedule));
///
/// Laws: the text is a function of its arguments alone; each action is drawn once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/program/pipeline/chart.hpp>
#include <tessera/show/draw_svg.hpp>

namespace tessera {
namespace detail {
/// A colour for a pass of a part's k-th stage.
inline std::string pass_color(PipelinePass pass, int k) {
  static constexpr int base[4][3] = {
      {150, 190, 240}, {160, 215, 160}, {150, 215, 190}, {240, 205, 140}};
  const int* c = base[static_cast<std::size_t>(pass)];
  std::string text = "#";
  for (int i = 0; i < 3; ++i) {
    const int level = std::max(60, c[i] - 30 * (k % 4));
    text += "0123456789abcdef"[level / 16];
    text += "0123456789abcdef"[level % 16];
  }
  return text;
}
}  // namespace detail

/// Returns the drawing of a schedule that ran as `run` says, `width` pixels wide. Communication:
/// none.
inline std::string draw_svg(const PipelineSchedule& schedule, const PipelineRun& run,
                            int width = 960) {
  using detail::SvgText;
  SvgText svg;
  constexpr int left = 70, top = 30, row = 24;
  const int right = 20 + SvgText::width("busy 100.0 %, peak 1023.9 MiB");
  width = std::max(width, left + right + 100);
  const auto x = [&](std::int64_t t) {
    return left + (run.time == 0
                       ? 0
                       : static_cast<int>(static_cast<double>(t) / static_cast<double>(run.time) *
                                          static_cast<double>(width - left - right)));
  };
  std::vector<int> place(static_cast<std::size_t>(schedule.stages()));
  for (int s = 0; s < schedule.stages(); ++s)
    for (int before = 0; before < s; ++before)
      place[static_cast<std::size_t>(s)] += schedule.part(before) == schedule.part(s) ? 1 : 0;
  svg.text(left, 18,
           schedule.name + ", " + std::to_string(schedule.micro_batches) + " micro-batches: " +
               detail::time_text(run.time) + ", idle " + detail::percent_text(run.bubble()),
           "class=\"t\"");
  for (std::size_t p = 0; p < run.parts.size(); ++p) {
    const PipelinePart& part = run.parts[p];
    const int y = top + row * static_cast<int>(p);
    svg.text(6, y + 16, "part " + std::to_string(p));
    svg.rectangle(left, y, x(run.time) - left, row - 4, "fill=\"#f4f4f4\"");
    for (std::size_t i = 0; i < part.spans.size(); ++i) {
      const PipelineAction& a = schedule.lists[p][i];
      const int begin = x(part.spans[i].begin), end = x(part.spans[i].end);
      svg.rectangle(begin, y, std::max(1, end - begin), row - 4,
                    "stroke=\"#fff\" fill=\"" +
                        detail::pass_color(a.pass, place[static_cast<std::size_t>(a.stage)]) +
                        "\"");
      const std::string name = letter_of(a.pass) + std::to_string(a.micro_batch);
      if (SvgText::width(name) <= end - begin)
        svg.text((begin + end) / 2, y + 15, name, "class=\"o\"");
    }
    const double busy =
        run.time == 0 ? 0 : static_cast<double>(part.busy) / static_cast<double>(run.time);
    svg.text(
        x(run.time) + 8, y + 15,
        "busy " + detail::percent_text(busy) + ", peak " + detail::bytes_text(part.peak_bytes));
  }
  return svg.document(width, top + row * static_cast<int>(run.parts.size()) + 8);
}

}  // namespace tessera
