// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a pipeline's stages need: time and memory of each pass, and which pass needs what another
/// has made.
///
///     PipelineModel m = PipelineModel::chain(4, {.forward = {1000}, .inputs = {1000}, .weights = {1000}});
///     m.flows.size() == 6;        // three forward, and three on the way back
///
/// Laws: in a chain stage s reads, forward, what stage s - 1 has made, and, on the way back, what
/// stage s + 1 has; each pass reads what its own stage has made in the passes before it.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/program/pipeline/schedule.hpp>

namespace tessera {

/// What a stage does in one pass with one micro-batch, on one process.
struct PipelineUnit {
  std::int64_t time = 0;  ///< picoseconds
  Index peak = 0;         ///< the most bytes at once beside those that were held when it began
  Index held = 0;  ///< by how many bytes more (or fewer: negative) are held at its end, beside
                   ///< what it was sent, whose room is given back then
};

/// A stage's three passes. `backward` is the last two, one after the other.
struct PipelineStage {
  PipelineUnit forward, inputs, weights;

  PipelineUnit& unit(PipelinePass pass) {
    return pass == PipelinePass::forward            ? forward
           : pass == PipelinePass::backward_weights ? weights
                                                    : inputs;
  }
  /// Precondition: the pass is not `backward`.
  const PipelineUnit& unit(PipelinePass pass) const {
    return const_cast<PipelineStage*>(this)->unit(pass);
  }
  std::int64_t time() const { return forward.time + inputs.time + weights.time; }
};

/// A pass of a stage; it is `backward` of none.
struct PipelinePlace {
  PipelinePass pass = PipelinePass::forward;
  int stage = 0;
  /// Returns 0, 1 or 2: forward, back by inputs, back by weights.
  constexpr std::size_t step() const {
    return pass == PipelinePass::forward ? 0 : pass == PipelinePass::backward_weights ? 2 : 1;
  }
  /// Returns its number among all stages' passes: 3 stage + step().
  constexpr std::size_t number() const { return 3 * static_cast<std::size_t>(stage) + step(); }
  constexpr bool operator==(const PipelinePlace&) const = default;
};

/// For each micro-batch, `to` needs what `from` has made.
struct PipelineFlow {
  PipelinePlace from, to;
  Index bytes = 0;        ///< that a process sends of each micro-batch
  Index most_bytes = 0;   ///< that any process of its part does: its time is of these
  Index room = 0;         ///< bytes of memory that they lie in, on either side
  Index kept = 0;         ///< of them: what the sender's stage keeps for a later pass anyway
  std::int64_t time = 0;  ///< picoseconds from the end of `from` until they are there
};

struct PipelineModel {
  std::vector<PipelineStage> stages;
  std::vector<PipelineFlow> flows;  ///< between different stages

  /// Returns stages that are alike, each of which needs the one before it.
  static PipelineModel chain(int stages, const PipelineStage& each, Index bytes = 0,
                             std::int64_t transfer = 0) {
    PipelineModel m;
    m.stages.assign(static_cast<std::size_t>(stages), each);
    for (int s = 0; s + 1 < stages; ++s) {
      for (const PipelinePass pass : {PipelinePass::forward, PipelinePass::backward_inputs}) {
        const int from = pass == PipelinePass::forward ? s : s + 1;
        m.flows.push_back(
            {{pass, from}, {pass, 2 * s + 1 - from}, bytes, bytes, bytes, 0, transfer});
      }
    }
    return m;
  }
};

}  // namespace tessera
