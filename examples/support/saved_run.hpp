// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A run of training in a file: its weights, what its optimizer keeps, and the step after which it
/// was written.
///
///     save_run(mesh, "run.safetensors", weights, optimizer, 100, {{"seed", "1", "give --seed 1"}});
///     Index step = resume_run(mesh, "run.safetensors", weights, optimizer, same);   // 100
///
/// Laws: a run goes on with the same losses, on any mesh and split in any way, to rounding; it goes
/// on only where the facts of the two are the same.
#include <string>
#include <utility>
#include <vector>

#include <tessera/io/checkpoint.hpp>

#include "facts.hpp"

namespace support {

using tessera::CheckpointFacts, tessera::DynamicMesh, tessera::DynamicTensor, tessera::Index,
    tessera::UsageError;

/// Throws UsageError where a run that has taken `first` steps has fewer than `left` left of
/// `steps`.
inline void require_steps(Index first, Index steps, Index left = 1) {
  if (first > steps - left)
    throw UsageError("--steps: the run has taken " + std::to_string(first) + " steps and " +
                     std::to_string(steps) + " are asked for; give more");
}

/// A fact that a run and the one which goes on have in common.
struct RunFact {
  std::string name, value;
  std::string way_out;  ///< what to do where they differ
};

template <class Weights> struct SavedRun {
  Weights weights;
  std::vector<DynamicTensor> state;
  static constexpr auto fields = tessera::Fields<&SavedRun::weights, &SavedRun::state>{};
};
template <class Weights, class Optimizer>
SavedRun<Weights> saved_run(const Weights& weights, Optimizer& optimizer) {
  SavedRun<Weights> run{weights, {}};
  optimizer.for_each_state([&](const std::string&, DynamicTensor& t) { run.state.push_back(t); });
  return run;
}

/// Communication, errors: as write_checkpoint.
template <class Weights, class Optimizer>
void save_run(const DynamicMesh& mesh, const std::string& path, const Weights& weights,
              Optimizer& optimizer, Index step, const std::vector<RunFact>& own) {
  CheckpointFacts facts = optimizer.facts();
  facts["step"] = std::to_string(step);
  for (const RunFact& fact : own) facts[fact.name] = fact.value;
  tessera::write_checkpoint(mesh, path, saved_run(weights, optimizer), facts);
}

/// Returns the step that was written. Throws UsageError where a fact of that run is another one.
/// Communication: as read_checkpoint.
template <class Weights, class Optimizer>
Index resume_run(const DynamicMesh& mesh, const std::string& path, Weights& weights,
                 Optimizer& optimizer, const std::vector<RunFact>& own) {
  SavedRun<Weights> read = saved_run(weights, optimizer);
  const CheckpointFacts facts = tessera::read_checkpoint(mesh, path, read);
  for (const RunFact& fact : own) {
    const auto said = facts.find(fact.name);
    if (said == facts.end() || said->second != fact.value)
      throw UsageError("--resume: the run in " + path + " has another " + fact.name + " (" +
                       (said == facts.end() ? "none" : said->second) + ") than this one (" +
                       fact.value + "); " + fact.way_out);
  }
  weights = std::move(read.weights);
  std::size_t next = 0;
  optimizer.for_each_state(
      [&](const std::string&, DynamicTensor& tensor) { tensor = read.state[next++]; });
  optimizer.resume(facts);
  return Facts("--resume", path, facts, "a file that --save has written").number<Index>("step");
}

}  // namespace support
