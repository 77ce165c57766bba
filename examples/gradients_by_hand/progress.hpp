// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A progress bar: one line drawn again and again on a terminal, a line now and then elsewhere.
///
///     Progress progress(steps, characters_per_step, seconds_of_gemm_per_step);
///     progress.show(step, loss);
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>

#include <tessera/base/math.hpp>

#include "../support/progress.hpp"

namespace gradients_by_hand {

using tessera::Index;

using support::on_terminal;

class Progress {
 public:
  /// `silent`: for the processes that do not speak.
  Progress(bool silent, Index steps, Index characters, double gemm_seconds)
      : silent_(silent),
        terminal_(!silent && on_terminal()),
        steps_(steps),
        characters_(characters),
        gemm_seconds_(gemm_seconds) {}

  void show(Index step, double loss) {
    mean_ = step == 1 ? loss : 0.95 * mean_ + 0.05 * loss;
    const auto now = Clock::now();
    const bool last = step == steps_;
    const double pause = std::chrono::duration<double>(now - shown_).count();
    if (silent_ || (!last && step != 1 && pause < (terminal_ ? 0.2 : 8))) return;
    shown_ = now;
    const double seconds = this->seconds(), each = seconds / static_cast<double>(step);
    const auto filled = static_cast<std::size_t>(24 * step / steps_);
    fmt::print(
        "{}[{}{}] {:>{}}/{}  loss {:.3f}  {:.1f}k characters/s  {:.0f}% of GEMM rate  {:.0f} s{}",
        terminal_ ? "\r" : "  ", std::string(filled, '='), std::string(24 - filled, ' '), step,
        std::to_string(steps_).size(), steps_, mean_, static_cast<double>(characters_) / each / 1e3,
        100 * gemm_seconds_ / each, last ? seconds : each * static_cast<double>(steps_ - step),
        last        ? "       \n"
        : terminal_ ? " left  "
                    : " left\n");
    std::fflush(stdout);
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  bool silent_, terminal_;
  Index steps_, characters_;
  double gemm_seconds_, mean_ = 0;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

}  // namespace gradients_by_hand
