// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <tessera/spec/block.hpp>

using namespace tessera;

static_assert(detail::split({0, 7}, 4, 0) == Interval{0, 2} &&
              detail::split({0, 7}, 4, 3) == Interval{6, 7});
static_assert(detail::split({0, 3}, 4, 3).size() == 0 && detail::split({0, 0}, 3, 1).size() == 0);
static_assert(detail::split({5, 5}, 3, 2).size() == 0 &&
              detail::split({3, 10}, 2, 1) == Interval{7, 10});

/// Part i of n over p owns [min(n, i b), min(n, (i + 1) b)) with b = ceil(n / p): disjoint, in
/// order, covering.
consteval bool parts_cover(Index most) {
  for (Index n = 0; n <= most; ++n)
    for (Index parts = 1; parts <= 9; ++parts) {
      const Index b = ceil_div(n, parts);
      Index next = 0;
      for (Index i = 0; i < parts; ++i) {
        const Interval part = detail::split({0, n}, parts, i);
        if (part.lo != next || part.hi < part.lo) return false;
        if (part.lo != min_of(n, i * b) || part.hi != min_of(n, (i + 1) * b)) return false;
        if (part.size() > detail::split({0, n}, parts, 0).size())
          return false;  // the first is a largest
        next = part.hi;
      }
      if (next != n) return false;
    }
  return true;
}
static_assert(parts_cover(40));

/// Cutting a piece of the major axis by the minor one covers exactly that piece.
consteval bool pieces_nest(Index from, Index to) {
  for (Index n = from; n <= to; ++n)
    for (int major = 1; major <= 4; ++major)
      for (int minor = 1; minor <= 3; ++minor) {
        const MeshShape mesh{major, minor};
        for (int i = 0; i < major; ++i) {
          const Interval piece = block(n, AxisList{0}, mesh, Coordinates{i, 0});
          Index next = piece.lo;
          for (int j = 0; j < minor; ++j) {
            const Interval part = block(n, AxisList{0, 1}, mesh, Coordinates{i, j});
            if (part.lo != next) return false;
            next = part.hi;
          }
          if (next != piece.hi) return false;
        }
      }
  return true;
}
static_assert(pieces_nest(0, 9) && pieces_nest(10, 19) && pieces_nest(20, 29) &&
              pieces_nest(30, 40));

// The nesting law where it is not the same as cutting into the product of the sizes: 7 over 2, then
// 3, is not 7 over 6.
static_assert(block(7, AxisList{0, 1}, MeshShape{2, 3}, Coordinates{1, 0}) == Interval{4, 5});
static_assert(detail::split({0, 7}, 6, 3) == Interval{6, 7});

static_assert(block(Extents{7, 6}, Sharding{{0}, {}}, MeshShape{4}, Coordinates{3}) ==
              Box{{{6, 7}, {0, 6}}});
static_assert(block(Extents{}, Sharding{}, MeshShape{4}, Coordinates{3}).size() == 1);
