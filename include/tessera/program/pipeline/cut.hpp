// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Program cut into the stages of a pipeline: to which pass of which stage each operator belongs,
/// and what goes from one to the other.
///
///     const StageMap map{{"embed", 0}, {"block.0", 0}, {"block.1", 1}, {"head", 1}};
///     const PipelineCut cut = cut_pipeline(program, forward, outputs, map, 2);
///     cut.model.flows[0].bytes;          // of a micro-batch, from stage 0 to stage 1
///
/// An operator belongs to the stage of its layer. One in no layer of the map belongs, forward, to
/// the last stage that makes one of its operands, else to the first that reads its result; on the
/// way back to the first stage that makes a gradient which it reads. On the way back the operators
/// on which another stage waits are its way back by inputs, and the others are that by weights.
///
/// Laws: each operator has one place; a tensor goes to a stage once, to the first of its passes
/// that reads it; no pass waits for itself.
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/pipeline/model.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// Which stage a layer belongs to, by its path; layers within it do too, unless they are named
/// themselves.
class StageMap {
 public:
  StageMap() = default;
  StageMap(std::initializer_list<std::pair<std::string, int>> layers) : layers_(layers) {}
  void add(std::string layer, int stage) { layers_.emplace_back(std::move(layer), stage); }

  /// Returns the number of the longest entry that holds a layer's path; -1: none does.
  int entry_of(std::string_view path) const {
    int best = -1;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const std::string& layer = layers_[i].first;
      const bool holds =
          path.starts_with(layer) && (path.size() == layer.size() || path[layer.size()] == '/');
      if (holds &&
          (best < 0 || layer.size() > layers_[static_cast<std::size_t>(best)].first.size()))
        best = static_cast<int>(i);
    }
    return best;
  }
  const std::vector<std::pair<std::string, int>>& layers() const { return layers_; }
  /// Returns how many stages it names: 1 more than the largest.
  int stages() const {
    int count = 0;
    for (const auto& [layer, stage] : layers_) count = stage >= count ? stage + 1 : count;
    return count;
  }

 private:
  std::vector<std::pair<std::string, int>> layers_;
};

/// A result that a pass makes.
struct CutOutput {
  int number = 0;     ///< among the results
  bool last = false;  ///< nothing reads the tensor or returns it once more after this
};

/// What a stage does in one pass.
struct CutUnit {
  std::vector<int> entries;  ///< of the Program, in order
  std::vector<int> ends;     ///< tensors that the stage has no use for after this pass
  /// After each of `entries`, those of `ends` that no later one reads; one that is sent ends with
  /// the pass.
  std::vector<std::vector<int>> over;
  std::vector<int> flows;  ///< of the model, that begin here
  std::vector<CutOutput> outputs;
};

struct PipelineCut {
  PipelineModel model;
  std::vector<CutUnit> units;               ///< by PipelinePlace::number
  std::vector<std::vector<int>> moved;      ///< for each flow of the model: the tensors
  std::vector<std::vector<int>> arguments;  ///< for each stage: the arguments that it reads
  std::vector<PipelinePlace> made;          ///< for each output: the pass that makes it

  CutUnit& unit(PipelinePlace p) { return units[p.number()]; }
  const CutUnit& unit(PipelinePlace p) const { return units[p.number()]; }
};

/// Returns how a Program is cut whose first `forward` operators are the way forward, and whose
/// results are the tensors `outputs`. Communication: none. Throws UsageError where the map names a
/// stage that there is not or a layer without operators, where stages wait for each other, and
/// where operators of several passes write one tensor.
TESSERA_FUNCTION PipelineCut cut_pipeline(const Program& program, int forward,
                                          const std::vector<int>& outputs, const StageMap& map,
                                          int stages, Where where = Where::here());

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/pipeline/detail/cut.hpp>
#endif
