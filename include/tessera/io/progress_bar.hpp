// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A bar that shows the progress of reading or writing a long file: one line on stderr, redrawn on
/// a terminal, and nothing elsewhere.
///
///     write_npy(x, path, {.progress = progress_bar("writing weights", mesh.process() == 0)});
///
/// Laws: a bar that is off costs a comparison for each piece.
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include <tessera/base/math.hpp>

namespace tessera {

/// Returns a callback that draws a bar of this process's share if `speaks`, by default on a
/// terminal only. The share stands for the whole: all processes have pieces of about the same size.
inline std::function<void(Index, Index)> progress_bar(std::string title, bool speaks,
                                                      bool anywhere = false) {
  if (!speaks || (!anywhere && ::isatty(STDERR_FILENO) == 0)) return {};
  return [title = std::move(title), shown = -1](Index done, Index total) mutable {
    const int percent =
        total > 0 ? static_cast<int>(100.0 * static_cast<double>(done) / static_cast<double>(total))
                  : 100;
    if (percent == shown) return;
    shown = percent;
    const std::string filled(static_cast<std::size_t>(percent / 4), '=');
    const std::string open(static_cast<std::size_t>(25 - percent / 4), ' ');
    std::fprintf(stderr, "\r%s [%s%s] %3d %% of %.1f MiB%s", title.c_str(), filled.c_str(),
                 open.c_str(), percent, static_cast<double>(total) / (1 << 20),
                 done == total ? "\n" : "");
    std::fflush(stderr);
  };
}

}  // namespace tessera
