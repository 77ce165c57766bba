// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How far a run is, and what it led to, beside what counting says.
///
///     Log log(counts.losses());   log.add(1, 3.2);   log.measure(2.9);   log.csv();
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "../support/curve.hpp"
#include "baselines.hpp"

namespace train_protein_encoder {

class Log {
 public:
  explicit Log(const Baselines::Losses& counts) : counts_(counts) {}

  void add(Index step, double loss) {
    const double part = std::max(0.05, 1 / static_cast<double>(lines_.size() + 1));
    mean_ += part * (loss - mean_);
    lines_.push_back({static_cast<double>(step), seconds(), loss, NAN});
  }
  /// Notes the held-out loss after the last step.
  void measure(double loss) { lines_.back().held_out = loss; }

  /// The loss is a mean of the last twenty steps or so, and of all of them at the beginning.
  std::string pace(Index letters) const {
    return fmt::format("loss {:.3f}  {:.1f}k letters/s", mean_,
                       static_cast<double>(letters) / seconds() / 1e3);
  }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  std::string csv() const {
    std::string text = "step,seconds,loss,held_out,letters,places,neighbours\n";
    for (const Line& line : lines_)
      text += fmt::format("{:.0f},{:.3f},{:.6f},{},{:.6f},{:.6f},{:.6f}\n", line.step, line.seconds,
                          line.loss,
                          std::isnan(line.held_out) ? "" : fmt::format("{:.6f}", line.held_out),
                          counts_.letters, counts_.places, counts_.neighbours);
    return text;
  }
  std::string svg() const {
    support::Curve loss{"training", {}}, held_out{"held out", {}};
    const std::size_t window = std::max<std::size_t>(1, lines_.size() / 50);
    double sum = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      sum += lines_[i].loss / static_cast<double>(window);
      if ((i + 1) % window == 0) {
        loss.points.emplace_back(lines_[i].step, sum);
        sum = 0;
      }
      held_out.points.emplace_back(lines_[i].step, lines_[i].held_out);
    }
    std::vector<support::Curve> curves{loss, held_out};
    for (const auto& [name, level] :
         {std::pair{"letters", counts_.letters}, std::pair{"letters at a place", counts_.places},
          std::pair{"letters between two", counts_.neighbours}})
      curves.push_back({name, {{0, level}, {lines_.empty() ? 1 : lines_.back().step, level}}});
    return support::curves_svg("steps", "nats a masked letter", curves);
  }

 private:
  struct Line {
    double step, seconds, loss, held_out;
  };
  Baselines::Losses counts_;
  std::vector<Line> lines_;
  double mean_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace train_protein_encoder
