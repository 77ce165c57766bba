// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The settings of a sliding window over all dimensions of a tensor, and their checks.
///
///     WindowSettings s{.size = {1, 3, 3, 1}, .stride = {1, 2, 2, 1}, .high = {0, 1, 1, 0}};
///     detail::check_windows(detail::windows_of(s, 4), x.extents()).ok()
///
/// Laws: `size` has an entry for each dimension; every other list has one for each dimension, or
/// none, which means 1 (strides and dilations) or 0.
#include <tessera/base/verdict.hpp>
#include <tessera/base/window.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

struct WindowSettings {
  Extents size{};
  Extents stride{};
  Extents low{};   ///< padding before the first element; negative: cropping
  Extents high{};  ///< and after the last
  Extents base_dilation{};
  Extents window_dilation{};
};

namespace detail {
/// Returns the windows, one for each dimension. A list with another number of entries than `rank`
/// or none gives that many windows, which check_windows refuses.
constexpr WindowList windows_of(const WindowSettings& s, int rank) {
  int count = s.size.size();
  for (const Extents* list : {&s.stride, &s.low, &s.high, &s.base_dilation, &s.window_dilation})
    if (count == rank && !list->empty()) count = list->size();
  const auto entry = [](const Extents& list, int d, Index otherwise) {
    return d < list.size() ? list[d] : otherwise;
  };
  WindowList windows;
  for (int d = 0; d < count; ++d)
    windows.push_back({entry(s.size, d, 1), entry(s.stride, d, 1), entry(s.low, d, 0),
                       entry(s.high, d, 0), entry(s.base_dilation, d, 1),
                       entry(s.window_dilation, d, 1)});
  return windows;
}

/// Checks the windows of a tensor of extents x.
constexpr Verdict check_windows(const WindowList& windows, const Extents& x) {
  if (windows.size() != x.size())
    return {.rule = Rule::window_entry_each, .left = windows.size(), .right = x.size()};
  for (Index Window::*number :
       {&Window::size, &Window::stride, &Window::base_dilation, &Window::window_dilation})
    for (int d = 0; d < windows.size(); ++d)
      if (windows[d].*number < 1)
        return {.rule = Rule::window_positive, .left = windows[d].*number, .right = 1, .dim = d};
  for (int d = 0; d < x.size(); ++d) {
    const Window& w = windows[d];
    const Index padded = dilated(x[d], w.base_dilation) + w.low + w.high;
    const Index span = dilated(w.size, w.window_dilation);
    if (padded < span)
      return {.rule = Rule::window_fits, .left = span, .right = max_of(0, padded), .dim = d};
  }
  return {};
}
}  // namespace detail

/// The gradient of a windowed sum is a windowed sum of the result's gradient; returns its windows.
constexpr WindowList turned(const WindowList& windows, const Extents& x) {
  WindowList back;
  for (int d = 0; d < windows.size(); ++d) {
    back.push_back(turned(windows[d], x[d]));
    back.back().reversed = false;  // a window that only joins has no first tap
  }
  return back;
}
}  // namespace tessera
