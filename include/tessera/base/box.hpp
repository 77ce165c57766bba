// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Half-open intervals and boxes of global indices: what a process owns, needs, sends.
///
///     detail::intersect(Interval{0, 4}, Interval{2, 9}) == Interval{2, 4}
///
/// Laws: intersect is commutative and associative; an empty interval has size 0 wherever it lies.
#include <tessera/base/fixed_vector.hpp>
#include <tessera/base/math.hpp>

namespace tessera {

/// Most dimensions a tensor may have.
inline constexpr int max_dims = 8;
namespace detail {
template <> inline constexpr Limit list_limit<Index, max_dims> = Limit::dimensions;
template <> inline constexpr Limit list_limit<int, max_dims> = Limit::dimensions;
}  // namespace detail

using Extents = FixedVector<Index, max_dims>;

/// Returns the product of extents, saturating.
constexpr Index volume(const Extents& extents) {
  Index product = 1;
  for (int d = 0; d < extents.size(); ++d) product = detail::saturating_mul(product, extents[d]);
  return product;
}

/// Indices lo <= i < hi.
struct Interval {
  Index lo = 0;
  Index hi = 0;
  constexpr Index size() const { return hi > lo ? hi - lo : 0; }
  constexpr bool operator==(const Interval&) const = default;
};

/// A product of intervals; with no dimensions it holds one element.
struct Box {
  FixedVector<Interval, max_dims> side;

  constexpr int rank() const { return side.size(); }
  constexpr Interval& operator[](int d) { return side[d]; }
  constexpr const Interval& operator[](int d) const { return side[d]; }
  constexpr Index size() const {
    Index product = 1;
    for (int d = 0; d < side.size(); ++d) product = detail::saturating_mul(product, side[d].size());
    return product;
  }
  constexpr bool empty() const { return size() == 0; }
  constexpr Extents extents() const {
    Extents result;
    for (int d = 0; d < side.size(); ++d) result.push_back(side[d].size());
    return result;
  }
  constexpr bool operator==(const Box&) const = default;
};

/// Returns the box of a whole tensor.
constexpr Box whole(const Extents& extents) {
  Box result;
  for (int d = 0; d < extents.size(); ++d) result.side.push_back({0, extents[d]});
  return result;
}

namespace detail {
/// Returns the intersection; it is empty, with lo == hi, when nothing is common to both.
constexpr Interval intersect(Interval a, Interval b) {
  const Index lo = max_of(a.lo, b.lo);
  const Index hi = min_of(a.hi, b.hi);
  return {lo, max_of(lo, hi)};
}

/// Returns the intersection in every dimension.
constexpr Box intersect(const Box& a, const Box& b) {
  Box result;
  for (int d = 0; d < a.rank(); ++d) result.side.push_back(intersect(a[d], b[d]));
  return result;
}

/// Returns the strides, in elements, of a row-major block: the last dimension has stride 1.
constexpr Extents row_major_strides(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (int d = extents.size() - 2; d >= 0; --d)
    strides[d] = saturating_mul(strides[d + 1], extents[d + 1]);
  return strides;
}
}  // namespace detail

}  // namespace tessera
