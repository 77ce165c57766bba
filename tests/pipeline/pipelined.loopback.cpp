// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pipelines on loopback: losses and gradients by every schedule are those of one part, bytes and
// peaks are as planned, and what cannot be cut is refused in words.
#include <doctest/doctest.h>

#include "op/cases.hpp"
#include "op/texts_of.hpp"
#include "pipeline/pipeline_case.hpp"

using namespace support;

namespace {

/// A schedule, a map of four blocks and micro-batches, chosen by a seed.
PipelineCase some_case(Random& random, int processes) {
  PipelineCase c;
  do {
    c.parts = 1 + random.below(processes);
  } while (processes % c.parts != 0 || c.parts > 4);
  const int m = 1 + random.below(6), each = 1 + random.below(2);
  switch (random.below(5)) {
    case 0:
      c.schedule = gpipe(c.parts, m);
      break;
    case 1:
      c.schedule = one_f_one_b(c.parts, m);
      break;
    case 2:
      c.schedule = zero_bubble(c.parts, m);
      break;
    case 3:
      c.schedule = interleaved(c.parts, each, m);
      break;
    default:
      c.schedule = zero_bubble_v(c.parts, m);
  }
  const int stages = c.schedule.stages();
  for (int b = 0; b < 4; ++b) c.stage_of.push_back(random.below(stages));
  std::sort(c.stage_of.begin(), c.stage_of.end());
  const bool even = random.chance(50);
  for (int k = 0; k < m; ++k)
    c.rows.push_back(even && k > 0 ? c.rows[0] : static_cast<Index>(random.below(6)));
  return c;
}

}  // namespace

TEST_CASE("pipeline: any schedule gives the loss and the gradients of one part") {
  const std::uint64_t seed = seed_for("pipelines", 381);
  for (const int processes : {1, 2, 3, 4, 6, 8})
    for (int round = 0; round < cases_of(4, 60); ++round) {
      Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
      const PipelineCase c = some_case(random, processes);
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
        return round % 4 == 3 ? pipeline_case<float>(transport, c, 1e-5)
                              : pipeline_case<double>(transport, c, 1e-12);
      })));
    }
}

TEST_CASE("pipeline: the peak of a part is that of a dry run") {
  for (const int processes : {2, 4})
    for (const PipelineSchedule& schedule :
         {gpipe(2, 4), one_f_one_b(2, 4), zero_bubble(2, 4), interleaved(2, 2, 4)}) {
      const int last = schedule.stages() - 1;
      const PipelineCase c{2, schedule, {0, last / 2, last, last}, {6, 6, 6, 6}};
      CHECK(quiet(texts_of(
          processes, [&](const std::shared_ptr<Transport>& t) { return pipeline_peak(t, c); })));
    }
}
