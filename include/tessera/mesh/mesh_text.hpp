// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The names of a mesh and its axes in messages.
///
///     to_string(MeshShape{2, 4}, {"data", "model"}) == "data=2 x model=4";
#include <string>

#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {
namespace detail {

// Texts are appended piece by piece, since g++ 12 gives a false -Wrestrict for `literal +
// std::string()` at -O3.

/// Returns the name of an axis, or "axis2".
inline std::string axis_text(int axis, const AxisNames& names) {
  if (axis < names.size()) return std::string(names[axis]);
  std::string text = "axis";
  text += std::to_string(axis);
  return text;
}
}  // namespace detail

/// Returns "data=2 x model=4".
inline std::string to_string(const MeshShape& shape, const AxisNames& names) {
  std::string text;
  for (int a = 0; a < shape.rank(); ++a) {
    if (a > 0) text += " x ";
    text += detail::axis_text(a, names);
    text += '=';
    text += std::to_string(shape[a]);
  }
  return text;
}

/// Returns "data,model".
inline std::string to_string(AxisSet axes, const AxisNames& names) {
  std::string text;
  for (int a = 0; a < max_axes; ++a) {
    if (!axes.contains(a)) continue;
    if (!text.empty()) text += ',';
    text += detail::axis_text(a, names);
  }
  return text;
}

}  // namespace tessera
