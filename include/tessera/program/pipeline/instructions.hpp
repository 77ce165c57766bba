// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What each part of a pipeline does, in order: its actions, and between them when it makes room
/// for what arrives, when it sends, and when what it has sent may go.
///
///     const auto lists = pipeline_instructions(model, schedule);
///     lists[1][0]     // receive: what stage 0 sends of micro-batch 0 is expected from here on
///
/// Laws: a part that carries its list out ends, whatever the others' speeds: no wait closes a
/// cycle. The messages of one flow are expected in the order in which they are sent. What arrives
/// has room one action before the one that reads it, or earlier; what was sent is held until the
/// other part expects it.
#include <cstdint>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/check.hpp>

namespace tessera {

struct PipelineInstruction {
  enum class Kind : std::uint8_t {
    receive,  ///< makes room, and expects a message
    arrived,  ///< waits for it
    act,      ///< carries the action out
    send,     ///< sends a message from where it lies
    sent,     ///< waits until it has gone
  };
  Kind kind = Kind::act;
  int action = 0;       ///< in the part's list: the one that is carried out, or that comes next
  int flow = -1;        ///< of the model, for messages
  int micro_batch = 0;  ///< of the message
  constexpr bool operator==(const PipelineInstruction&) const = default;
};

/// Returns the instructions of each part. Flows between stages of one part have none.
/// Communication: none. Throws UsageError where check_schedule finds a fault.
TESSERA_FUNCTION std::vector<std::vector<PipelineInstruction>> pipeline_instructions(
    const PipelineModel& model, const PipelineSchedule& schedule, Where where = Where::here());

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/simulate.hpp>
#endif
