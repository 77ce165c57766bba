// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How far a run is, and what it led to.
///
///     Log log;   log.add(1, 1800, 3.2);   log.measure({"de", "hu"}, {4.1, 4.7});   log.csv();
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <tessera/base/math.hpp>

#include "../support/curve.hpp"

namespace translation {

using tessera::Index;

class Log {
 public:
  explicit Log(std::vector<std::string> languages) : languages_(std::move(languages)) {}

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  void add(Index step, Index tokens, double loss) {
    tokens_ += tokens;
    const double part = std::max(0.02, 1 / static_cast<double>(lines_.size() + 1));
    mean_ += part * (loss - mean_);
    lines_.push_back({step, tokens_, seconds(), loss, {}});
  }
  /// Notes the held-out losses of each language after the last step.
  void measure(const std::vector<double>& losses) { lines_.back().held_out = losses; }

  /// The loss is a mean of the last fifty steps or so, and of all of them at the beginning.
  std::string pace() const {
    return fmt::format("loss {:.3f}  {:.2f}k tokens/s", mean_,
                       static_cast<double>(tokens_) / seconds() / 1e3);
  }
  std::string csv() const {
    std::string text = "step,tokens,seconds,loss";
    for (const std::string& language : languages_) text += ",held_out_" + language;
    for (const Line& line : lines_) {
      text += fmt::format("\n{},{},{:.3f},{:.6f}", line.step, line.tokens, line.seconds, line.loss);
      for (std::size_t l = 0; l < languages_.size(); ++l)
        text += line.held_out.empty() ? "," : fmt::format(",{:.6f}", line.held_out[l]);
    }
    return text + "\n";
  }
  std::string svg() const {
    const std::size_t window = std::max<std::size_t>(1, lines_.size() / 50);
    support::Curve loss{"training", {}}, held_out{"held out, mean of languages", {}};
    double sum = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const auto tokens = static_cast<double>(lines_[i].tokens);
      sum += lines_[i].loss / static_cast<double>(window);
      if ((i + 1) % window == 0) {
        loss.points.emplace_back(tokens, sum);
        sum = 0;
      }
      double mean = 0;
      for (const double one : lines_[i].held_out)
        mean += one / static_cast<double>(languages_.size());
      if (!lines_[i].held_out.empty()) held_out.points.emplace_back(tokens, mean);
    }
    return support::curves_svg("tokens of English", "nats a token", {loss, held_out});
  }

 private:
  struct Line {
    Index step, tokens;
    double seconds, loss;
    std::vector<double> held_out;
  };
  std::vector<std::string> languages_;
  std::vector<Line> lines_;
  Index tokens_ = 0;
  double mean_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace translation
