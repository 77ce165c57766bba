// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a mesh is called, and how a process says that it makes one: before there is a mesh whose
/// operators are counted.
///
///     const Publish publish = begin_making(transport, mesh_text(shape, names), where);
///
/// Laws: the makings of meshes of one transport are counted alike on all its processes.
#include <cstdint>
#include <string>

#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/mesh_history.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/transport.hpp>
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

/// Says that this process makes a mesh of a transport.
inline Publish begin_making(Transport& transport, const std::string& mesh, Where where) {
  CallPlace place;
  Blackboard* const board = transport.size() > 1 ? transport.blackboard() : nullptr;
  if (board != nullptr) {
    place.mesh = transport.makings_id();
    place.ordinal = transport.next_making();
    MeshHistory::mark_members(transport, place);
    board->trail(transport.seat())
        .write({place.mesh, place.ordinal, 1,
                mix(mix(1, static_cast<std::uint64_t>(where.line)), mesh) | 1, 0},
               [&] { return placed("make_mesh " + mesh, where); });
  }
  return {board, transport.seat(), {mesh, where, "the making of a mesh", "", place}};
}

}  // namespace tessera::detail
