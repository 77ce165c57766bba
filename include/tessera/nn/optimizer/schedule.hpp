// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Learning rates as functions of the step, which counts from 1.
///
///     const Schedule rate = WarmupCosine{.peak = 3e-4, .warmup = 2000, .steps = 100000};
///     rate(2000);                                  // 3e-4
///     const Schedule same = 0.1;                   // at every step
///
/// Laws: pure: the rate depends on the step alone, so that a run that is continued goes on as it
/// would have.
#include <cmath>
#include <functional>
#include <numbers>
#include <type_traits>
#include <utility>

#include <tessera/base/math.hpp>

namespace tessera {

/// Any function of the step, or a number for every step.
class Schedule {
 public:
  Schedule(double rate) : at_([rate](Index) { return rate; }) {}  // NOLINT: a number is enough
  template <class F>
    requires(std::is_invocable_r_v<double, const F&, Index> &&
             !std::is_same_v<std::remove_cvref_t<F>, Schedule>)
  Schedule(F at) : at_(std::move(at)) {}  // NOLINT: and so is a function
  double operator()(Index step) const { return at_(step); }

 private:
  std::function<double(Index)> at_;
};

/// Rises linearly to `peak` over `warmup` steps, then falls to `floor` at step `steps` along half a
/// cosine. Source: Loshchilov and Hutter, "SGDR" (2017), equation 5, without restarts; the warm-up
/// of Goyal et al. 2017, section 2.2.
struct WarmupCosine {
  double peak = 1e-3;
  Index warmup = 0;
  Index steps = 1;
  double floor = 0;
  double operator()(Index step) const {
    if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
    if (step >= steps || steps <= warmup) return steps <= warmup && step < steps ? peak : floor;
    const double part = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
    return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * part));
  }
};

/// `rate` over the square root of the step, and as at step `constant` before: with 1.0 and 10,000
/// what GShard trains with (section A.2: "1.0 learning rate with square root decay after 10k
/// training steps"), 0.01 for the first 10,000 steps. Source: Shazeer and Stern, "Adafactor"
/// (2018), section 9: 1 / sqrt(t), at most 0.01.
struct InverseSquareRoot {
  double rate = 1;
  Index constant = 10000;
  double operator()(Index step) const {
    return rate / std::sqrt(static_cast<double>(max_of(max_of(step, constant), Index{1})));
  }
};

}  // namespace tessera
