// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of windows against its definition, over all small cases.
#include <tessera/base/local_window.hpp>

namespace {
using namespace tessera;

/// Whether result o reads element i.
constexpr bool reads(Index o, Index i, const Window& w) {
  for (Index t = 0; t < w.size; ++t)
    if (o * w.stride - w.low + t * w.window_dilation == i * w.base_dilation) return true;
  return false;
}

constexpr bool holds(Index n, const Window& w) {
  const Index results = detail::result_extent(n, w);
  for (Index a = 0; a <= results; ++a)
    for (Index b = a; b <= results; ++b) {
      const Interval got = detail::reach({a, b}, n, w);
      if (got.lo < 0 || got.hi > n) return false;
      for (Index i = 0; i < n; ++i)
        for (Index o = a; o < b; ++o)
          if (reads(o, i, w) && (i < got.lo || i >= got.hi)) return false;
      // With neither dilation every element within is read, or lies between two that are.
      if (got.size() > 0 && w.base_dilation == 1 && w.window_dilation == 1 && w.stride <= w.size) {
        bool first = false, last = false;
        for (Index o = a; o < b; ++o) {
          first = first || reads(o, got.lo, w);
          last = last || reads(o, got.hi - 1, w);
        }
        if (!first || !last) return false;
      }
    }
  for (Index a = 0; a <= n; ++a)
    for (Index b = a; b <= n; ++b) {
      const Interval got = detail::read_by({a, b}, results, w);
      if (got.lo < 0 || got.hi > results) return false;
      for (Index o = 0; o < results; ++o)
        for (Index i = a; i < b; ++i)
          if (reads(o, i, w) && (o < got.lo || o >= got.hi)) return false;
    }
  return true;
}
constexpr bool all_hold(Index n, Index size, Index stride) {
  for (Index low = -1; low <= 2; ++low)
    for (Index high = -1; high <= 1; ++high)
      for (Index base = 1; base <= 3; base += 2)
        for (Index window = 1; window <= 2; ++window)
          if (!holds(n, {size, stride, low, high, base, window})) return false;
  return true;
}
static_assert(all_hold(4, 1, 1));
static_assert(all_hold(4, 3, 1));
static_assert(all_hold(4, 2, 3));
static_assert(all_hold(3, 3, 2));
static_assert(all_hold(1, 2, 2));
static_assert(all_hold(0, 2, 1));

static_assert(detail::result_extent(224, {.size = 7, .stride = 2, .low = 3, .high = 3}) == 112);
static_assert(detail::result_extent(2, {.size = 4}) == 0);
// GShard's figure 11: 12 elements on 4 parts, window 3, stride 2, padding 1_4.
constexpr Window figure_11{.size = 3, .stride = 2, .low = 1, .high = 4};
static_assert(detail::result_extent(12, figure_11) == 8);
static_assert(detail::reach({0, 2}, 12, figure_11) == Interval{0, 4});
static_assert(detail::reach({2, 4}, 12, figure_11) == Interval{3, 8});
static_assert(detail::reach({4, 6}, 12, figure_11) == Interval{7, 12});
static_assert(detail::reach({6, 8}, 12, figure_11) == Interval{11, 12});
}  // namespace
