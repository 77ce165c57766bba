// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The settings of an optimizer's steps, and their report.
///
///     Optimizer<Sgd> optimizer(Sgd{.rate = 0.1}, weights, {.clip = 1.0});
///     const StepReport report = optimizer.report();
#include <string>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/nn/optimizer/loss_scale.hpp>

namespace tessera {

struct OptimizerOptions {
  double clip = 0;     ///< the greatest norm of all gradients together; 0: any
  bool finite = true;  ///< whether gradients that are not finite are found, and their step skipped
  LossScale scale = {};  ///< of the loss: the caller multiplies it by loss_scale()
  /// Half types: a master in float is kept under the update's sharding, and the weight is made of
  /// it (Micikevicius et al. 2018), so that gathers and gradients stay narrow.
  bool master = true;
};

/// A step that was not taken.
struct SkippedStep {
  Index step = 0;                  ///< which call of step() it was, from 1
  std::vector<std::string> paths;  ///< of the tensors whose gradients are not finite
};
struct StepReport {
  Index calls = 0;    ///< of step()
  Index updates = 0;  ///< calls that were not skipped
  double norm = 0;    ///< of all gradients of the last call that could be read, without the scale
  double scale = 1;   ///< of the loss from now on
  std::vector<SkippedStep> skipped;  ///< since the last report
};

}  // namespace tessera
