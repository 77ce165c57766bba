// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The settings of an optimizer's steps, and their report.
///
///     Optimizer<AdamW> optimizer(AdamW{.decay = 0.1}, weights, {.clip = 1.0, .decays = matrices_only});
///     const StepReport report = optimizer.report();
///     const auto but_tables = [](const std::string& path, const TensorDesc& weight) {
///       return matrices_only(path, weight) && !path.ends_with("table");   // to be .decays
///     };
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/nn/optimizer/loss_scale.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

/// Says something of a weight by its path in the tree and its description, the same on every
/// process.
using WeightPredicate = std::function<bool(const std::string& path, const TensorDesc& weight)>;

/// Returns whether a weight has two dimensions or more, and is no bias and no norm's scale: as the
/// fields of layers have it, the last name of its path is neither "bias" nor "scale" nor ends with
/// "_bias". Biases of attention, and those of all stages, have several dimensions too.
/// Communication: none. Throws nothing of its own.
inline bool matrices_only(const std::string& path, const TensorDesc& weight) {
  const std::string_view name = std::string_view(path).substr(path.rfind('.') + 1);
  return weight.rank() > 1 && name != "bias" && name != "scale" && !name.ends_with("_bias");
}

struct OptimizerOptions {
  double clip = 0;  ///< the greatest norm of all gradients together; 0: any
  /// Whether gradients that are not finite are found, and their step skipped. Without, they go
  /// through to weights and state: no norm bounds them, so that such a step is not clipped; all
  /// calls are updates, and the loss's scale stays.
  bool finite = true;
  LossScale scale = {};  ///< of the loss: the caller multiplies it by loss_scale()
  /// Half types: a master in float is kept under the update's sharding, and the weight is made of
  /// it (Micikevicius et al. 2018), so that gathers and gradients stay narrow.
  bool master = true;
  /// Which weights the rule's `decay` holds for; empty: for all. Where a rule's rate follows the
  /// norms of each weight (Lars), that of the others does not, as biases and norms are left out by
  /// You et al., "Large Batch Optimization for Deep Learning" (2020), in its code for BERT.
  WeightPredicate decays = {};
};

/// A step that was not taken.
struct SkippedStep {
  Index step = 0;                  ///< which call of step() it was, from 1
  std::vector<std::string> paths;  ///< of the tensors whose gradients are not finite
};
struct StepReport {
  Index calls = 0;    ///< of step()
  Index updates = 0;  ///< calls that were not skipped
  double norm = 0;    ///< of all gradients of the last call that could be read, without the scale;
                      ///< 0 where the options ask for neither clip nor finite, infinite where it is
                      ///< no double
  double scale = 1;   ///< of the loss, as these calls leave it: loss_scale() once step() is called
  std::vector<SkippedStep> skipped;  ///< since the last report
};

}  // namespace tessera
