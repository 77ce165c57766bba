// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How far a run of training is, and what it led to, as a table and as curves.
///
///     LearningLog log({"step", "tokens"}, {"held_out_de", "held_out_hu"});
///     log.add({1, 1800}, 3.2);   log.measure({4.1, 4.7});   log.recent_loss();
///     write_log("run", log, "tokens", "nats a token");                          // run.csv, run.svg
///
/// Laws: curves are over the last count. The curve of training has a mean for each fiftieth of the
/// run, in its middle; what is left after the last whole one is not in it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "curve.hpp"
#include "output_file.hpp"

namespace support {

class LearningLog {
 public:
  explicit LearningLog(std::vector<std::string> counts,
                       std::vector<std::string> held_out = {"held_out"})
      : counts_(std::move(counts)), held_out_(std::move(held_out)) {}

  /// A loss that does not change, such as that of counting: a column, and a level line.
  void level(const std::string& column, const std::string& name, double loss) {
    levels_.push_back({column, name, loss});
  }
  /// Notes a step that has ended.
  void add(std::vector<double> counts, double loss) {
    const double part = std::max(0.05, 1 / static_cast<double>(lines_.size() + 1));
    recent_ += part * (loss - recent_);
    lines_.push_back({std::move(counts), seconds(), loss, {}});
  }
  /// Notes the held-out losses after the last step.
  void measure(std::vector<double> losses) { lines_.back().held_out = std::move(losses); }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// A mean of the last twenty steps or so, and of all of them at the beginning.
  double recent_loss() const { return recent_; }

  std::string csv() const {
    std::string text;
    for (const std::string& count : counts_) text += count + ",";
    text += "seconds,loss";
    for (const std::string& one : held_out_) text += "," + one;
    for (const Level& level : levels_) text += "," + level.column;
    for (const Line& line : lines_) {
      text += "\n";
      for (const double count : line.counts) text += fmt::format("{:.0f},", count);
      text += fmt::format("{:.3f},{:.6f}", line.seconds, line.loss);
      for (std::size_t l = 0; l < held_out_.size(); ++l)
        text += line.held_out.empty() ? "," : fmt::format(",{:.6f}", line.held_out[l]);
      for (const Level& level : levels_) text += fmt::format(",{:.6f}", level.loss);
    }
    return text + "\n";
  }
  std::string svg(const std::string& across, const std::string& up) const {
    const std::size_t window = std::max<std::size_t>(1, lines_.size() / 50);
    const auto share = 1 / static_cast<double>(window);
    Curve loss{"training" + (window > 1 ? fmt::format(", mean of {} steps", window) : ""), {}};
    Curve held_out{
        "held out" + (held_out_.size() > 1 ? fmt::format(", mean of {}", held_out_.size()) : ""),
        {}};
    double middle = 0, mean = 0;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      middle += share * line.counts.back();
      mean += share * line.loss;
      if ((i + 1) % window == 0) {
        loss.points.emplace_back(middle, mean);
        middle = mean = 0;
      }
      double sum = 0;
      for (const double one : line.held_out) sum += one;
      if (!line.held_out.empty())
        held_out.points.emplace_back(line.counts.back(),
                                     sum / static_cast<double>(line.held_out.size()));
    }
    std::vector<Curve> curves{loss, held_out};
    for (const Level& level : levels_)
      curves.push_back(
          {level.name,
           {{0, level.loss}, {lines_.empty() ? 1 : lines_.back().counts.back(), level.loss}}});
    return curves_svg(across, up, curves);
  }

 private:
  struct Line {
    std::vector<double> counts;
    double seconds, loss;
    std::vector<double> held_out;
  };
  struct Level {
    std::string column, name;
    double loss;
  };
  std::vector<std::string> counts_, held_out_;
  std::vector<Level> levels_;
  std::vector<Line> lines_;
  double recent_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Throws UsageError unless a log of this name can be written; for an empty name nothing is asked.
inline void require_writable_log(const std::string& name) {
  if (name.empty()) return;
  for (const char* ending : {".csv", ".svg"}) require_writable("--log", name + ending);
}

/// Writes NAME.csv and NAME.svg, or nothing for an empty name.
inline void write_log(const std::string& name, const LearningLog& log, const std::string& across,
                      const std::string& up) {
  if (name.empty()) return;
  write_text(name + ".csv", log.csv());
  write_text(name + ".svg", log.svg(across, up));
}

}  // namespace support
