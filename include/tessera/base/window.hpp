// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A window that slides along one dimension, and the arithmetic of its reads: the settings of XLA's
/// convolutions and reduce-windows (GShard, Appendix A.4).
///
///     constexpr Window w{.size = 3, .stride = 2, .low = 1, .high = 1};
///     detail::result_extent(7, w) == 4;   detail::reach({2, 4}, 7, w) == Interval{3, 7}
///
/// Laws: result o at tap t reads base position o * stride - low + t * window_dilation; element i
/// lies at base position i * base_dilation, all other positions are empty. reach({a, b}) is the
/// least interval that holds every element read by results a to b-1, and read_by({a, b}) the least
/// that holds every result that reads one of the elements a to b-1.
#include <tessera/base/box.hpp>

namespace tessera {

struct Window {
  Index size = 1;  ///< taps; for a convolution, the extent of the kernel
  Index stride = 1;
  Index low = 0;   ///< positions added before the first element; a negative number crops
  Index high = 0;  ///< and after the last
  Index base_dilation = 1;
  Index window_dilation = 1;
  bool reversed = false;  ///< tap t reads kernel element size-1-t
  constexpr bool operator==(const Window&) const = default;
};
/// The windows of an operator's dimensions.
using WindowList = FixedVector<Window, max_dims>;

namespace detail {
/// Return a / b rounded down and up; b > 0, a of any sign.
constexpr Index floor_quotient(Index a, Index b) {
  const Index whole = quotient(a, b);
  return whole - (whole * b > a ? 1 : 0);
}
constexpr Index ceil_quotient(Index a, Index b) {
  const Index whole = quotient(a, b);
  return whole + (whole * b < a ? 1 : 0);
}

/// Returns how many positions n elements span with `dilation` - 1 empty ones between neighbours.
constexpr Index dilated(Index n, Index dilation) { return n == 0 ? 0 : (n - 1) * dilation + 1; }

/// Returns how many results a window has over n elements: 0 when it is larger than the padded
/// extent.
constexpr Index result_extent(Index n, const Window& w) {
  const Index padded = dilated(n, w.base_dilation) + w.low + w.high;
  const Index span = dilated(w.size, w.window_dilation);
  return padded < span ? 0 : (padded - span) / w.stride + 1;
}

/// Returns as an interval the elements, among n, that the taps `taps` of the results `results`
/// read.
constexpr Interval reach(Interval results, Index n, const Window& w, Interval taps) {
  if (results.size() == 0 || taps.size() == 0) return {0, 0};
  const Index first = results.lo * w.stride - w.low + taps.lo * w.window_dilation;
  const Index last = (results.hi - 1) * w.stride - w.low + (taps.hi - 1) * w.window_dilation;
  const Index lo = min_of(n, max_of(0, ceil_quotient(first, w.base_dilation)));
  const Index hi = min_of(n, max_of(0, floor_quotient(last, w.base_dilation) + 1));
  return {lo, max_of(lo, hi)};
}
constexpr Interval reach(Interval results, Index n, const Window& w) {
  return reach(results, n, w, {0, w.size});
}

/// Converts taps to elements of the kernel, or back.
constexpr Interval kernel_taps(const Window& w, Interval taps) {
  return w.reversed ? Interval{w.size - taps.hi, w.size - taps.lo} : taps;
}
/// Returns whether a result may skip taps on the empty positions of a dilated base: that takes both
/// dilations.
constexpr bool skips_taps(const Window& w) { return w.base_dilation > 1 && w.window_dilation > 1; }
/// Returns the least interval of `taps` that holds every tap at which some result of `results`
/// meets an element rather than an empty position, wherever the elements end.
constexpr Interval hitting(Interval results, const Window& w, Interval taps) {
  if (!skips_taps(w) || results.size() >= w.base_dilation) return taps;
  const auto hits = [&](Index tap) {
    for (Index o = results.lo; o < results.hi; ++o)
      if ((o * w.stride - w.low + tap * w.window_dilation) % w.base_dilation == 0) return true;
    return false;
  };
  while (taps.lo < taps.hi && !hits(taps.lo)) ++taps.lo;
  while (taps.lo < taps.hi && !hits(taps.hi - 1)) --taps.hi;
  return taps;
}

/// Returns how many products some taps of some results make: one for each pair, unless it lies on
/// an empty position of a dilated base, which kernels skip. What lies beyond the elements counts.
constexpr Index products(Interval results, Interval taps, const Window& w) {
  const Index base = max_of(1, w.base_dilation);  // pairs apart by a multiple of it are alike
  if (base == 1) return saturating_mul(results.size(), taps.size());
  Index sum = 0;
  for (Index o = results.lo; o < min_of(results.hi, results.lo + base); ++o)
    for (Index tap = taps.lo; tap < min_of(taps.hi, taps.lo + base); ++tap)
      if ((o * w.stride - w.low + tap * w.window_dilation) % base == 0)
        sum = saturating_add(
            sum, saturating_mul(ceil_div(results.hi - o, base), ceil_div(taps.hi - tap, base)));
  return sum;
}

/// Returns as an interval the results, among `results_extent`, that read an element of `elements`.
constexpr Interval read_by(Interval elements, Index results_extent, const Window& w) {
  if (elements.size() == 0) return {0, 0};
  const Index first = elements.lo * w.base_dilation + w.low - (w.size - 1) * w.window_dilation;
  const Index last = (elements.hi - 1) * w.base_dilation + w.low;
  const Index lo = min_of(results_extent, max_of(0, ceil_quotient(first, w.stride)));
  const Index hi = min_of(results_extent, max_of(0, floor_quotient(last, w.stride) + 1));
  return {lo, max_of(lo, hi)};
}
}  // namespace detail

/// Returns the window of the adjoint of sliding over n elements by `w`: taps reversed, stride and
/// base dilation exchanged, and as many results as there were elements.
constexpr Window turned(const Window& w, Index n) {
  const Index span = detail::dilated(w.size, w.window_dilation);
  Window back = w;
  back.stride = w.base_dilation;
  back.base_dilation = w.stride;
  back.low = span - 1 - w.low;
  back.high = (n - 1) * w.base_dilation + span -
              detail::dilated(detail::result_extent(n, w), w.stride) - back.low;
  back.reversed = !w.reversed;
  return back;
}

namespace detail {
/// Returns the window as it slides over a part of the elements, from `first_element` on, making
/// results from `first_result` on with taps from `first_tap` on: only `low` and the number of taps
/// change.
constexpr Window local_window(const Window& w, Index first_result, Index first_element,
                              Interval taps) {
  Window local = w;
  local.size = taps.size();
  local.low = w.low - first_result * w.stride + first_element * w.base_dilation -
              taps.lo * w.window_dilation;
  local.high = 0;  // the number of results says what lies beyond the last element
  return local;
}
}  // namespace detail
}  // namespace tessera
