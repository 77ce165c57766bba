// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The settings of a sliding window over all dimensions of a tensor, and what is wrong with them.
///
///     WindowSettings s{.size = {1, 3, 3, 1}, .stride = {1, 2, 2, 1}, .high = {0, 1, 1, 0}};
///     check_windows(s, x.extents()).ok();   windows_of(s, 4)
///
/// Laws: `size` has an entry for each dimension, the others too or none, which stands for 1
/// (strides and dilations) or 0.
#include <string>

#include <tessera/base/window.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

struct WindowSettings {
  Extents size{};
  Extents stride{};
  Extents low{};   ///< padding before the first element; negative: cropping
  Extents high{};  ///< and behind the last
  Extents base_dilation{};
  Extents window_dilation{};
};

enum class WindowRule : std::uint8_t { ok, entries, positive, fits };
struct WindowVerdict {
  WindowRule rule = WindowRule::ok;
  int dim = -1;
  Index left = 0;
  Index right = 0;
  constexpr bool ok() const { return rule == WindowRule::ok; }
};

/// Returns the windows, one a dimension.
constexpr WindowList windows_of(const WindowSettings& s, int rank) {
  const auto entry = [](const Extents& list, int d, Index otherwise) {
    return d < list.size() ? list[d] : otherwise;
  };
  WindowList windows;
  for (int d = 0; d < rank; ++d)
    windows.push_back({entry(s.size, d, 1), entry(s.stride, d, 1), entry(s.low, d, 0),
                       entry(s.high, d, 0), entry(s.base_dilation, d, 1),
                       entry(s.window_dilation, d, 1)});
  return windows;
}

/// Checks settings for a tensor of extents x.
constexpr WindowVerdict check_windows(const WindowSettings& s, const Extents& x) {
  if (s.size.size() != x.size()) return {WindowRule::entries, -1, s.size.size(), x.size()};
  for (const Extents* list : {&s.stride, &s.low, &s.high, &s.base_dilation, &s.window_dilation})
    if (!list->empty() && list->size() != x.size())
      return {WindowRule::entries, -1, list->size(), x.size()};
  for (const Extents* list : {&s.size, &s.stride, &s.base_dilation, &s.window_dilation})
    for (int d = 0; d < list->size(); ++d)
      if ((*list)[d] < 1) return {WindowRule::positive, d, (*list)[d], 1};
  const WindowList windows = windows_of(s, x.size());
  for (int d = 0; d < x.size(); ++d) {
    const Window& w = windows[d];
    const Index padded = dilated(x[d], w.base_dilation) + w.low + w.high;
    const Index span = dilated(w.size, w.window_dilation);
    if (padded < span) return {WindowRule::fits, d, span, max_of(0, padded)};
  }
  return {};
}

/// Returns the rule that was broken with its numbers, and the way out.
inline std::string explain(const WindowVerdict& v) {
  const std::string left = std::to_string(v.left), right = std::to_string(v.right);
  const std::string where = "dimension " + std::to_string(v.dim);
  switch (v.rule) {
    case WindowRule::ok:
      break;
    case WindowRule::entries:
      return "a setting of the window has " + left + " entries and the tensor " + right +
             " dimensions; give one for each dimension (only the size has to be given)";
    case WindowRule::positive:
      return "a size, stride or dilation of the window in " + where + " is " + left +
             "; the least is 1";
    case WindowRule::fits:
      return "the window in " + where + " spans " + left + " positions and the padded tensor has " +
             right + "; pad more, or take a smaller window";
  }
  return "";
}

/// Returns the windows by which the gradient of a windowed sum is one of the result's gradient.
constexpr WindowList turned(const WindowList& windows, const Extents& x) {
  WindowList back;
  for (int d = 0; d < windows.size(); ++d) {
    back.push_back(turned(windows[d], x[d]));
    back.back().reversed = false;  // a window that only joins has no first tap
  }
  return back;
}

}  // namespace tessera
