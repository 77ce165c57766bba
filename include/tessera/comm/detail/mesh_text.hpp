// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a mesh, its axes, groups and processes are called in messages.
///
///     mesh_text(MeshShape{2, 4}, {"data", "model"});      // "data=2 x model=4"
#include <string>

#include <tessera/mesh/axis_group.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera::detail {

// Texts are appended piece by piece: of `literal + std::string()` g++ 12 has a false -Wrestrict at
// -O3.

/// Returns the name of an axis, or "axis2".
inline std::string axis_text(int axis, const AxisNames& names) {
  if (axis < names.size()) return std::string(names[axis]);
  std::string text = "axis";
  text += std::to_string(axis);
  return text;
}

/// Returns "data=2 x model=4".
inline std::string mesh_text(const MeshShape& shape, const AxisNames& names) {
  std::string text;
  for (int a = 0; a < shape.rank(); ++a) {
    if (a > 0) text += " x ";
    text += axis_text(a, names);
    text += '=';
    text += std::to_string(shape[a]);
  }
  return text;
}

/// Returns the names of the axes in `group`, e.g. "data,model".
inline std::string axes_text(AxisSet group, const MeshShape& shape, const AxisNames& names) {
  std::string text;
  for (int a = 0; a < shape.rank(); ++a) {
    if (!group.contains(a)) continue;
    if (!text.empty()) text += ',';
    text += axis_text(a, names);
  }
  return text;
}

/// The same, and which part of an axis: "model in steps of 4".
inline std::string group_text(const AxisGroup& group, const MeshShape& shape,
                              const AxisNames& names) {
  std::string text = axes_text(group.spanned(), shape, names);
  if (group.is_divided())
    text += (group.outer ? " in steps of " : " in runs of ") + std::to_string(group.inner);
  return text;
}

/// Returns "process 5: data=1, model=1".
inline std::string process_text(int process, const Coordinates& coordinates,
                                const AxisNames& names) {
  std::string text = "process ";
  text += std::to_string(process);
  for (int a = 0; a < coordinates.size(); ++a) {
    text += a > 0 ? ", " : ": ";
    text += axis_text(a, names);
    text += '=';
    text += std::to_string(coordinates[a]);
  }
  return text;
}

}  // namespace tessera::detail
