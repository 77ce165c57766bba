// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The drawing of a pipeline's schedule.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include <tessera/program/pipeline/schedules.hpp>
#include <tessera/show/pipeline_svg.hpp>

using namespace tessera;

TEST_CASE("pipeline: an SVG draws each action once, in its part's row") {
  const PipelineStage stage{{1'000'000, 10, 10}, {1'000'000, 0, 0}, {1'000'000, 0, -10}};
  for (const PipelineSchedule& s :
       {gpipe(3, 4), zero_bubble(3, 5), interleaved(2, 3, 4), zero_bubble_v(2, 3)}) {
    const std::string svg = draw_svg(s, simulate(PipelineModel::chain(s.stages(), stage), s), 2000);
    const auto count = [&](const std::string& what) {
      std::size_t n = 0;
      for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1))
        ++n;
      return n;
    };
    std::size_t actions = 0;
    for (std::size_t p = 0; p < s.lists.size(); ++p) {
      actions += s.lists[p].size();
      CHECK(count(">part " + std::to_string(p) + "<") == 1);
      for (const PipelineAction& a : s.lists[p])
        CHECK(count(std::string(">") + letter_of(a.pass) + std::to_string(a.micro_batch) + "<") ==
              static_cast<std::size_t>(s.stages()));
    }
    CHECK(count("stroke=\"#fff\"") == actions);
    CHECK(svg.rfind("<svg xmlns=", 0) == 0);
    CHECK(svg.find(s.name) != std::string::npos);
  }
}
