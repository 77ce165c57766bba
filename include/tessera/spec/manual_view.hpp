// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the tensors that the parts of a mesh have, one each, make one tensor of the whole mesh: a
/// description and its inverse. No element moves; each process's block is the same memory.
///
///     const detail::ManualView rows{.major = {{1}, {}}};   // blocks lie along dimension 0, over axis 1
///     const TensorDesc inner{DType::f32, {3, 8}, {{}, {0}}};
///     detail::outer_desc(inner, {0}, rows, {4, 2}) == TensorDesc{DType::f32, {6, 8}, {{1}, {0}}};
///
/// Laws: inner_desc(outer_desc(x, view), view) == x.
#include <tessera/mesh/axis_list.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera::detail {

/// Axes are those of the outer mesh.
struct ManualView {
  Sharding major = {};  ///< for each inner dimension: over which axes the blocks lie along it
  AxisList lead = {};  ///< axes over which each block is an index of a leading dimension of its own
  AxisSet partial = {};  ///< axes over which they are parts of a sum
};

/// Returns how an inner sharding lies on the outer mesh; `free`: the outer axis of each inner one.
constexpr Sharding outer_sharding(const Sharding& inner, const AxisList& free,
                                  const ManualView& view) {
  Sharding outer;
  for (int i = 0; i < view.lead.size(); ++i) outer.dims.push_back(AxisList{view.lead[i]});
  const auto of = [&](int axis) { return axis < free.size() ? free[axis] : -1; };
  for (int d = 0; d < inner.rank(); ++d) {
    AxisList axes = d < view.major.rank() ? view.major[d] : AxisList{};
    for (int i = 0; i < inner[d].size(); ++i)
      if (of(inner[d][i]) >= 0) axes.push_back(of(inner[d][i]));
    outer.dims.push_back(axes);
  }
  AxisSet partial = view.partial;
  for (int axis = 0; axis < max_axes; ++axis)
    if (inner.partial.contains(axis) && of(axis) >= 0) partial.insert(of(axis));
  return outer.with_partial(partial, inner.partial.empty() ? Reduction::sum : inner.reduction);
}

/// Returns how an outer sharding lies on the inner mesh, without the axes that the view names.
constexpr Sharding inner_sharding(const Sharding& outer, const AxisList& free,
                                  const ManualView& view) {
  Sharding inner;
  const auto number = [&](int axis) {
    for (int i = 0; i < free.size(); ++i)
      if (free[i] == axis) return i;
    return -1;
  };
  for (int d = view.lead.size(); d < outer.rank(); ++d) {
    AxisList axes;
    for (int i = 0; i < outer[d].size(); ++i)
      if (number(outer[d][i]) >= 0) axes.push_back(number(outer[d][i]));
    inner.dims.push_back(axes);
  }
  AxisSet partial;
  for (int axis = 0; axis < max_axes; ++axis)
    if (outer.partial.contains(axis) && number(axis) >= 0) partial.insert(number(axis));
  return inner.with_partial(partial, outer.reduction);
}

/// Returns the view by which an outer sharding is seen from within, where `named` are no axes of
/// the inner mesh; `ok`: they are the major ones of each dimension.
struct EnteredView {
  ManualView view;
  bool ok = true;
};
constexpr EnteredView entered_view(const Sharding& outer, AxisSet named) {
  EnteredView entered;
  for (int d = 0; d < outer.rank(); ++d) {
    AxisList major;
    for (int i = 0; i < outer[d].size(); ++i)
      if (named.contains(outer[d][i])) {
        entered.ok = entered.ok && major.size() == i;
        major.push_back(outer[d][i]);
      }
    entered.view.major.dims.push_back(major);
  }
  entered.view.partial = outer.partial & named;
  return entered;
}

/// Returns the descriptions; `mesh` is the outer one's shape.
constexpr TensorDesc outer_desc(const TensorDesc& inner, const AxisList& free,
                                const ManualView& view, const MeshShape& mesh) {
  TensorDesc outer{inner.type, {}, outer_sharding(inner.sharding, free, view)};
  for (int i = 0; i < view.lead.size(); ++i) outer.extents.push_back(mesh[view.lead[i]]);
  for (int d = 0; d < inner.rank(); ++d)
    outer.extents.push_back(inner.extents[d] *
                            (d < view.major.rank() ? mesh.parts(view.major[d]) : 1));
  return outer;
}
constexpr TensorDesc inner_desc(const TensorDesc& outer, const AxisList& free,
                                const ManualView& view, const MeshShape& mesh) {
  TensorDesc inner{outer.type, {}, inner_sharding(outer.sharding, free, view)};
  const int lead = view.lead.size();
  for (int d = lead; d < outer.rank(); ++d)
    inner.extents.push_back(outer.extents[d] /
                            (d - lead < view.major.rank() ? mesh.parts(view.major[d - lead]) : 1));
  return inner;
}

}  // namespace tessera::detail
