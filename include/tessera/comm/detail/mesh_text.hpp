// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The names of a mesh's groups and processes in messages.
///
///     process_text(5, {1, 1}, {"data", "model"});      // "process 5: data=1, model=1"
#include <string>

#include <tessera/mesh/axis_group.hpp>
#include <tessera/mesh/mesh_text.hpp>

namespace tessera::detail {

/// Returns the axes of a group, and which part of them: "data,model", "model in steps of 4".
inline std::string group_text(const AxisGroup& group, const AxisNames& names) {
  std::string text = to_string(group.spanned(), names);
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
