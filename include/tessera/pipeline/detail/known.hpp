// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls of micro-batches, and what is known of those of one structure.
///
///     ListedMicroBatch one;      // calls, made on stand-ins
///     PipelineKnown known;       // cut, with its model and instructions
///
/// Laws: micro-batches whose lists have one structure differ in values alone.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/program/pipeline/cut.hpp>
#include <tessera/program/pipeline/instructions.hpp>
#include <tessera/run/list/listing.hpp>

namespace tessera::detail {

/// The calls of a function of one micro-batch, on stand-ins for its arguments.
struct ListedMicroBatch {
  std::unique_ptr<Listing> calls = std::make_unique<Listing>();
  int forward = 0;                  ///< how many of the calls are the way forward
  std::vector<int> outputs;         ///< the numbers of the results in the list
  std::vector<TensorCore> results;  ///< these, which have no values
  std::vector<std::pair<int, TensorCore>>
      given;                          ///< the number of each stand-in, and what it stands for
  std::vector<TensorCore> stand_ins;  ///< which have no values
};

/// Lists of one structure.
struct CutStructure {
  std::uint64_t structure = 0;
  Program program;
  PipelineCut cut;
};

/// All that is known of micro-batches of given structures.
struct PipelineKnown {
  std::uint64_t digest = 0;
  std::vector<CutStructure> structures;
  std::vector<int> of_micro_batch;        ///< in `structures`
  std::vector<std::vector<int>> outputs;  ///< of each micro-batch
  std::vector<TensorDesc> results;        ///< of the first micro-batch
  PipelineModel model;
  std::vector<std::vector<PipelineInstruction>> instructions;  ///< of each part
};

}  // namespace tessera::detail
