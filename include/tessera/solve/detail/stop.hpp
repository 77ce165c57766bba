// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// When a search stops: after a number of steps, which is the same everywhere, or by the clock,
/// which is not. A search has phases, each with a part of both.
///
///     detail::Stop stop(1000, 0);    // 1000 steps, no clock
///     stop.begin_phase(100, 25);     // at most 100 of them, and a quarter of all
///     while (!stop.step()) change_something();
///
/// Laws: without a clock, a search takes the same steps everywhere.
#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tessera::detail {

class Stop {
 public:
  /// `clock` returns seconds; without one, those are of the steady clock.
  Stop(std::uint64_t steps, double seconds, double (*clock)() = nullptr)
      : steps_(steps),
        phase_steps_(steps),
        seconds_(seconds),
        phase_seconds_(seconds),
        clock_(clock != nullptr ? clock : steady),
        begin_(clock_()) {}

  /// Until `percent` of all steps are taken, or of the time is over; without a clock, `steps` at
  /// most.
  void begin_phase(std::uint64_t steps, int percent) {
    phase_steps_ = steps_ / 100 * percent + steps_ % 100 * percent / 100;
    if (seconds_ <= 0 && phase_steps_ > taken_)
      phase_steps_ = taken_ + std::min(steps, phase_steps_ - taken_);
    phase_seconds_ = seconds_ * percent / 100;
  }
  /// Takes a step; returns whether the phase is over.
  bool step() {
    ++taken_;
    return over();
  }
  /// Takes steps that were taken elsewhere.
  void take(std::uint64_t steps) { taken_ += steps; }
  /// Returns a search's own stop, for a part of what is left here.
  Stop part(std::uint64_t steps) const {
    const std::uint64_t left = phase_steps_ > taken_ ? phase_steps_ - taken_ : 0;
    const double seconds = seconds_ > 0 ? std::max(phase_seconds_ - elapsed(), 1e-9) : 0;
    return {std::min(steps, left), seconds, clock_};
  }
  bool over() {
    if (taken_ >= phase_steps_) return true;
    const bool late = seconds_ > 0 && elapsed() >= phase_seconds_;
    by_clock_ = by_clock_ || late;
    return late;
  }
  double elapsed() const { return clock_() - begin_; }
  std::uint64_t taken() const { return taken_; }
  bool has_clock() const { return seconds_ > 0; }
  bool by_clock() const { return by_clock_; }

 private:
  static double steady() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  std::uint64_t steps_, phase_steps_, taken_ = 0;
  double seconds_, phase_seconds_;
  double (*clock_)();
  double begin_;
  bool by_clock_ = false;
};

}  // namespace tessera::detail
