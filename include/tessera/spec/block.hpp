// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who owns which block: arithmetic, without padding. Parts may be short or empty.
///
///     detail::split({0, 7}, 4, 3) == Interval{6, 7}    // 7 over 4 parts: 2, 2, 2, 1
///     block({7, 6}, Sharding{{0}, {}}, MeshShape{4}, coordinates)
///
/// Laws: the parts of an interval are disjoint and cover it; several axes on one dimension nest,
/// the major one cuts first, so an all-gather over the minor axis of P<Axes<a,b>> gives exactly
/// P<a>.
#include <tessera/base/box.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

namespace detail {
/// Returns part `part` of an interval cut into `parts` blocks of ceil(size / parts).
constexpr Interval split(Interval whole, Index parts, Index part) {
  const Index block = ceil_div(whole.size(), parts);
  return {min_of(whole.hi, whole.lo + part * block),
          min_of(whole.hi, whole.lo + (part + 1) * block)};
}
}  // namespace detail

/// Returns the interval that the process at `at` owns of a dimension of extent n split over `axes`.
constexpr Interval block(Index n, AxisList axes, const MeshShape& mesh, const Coordinates& at) {
  Interval result{0, n};
  for (int i = 0; i < axes.size(); ++i) result = detail::split(result, mesh[axes[i]], at[axes[i]]);
  return result;
}

/// Returns the box that the process at `at` owns.
constexpr Box block(const Extents& extents, const Sharding& sharding, const MeshShape& mesh,
                    const Coordinates& at) {
  Box result;
  for (int d = 0; d < extents.size(); ++d)
    result.side.push_back(block(extents[d], sharding[d], mesh, at));
  return result;
}

namespace detail {
/// Returns how many elements the process at `at` owns: block(...).size(), without the box.
constexpr Index block_volume(const Extents& extents, const Sharding& sharding,
                             const MeshShape& mesh, const Coordinates& at) {
  Index product = 1;
  for (int d = 0; d < extents.size(); ++d) {
    Index size = extents[d];
    for (int i = 0; i < sharding[d].size(); ++i) {
      const int axis = sharding[d][i];
      const Index part = ceil_div(size, mesh[axis]);
      size = max_of(0, min_of(part, size - at[axis] * part));
    }
    product = saturating_mul(product, size);
  }
  return product;
}

/// Returns the sharding without the mesh's axes of size 1: the same blocks on every process.
constexpr Sharding without_unit_axes(Sharding sharding, const MeshShape& mesh) {
  const AxisSet units = mesh.unit_axes();
  if (units.empty()) return sharding;
  for (int d = 0; d < sharding.rank(); ++d) sharding[d] = sharding[d].without(units);
  return sharding.with_partial(sharding.partial - units, sharding.reduction);
}
}  // namespace detail
}  // namespace tessera
