// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The regions of operators that move elements across the borders of blocks and compute nothing:
/// slice, pad, reverse, roll, shift, concatenate, update (of tensors, or of slices of them). Each
/// maps, dimension by dimension, elements of the result to elements of an operand
/// (plan/region/region.hpp). plan/op/shape/shape.hpp plans them.
///
///     const detail::Taking rows{OperatorKind::slice, {{detail::slice_dim(100, 3, 2, 40), detail::same_dim(8)}}, {40, 8}};
///
/// Laws: a region names for each element of the result at most one element of its operand.
#include <optional>

#include <tessera/plan/deduce.hpp>
#include <tessera/plan/kind.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/region/region_transfer.hpp>

namespace tessera {

/// Dimensions of a tensor, by number.
using Dimensions = FixedVector<int, max_dims>;

namespace detail {
constexpr Extents as_numbers(const Dimensions& dims) {
  Extents numbers;
  for (int d : dims) numbers.push_back(d);
  return numbers;
}

/// A dimension of n elements that stays as it is.
constexpr RegionDim same_dim(Index n) {
  RegionDim d;
  d.extent = d.source_extent = n;
  return d;
}
/// Elements first, first + step, ... of n, `count` of them; step may be negative.
constexpr RegionDim slice_dim(Index n, Index first, Index step, Index count) {
  RegionDim d = same_dim(n);
  d.boundary = Boundary::constant;
  d.extent = count;
  d.offset = first;
  d.stride = step;
  return d;
}
/// n elements with `interior` positions between neighbours, `low` before the first and `high` after
/// the last; negative counts crop. `dilation` is interior + 1.
constexpr RegionDim pad_dim(Index n, Index low, Index high, Index interior) {
  RegionDim d = same_dim(n);
  d.boundary = Boundary::constant;
  d.extent = max_of(0, dilated(n, interior + 1) + low + high);
  d.offset = -low;
  d.dilation = interior + 1;
  return d;
}
constexpr RegionDim reverse_dim(Index n) { return slice_dim(n, n - 1, -1, n); }
/// Element i of the result is element i - by of the operand, modulo n.
constexpr RegionDim roll_dim(Index n, Index by) {
  RegionDim d = same_dim(n);
  if (n == 0) return d;
  d.boundary = Boundary::periodic;
  d.offset = by % n > 0 ? n - by % n : -(by % n);
  return d;
}
/// Element i of the result is element i - by of the operand, where there is one.
constexpr RegionDim shift_dim(Index n, Index by) {
  RegionDim d = same_dim(n);
  d.boundary = Boundary::constant;
  d.offset = by > n ? -n : by < -n ? n : -by;
  return d;
}
}  // namespace detail

/// Elements start, start + stride, ... before limit of each dimension of a tensor; without strides,
/// all of them.
struct Slice {
  Extents start, limit, stride;
  constexpr Index step(int d) const { return stride.empty() ? 1 : stride[d]; }
  constexpr Extents extents() const {
    Extents counts;
    for (int d = 0; d < start.size(); ++d) counts.push_back(ceil_div(limit[d] - start[d], step(d)));
    return counts;
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("start", start);
    visit("limit", limit);
    visit("stride", stride);
  }
  constexpr bool operator==(const Slice&) const = default;
};
/// A slice for each operand that is taken in part; other operands are taken whole.
using Slices = FixedVector<std::optional<Slice>, max_operands>;

namespace detail {
template <class V> constexpr void visit_slices(const Slices& slices, const V& visit) {
  for (int k = 0; k < slices.size(); ++k)
    if (slices[k]) {
      visit("operand", k + 1);
      slices[k]->members(visit);
    }
}

/// The extents of each operand.
using ExtentsList = FixedVector<Extents, max_operands>;
constexpr ExtentsList extents_of(const TensorDescs& x) {
  ExtentsList extents;
  for (const TensorDesc& one : x) extents.push_back(one.extents);
  return extents;
}

/// The parts of its operands that an operator takes: a region of each, and the extents of the
/// result.
struct Taking {
  OperatorKind kind = OperatorKind::slice;
  Regions regions;
  Extents extents;
  bool fills = false;  ///< some elements of the result come from no operand
};

constexpr Taking taking_of(OperatorKind kind, const Region& region) {
  Taking taken{kind, {}, {}, needs_filling(region)};
  taken.regions.push_back(region);
  for (const RegionDim& d : region) taken.extents.push_back(d.extent);
  return taken;
}
/// Returns the extents of the parts taken of operands of extents x.
constexpr ExtentsList parts_of(ExtentsList x, const Slices& slices) {
  for (int k = 0; k < min_of(x.size(), slices.size()); ++k)
    if (slices[k]) x[k] = slices[k]->extents();
  return x;
}
/// Returns the slice of operand k (of extents x) that is taken: the whole of it, where none is
/// named.
constexpr Slice part_of(const Slices& slices, int k, const Extents& x) {
  return k < slices.size() && slices[k] ? *slices[k] : Slice{Extents(x.size(), 0), x, {}};
}
/// Returns the region of operand k (of extents x), or of its slice, placed at `start` in a result
/// of extents `total`.
constexpr Region placed_region(const Extents& x, const Slices& slices, int k, const Extents& start,
                               const Extents& total) {
  const Slice slice = part_of(slices, k, x);
  const Extents part = slice.extents();
  Region region;
  for (int d = 0; d < x.size(); ++d) {
    const Index lo = slice.start[d], step = slice.step(d);
    if (lo != 0 || step != 1 || part[d] != x[d]) {
      region.push_back(slice_dim(x[d], lo - start[d] * step, step, total[d]));
      region[d].within = {start[d], start[d] + part[d]};
    } else if (part[d] == total[d]) {
      region.push_back(same_dim(x[d]));
    } else {
      region.push_back(pad_dim(x[d], start[d], total[d] - start[d] - x[d], 0));
    }
  }
  return region;
}

/// Returns the region between a source and a result of these shardings.
constexpr Region split_so(Region region, const Sharding& source, const Sharding& result) {
  for (int d = 0; d < region.size(); ++d) {
    region[d].source_axes = source[d];
    region[d].axes = result[d];
  }
  return region;
}

/// Returns a taking that stands for all extents and numbers: dimensions that are taken whole stay
/// so; along other dimensions the elements come from elsewhere.
constexpr Taking stand_in(Taking taken) {
  for (Region& region : taken.regions)
    for (RegionDim& d : region) {
      d.boundary = Boundary::none;
      d = d == same_dim(d.source_extent) ? same_dim(5040) : shift_dim(5040, 1);
    }
  taken.extents = Extents(taken.extents.size(), 5040);
  return taken;
}

}  // namespace detail
}  // namespace tessera
