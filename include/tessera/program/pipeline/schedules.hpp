// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The known schedules of pipelines, for any numbers of stages and micro-batches.
///
///     gpipe(4, 8);                       // all forward, then all back
///     one_f_one_b(4, 8);                 // as few micro-batches under way as keep all parts busy
///     interleaved(4, 2, 8);              // each of 4 parts has stages p and p + 4
///     zero_bubble(4, 8);                 // the way back by weights fills the gaps
///     zero_bubble_v(4, 8);               // each part has stages p and 7 - p
///
/// With p parts, m micro-batches, and times F, I, W of a stage's passes (B = I + W), on paper:
///
/// | schedule | idle time | micro-batches held | source |
/// |---|---|---|---|
/// | gpipe | (p-1)(F+B) | m | GPipe, section 2.3 |
/// | one_f_one_b | (p-1)(F+B) | p | PipeDream-2BW, section 3.2 |
/// | interleaved, v stages a part | (p-1)(F+B)/v | p + (p-1)/v | Megatron-LM, section 2.2 |
/// | zero_bubble | (p-1)(F+I-W) | p | Zero Bubble, ZB-H1 |
/// | zero_bubble_v | near 0 where F = I = W | p | Zero Bubble, section 6, ZB-V |
///
/// Sources: GPipe, Huang et al., arXiv:1811.06965. PipeDream-2BW, Narayanan et al.,
/// arXiv:2006.09503. Megatron-LM, Narayanan et al., arXiv:2104.04473. Zero Bubble, Qi et al.,
/// arXiv:2401.10241.
///
/// Laws: each is without a fault for a chain of stages (tests/program/pipeline.test.cpp, all small
/// numbers).
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/model.hpp>

namespace tessera {

/// Returns the schedule in which each stage, in a part of its own, goes forward by all
/// micro-batches and then back by all. Throws UsageError unless both numbers are at least 1, as do
/// the others.
TESSERA_FUNCTION PipelineSchedule gpipe(int stages, int micro_batches, Where where = Where::here());

/// Returns the schedule in which each stage, in a part of its own, goes back by a micro-batch as
/// soon as it may, and forward by as many before as there are stages from it on.
TESSERA_FUNCTION PipelineSchedule one_f_one_b(int stages, int micro_batches,
                                              Where where = Where::here());

/// Returns the schedule in which part p has the stages p, p + parts, p + 2 parts, …, `each` of
/// them, and takes micro-batches in groups of `parts`; the last group may have fewer.
TESSERA_FUNCTION PipelineSchedule interleaved(int parts, int each, int micro_batches,
                                              Where where = Where::here());

/// Returns one_f_one_b with the way back in two steps, of which stage s does that by weights s
/// micro-batches later: it fills the gaps at the end, and no stage holds more than the first.
TESSERA_FUNCTION PipelineSchedule zero_bubble(int stages, int micro_batches,
                                              Where where = Where::here());

/// Returns the schedule of 2 parts stages, of which part p has p and 2 parts - 1 - p, with the way
/// back in two steps.
TESSERA_FUNCTION PipelineSchedule zero_bubble_v(int parts, int micro_batches,
                                                Where where = Where::here());

/// What a list scheduler prefers among the actions that a part could begin.
struct PipelinePolicy {
  int most_held = 0;  ///< stages' micro-batches that a part holds at once; 0: any number
  bool whole =
      false;  ///< a part takes up a micro-batch only if it may hold it at all of its stages
  bool depth_first =
      true;           ///< forward: the later stage of a part first, else the earlier micro-batch
  bool split = true;  ///< the way back goes in two steps
};

/// Returns the schedule that results when each part begins, as soon as it is free, what it can: the
/// way back by inputs first, then forward, then the way back by weights. Empty lists where the
/// policy comes to a standstill. Source: list scheduling, Graham (1966).
TESSERA_FUNCTION PipelineSchedule list_schedule(const PipelineModel& model,
                                                const std::vector<int>& part_of, int parts,
                                                int micro_batches, const PipelinePolicy& policy);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/schedules.hpp>
#endif
