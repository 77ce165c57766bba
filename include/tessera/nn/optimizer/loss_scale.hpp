// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A factor of the loss that keeps the gradients of half types from vanishing.
///
///     LossScale scale = LossScale::automatic(65536);
///     scale.skipped();             // 32768
///     scale.went_well();           // twice as much after `interval` of them
///
/// Laws: powers of two change no gradient that does not overflow or vanish.
#include <tessera/base/math.hpp>

namespace tessera {

/// Source: Micikevicius et al., "Mixed Precision Training" (2018), section 3.2; the values are
/// those of PyTorch's GradScaler.
struct LossScale {
  double value = 1;
  double growth = 1;   ///< by which `value` is multiplied after `interval` steps that went well
  double backoff = 1;  ///< the same after a step that was skipped
  Index interval = 2000;
  Index good = 0;  ///< steps that went well since the last change

  /// Returns one that finds its value by itself.
  static LossScale automatic(double first = 65536) { return {first, 2, 0.5, 2000, 0}; }
  void went_well() {
    if (++good < interval) return;
    good = 0;
    value *= growth;
  }
  void skipped() {
    good = 0;
    value *= backoff;
  }
};

}  // namespace tessera
