// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A bar that shows how far a long file, or a loop of one's own, is: one line on stderr, redrawn on
/// a terminal, and nothing elsewhere.
///
///     write_npy(x, path, {.progress = progress_bar("writing weights", mesh.process() == 0)});
///     const auto bar = progress_bar("training", mesh.process() == 0, false, {.unit = "steps", .each = 1});
///     for (Index step = 0; step < steps; ++step) bar(step + 1, steps);
///
/// Laws: a bar that is off can be called, and draws nothing; one that is on draws a line for each
/// percent.
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include <tessera/base/math.hpp>

namespace tessera {

/// What a bar counts: it is called with a number of bytes, steps, ... and prints the whole in units
/// of `each` of them.
struct ProgressUnit {
  std::string unit = "MiB";
  Index each = 1 << 20;
};

/// Returns a function (done, total) that draws a bar if `speaks`, by default on a terminal only. A
/// file's callback counts bytes of this process's share, which stands for the whole: all processes
/// have pieces of about the same size. Communication: none.
inline std::function<void(Index, Index)> progress_bar(std::string title, bool speaks,
                                                      bool anywhere = false,
                                                      ProgressUnit counted = {}) {
  const bool draws = speaks && (anywhere || ::isatty(STDERR_FILENO) != 0);
  return [title = std::move(title), counted = std::move(counted), draws, shown = -1](
             Index done, Index total) mutable {
    const double part = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
    const int percent = static_cast<int>(100 * (part < 0 ? 0 : part > 1 ? 1 : part));
    if (!draws || percent == shown) return;
    shown = percent;
    const std::string filled(static_cast<std::size_t>(percent / 4), '=');
    const std::string open(static_cast<std::size_t>(25 - percent / 4), ' ');
    const double whole = static_cast<double>(total) / static_cast<double>(counted.each);
    std::fprintf(stderr, "\r%s [%s%s] %3d %% of %.*f %s%s", title.c_str(), filled.c_str(),
                 open.c_str(), percent, counted.each > 1 ? 1 : 0, whole, counted.unit.c_str(),
                 percent == 100 ? "\n" : "");
    std::fflush(stderr);
  };
}

}  // namespace tessera
