// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How far a run is, and what it led to.
///
///     Log log;   log.add(2048, 1.5, 3.2, NAN);   log.csv();
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <tessera/base/math.hpp>

#include "../support/curve.hpp"

namespace train_transformer {

using tessera::Index;

/// How fast a run is, in the words of its progress bar.
class Pace {
 public:
  Pace(Index characters, double gemm_seconds)
      : characters_(static_cast<double>(characters)), gemm_seconds_(gemm_seconds) {}
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// The loss is a mean of the last twenty steps or so, and of all of them at the beginning.
  std::string after(Index steps, double loss) {
    const double part = std::max(0.05, 1 / static_cast<double>(steps));
    mean_ += part * (loss - mean_);
    const double each = seconds() / static_cast<double>(steps);
    return fmt::format("loss {:.3f}  {:.1f}k characters/s  {:.0f}% of GEMM rate", mean_,
                       characters_ / each / 1e3, 100 * gemm_seconds_ / each);
  }

 private:
  double characters_, gemm_seconds_, mean_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What a run led to, step by step.
class Log {
 public:
  void add(Index characters, double seconds, double loss, double held_out) {
    lines_.push_back({static_cast<double>(characters), seconds, loss, held_out});
  }
  std::string csv() const {
    std::string text = "characters,seconds,loss,held_out\n";
    for (const Line& line : lines_)
      text += fmt::format("{:.0f},{:.3f},{:.6f},{}\n", line.characters, line.seconds, line.loss,
                          std::isnan(line.held_out) ? "" : fmt::format("{:.6f}", line.held_out));
    return text;
  }
  std::string svg() const {
    const std::size_t window = std::max<std::size_t>(1, lines_.size() / 50);
    support::Curve loss{"training" + (window > 1 ? fmt::format(", mean of {} steps", window) : ""),
                        {}};
    support::Curve held_out{"held out", {}};
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      held_out.points.emplace_back(lines_[i].characters, lines_[i].held_out);
      if ((i + 1) % window != 0) continue;  // each step counts once, in the middle of its window
      double characters = 0, sum = 0;
      for (std::size_t k = i + 1 - window; k <= i; ++k) {
        characters += lines_[k].characters / static_cast<double>(window);
        sum += lines_[k].loss / static_cast<double>(window);
      }
      loss.points.emplace_back(characters, sum);
    }
    return support::curves_svg("characters", "nats a character", {loss, held_out});
  }

 private:
  struct Line {
    double characters, seconds, loss, held_out;
  };
  std::vector<Line> lines_;
};

}  // namespace train_transformer
