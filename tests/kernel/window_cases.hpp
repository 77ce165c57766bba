// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the tests of window kernels share: all small windows, random ones, and what a tap reads,
/// straight from the definition.
///
///     for_each_window(9, [](Index n, const Window& w) { ... });
#include <string>
#include <vector>

#include <tessera/base/local_window.hpp>

#include "kernel/buffer.hpp"

namespace test {
using tessera::Window;
using tessera::WindowList;

/// Returns the element, of n, that tap t of result y reads, or -1 for padding and holes.
inline Index element_under(const Window& w, Index n, Index y, Index t) {
  const Index position = y * w.stride - w.low + t * w.window_dilation;
  if (position < 0 || position % w.base_dilation != 0) return -1;
  const Index element = position / w.base_dilation;
  return element < n ? element : -1;
}

/// Calls f for every window of at most 4 taps over 0 to n elements: strides and dilations to 3,
/// padding from -1 to 3.
template <class F> void for_each_window(Index longest, F f) {
  for (Index n = 0; n <= longest; ++n)
    for (Index size = 1; size <= 4; ++size)
      for (Index stride = 1; stride <= 3; ++stride)
        for (Index low = -1; low <= 3; ++low)
          for (Index high = -1; high <= 3; ++high)
            for (Index base = 1; base <= 3; ++base)
              for (Index dilation = 1; dilation <= 3; ++dilation)
                f(n, Window{.size = size,
                            .stride = stride,
                            .low = low,
                            .high = high,
                            .base_dilation = base,
                            .window_dilation = dilation});
}

/// A window that has a result over n elements, now and then with all settings at once.
inline Window some_window(Random& random, Index n, bool dilated_base = true) {
  const auto rarely = [&](Index most) {
    return pick(random, 0, 2) == 0 ? pick(random, 1, most) : 1;
  };
  for (;;) {
    const Window w{.size = pick(random, 1, 4),
                   .stride = rarely(3),
                   .low = pick(random, -1, 3),
                   .high = pick(random, -1, 3),
                   .base_dilation = dilated_base ? rarely(3) : 1,
                   .window_dilation = rarely(3),
                   .reversed = pick(random, 0, 3) == 0};
    if (tessera::detail::result_extent(n, w) > 0) return w;
  }
}

/// Returns what a failed check should print.
inline std::string text_of(Index n, const Window& w) {
  const auto number = [](Index i) { return std::to_string(i); };
  return "n " + number(n) + " size " + number(w.size) + " stride " + number(w.stride) + " pad " +
         number(w.low) + "_" + number(w.high) + " base " + number(w.base_dilation) + " dilation " +
         number(w.window_dilation) + (w.reversed ? " reversed" : "");
}

}  // namespace test
