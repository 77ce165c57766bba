// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// When a pipeline's stages did what, as tracks of a trace: one for each stage.
///
///     trace.tracks = stage_tracks(one_f_one_b(2, 3), run, 0);
///     trace.tracks[1].name;             // "stage 1, part 1": its spans are F0, B0, F1, ...
///
/// Laws: each action of the schedule is one span, of its stage's track, in the order of its part.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/program/pipeline/simulate.hpp>
#include <tessera/program/trace.hpp>

namespace tessera {

/// Returns the tracks of a run that began `begin` nanoseconds after its trace. Communication: none.
inline std::vector<TraceTrack> stage_tracks(const PipelineSchedule& schedule,
                                            const PipelineRun& run, std::int64_t begin = 0) {
  std::vector<TraceTrack> tracks;
  for (int s = 0; s < schedule.stages(); ++s)
    tracks.push_back(
        {"stage " + std::to_string(s) + ", part " + std::to_string(schedule.part(s)), {}});
  for (std::size_t p = 0; p < run.parts.size(); ++p)
    for (std::size_t i = 0; i < run.parts[p].spans.size(); ++i) {
      const PipelineAction& a = schedule.lists[p][i];
      const PipelineSpan& span = run.parts[p].spans[i];
      tracks[static_cast<std::size_t>(a.stage)].spans.push_back(
          {begin + span.begin / 1000, begin + span.end / 1000,
           letter_of(a.pass) + std::to_string(a.micro_batch)});
    }
  return tracks;
}

}  // namespace tessera
