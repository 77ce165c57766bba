// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the calls of an optimizer's step() did: how many there were, how many were updates, and the
/// loss's scale that follows from them.
///
///     const double scale = steps.loss_scale();       // of the loss of this step
///     const Index update = steps.begin(site);        // the first is 1
///     steps.end(scale, check);                       // looked at when it can be read
///
/// Laws: reports and facts change nothing: loss_scale() changes by begin() and resume() alone, so
/// that what it returned before step() is the scale that step() divides by. step() looks at the
/// steps before it alone, so that none waits for its own numbers. A step in a function that failed
/// is none.
#include <utility>
#include <vector>

#include <tessera/nn/optimizer/facts.hpp>
#include <tessera/nn/optimizer/gradient_norm.hpp>
#include <tessera/nn/optimizer/step_report.hpp>
#include <tessera/run/taker.hpp>

namespace tessera::detail {

class StepsSoFar {
 public:
  /// `finite`: whether steps of gradients that are not finite are skipped.
  StepsSoFar(const LossScale& scale, bool finite)
      : finite_(finite), scale_(scale), loss_scale_(scale.value) {}

  double loss_scale() const { return loss_scale_; }
  /// Counts a call, and returns which update it is. Throws UsageError where that is not known.
  Index begin(CallSite site) {
    settle();
    if (finite_ && taker_of_thread != nullptr)
      for (const Attempt& one : attempts_)
        if (one.check.promised())
          throw UsageError(
              "an optimizer takes a second step in a compiled or async function while an earlier "
              "one has not run, so that nobody knows whether that is skipped; a step that is "
              "skipped does not count, and leaves the loss's scale smaller; take one step in a "
              "function, and wait for it, or make the optimizer with .finite = false",
              site.where);
    loss_scale_ = scale_.value;
    ++calls_;
    return ++updates_;
  }
  /// Keeps what tells how the call went: `check`, of gradients of a loss times `scale`.
  void end(double scale, GradientCheck check) {
    attempts_.push_back({calls_, scale, std::move(check)});
  }
  Index updates() {
    settle();
    return updates_;
  }
  /// Returns what the calls since the last report did; path(i) is the path of gradient i.
  template <class F> StepReport report(const F& path, CallSite site) {
    settle();
    StepReport made{calls_, updates_, norm_, scale_.value, {}};
    for (const Attempt& one : std::exchange(failed_, {})) {
      SkippedStep skipped{one.call, {}};
      for (const int i : one.check.not_finite(site)) skipped.paths.push_back(path(i));
      made.skipped.push_back(std::move(skipped));
    }
    return made;
  }
  StepCounts counts() {
    settle();
    return {calls_, updates_, loss_scale_, scale_.value, scale_.good};
  }
  /// Goes on as if its calls had been those of the counts.
  void resume(const StepCounts& counts) {
    calls_ = counts.calls;
    updates_ = counts.updates;
    loss_scale_ = counts.loss_scale;
    scale_.value = counts.next_loss_scale;
    scale_.good = counts.good_steps;
    norm_ = 0;
    attempts_.clear();
    failed_.clear();
  }

 private:
  /// A call of step() whose gradients have not been looked at.
  struct Attempt {
    Index call = 0;
    double scale = 1;
    GradientCheck check;
  };

  /// Counts what the calls did whose gradients can be read now.
  void settle() {
    std::vector<Attempt> left;
    for (Attempt& one : std::exchange(attempts_, {})) {
      if (one.check.broken()) {
        --calls_;
        --updates_;
        continue;
      }
      if (!one.check.readable()) {
        left.push_back(std::move(one));
        continue;
      }
      const Squares squares = one.check.squares();
      norm_ = squares.norm(1 / one.scale);
      if (!finite_) continue;
      if (squares.finite()) {
        scale_.went_well();
        continue;
      }
      --updates_;
      scale_.skipped();
      failed_.push_back(std::move(one));
    }
    attempts_ = std::move(left);
  }

  bool finite_;
  LossScale scale_;        ///< after all calls that were looked at
  double loss_scale_ = 1;  ///< of the loss of the next call
  Index calls_ = 0, updates_ = 0;
  double norm_ = 0;
  std::vector<Attempt> attempts_, failed_;
};

}  // namespace tessera::detail
