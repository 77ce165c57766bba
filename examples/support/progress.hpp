// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A progress bar for a number of steps: one line drawn again and again on a terminal, and a line
/// every eight seconds elsewhere.
///
///     Progress progress(steps, mesh.process() == 0);
///     progress.show(step, fmt::format("loss {:.3f}", loss));
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include <tessera/base/math.hpp>

namespace support {

/// Returns whether a person watches: stdout is a terminal, or the launcher's is, which hands our
/// lines on.
inline bool on_terminal() {
  std::string process = "self";
  for (int generation = 0; generation < 3; ++generation) {
    char target[64] = {};
    if (readlink(("/proc/" + process + "/fd/1").c_str(), target, sizeof target - 1) < 0)
      return false;
    const std::string out = target;
    if (out.starts_with("/dev/pts/") || out.starts_with("/dev/tty")) return true;
    std::ifstream status("/proc/" + process + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("PPid:")) process = line.substr(line.find_first_not_of(" \t", 5));
    std::string parent;
    std::getline(std::ifstream("/proc/" + process + "/comm"), parent);
    if (!parent.starts_with("hydra") && !parent.starts_with("mpiexec")) return false;
  }
  return false;
}

class Progress {
 public:
  /// Only a process that speaks draws.
  Progress(tessera::Index steps, bool speaks)
      : speaks_(speaks), terminal_(speaks && on_terminal()), steps_(steps) {}

  /// Says that `step` of the steps, counted from 1, is done; `note` is a few words on it.
  void show(tessera::Index step, const std::string& note) {
    const auto now = Clock::now();
    const bool last = step == steps_;
    const double pause = std::chrono::duration<double>(now - shown_).count();
    if (!speaks_ || (!last && pause < (terminal_ ? 0.2 : 8))) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const auto filled = static_cast<std::size_t>(24 * step / steps_);
    fmt::print(
        "{}[{}{}] {:>{}}/{}  {}  {:.1f} s{}", terminal_ ? "\r" : "  ", std::string(filled, '='),
        std::string(24 - filled, ' '), step, std::to_string(steps_).size(), steps_, note,
        last ? seconds : seconds * static_cast<double>(steps_ - step) / static_cast<double>(step),
        last        ? "       \n"
        : terminal_ ? " left  "
                    : " left\n");
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool speaks_, terminal_;
  tessera::Index steps_;
  Clock::time_point start_ = Clock::now(), shown_ = start_;
};

}  // namespace support
