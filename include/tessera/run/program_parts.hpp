// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The meshes on which the operators of a Program work, as its parts.
///
///     program.set_parts(program_parts(world, {&world, &part}));
///
/// Laws: all processes of the world say the same, but for the parts of manual functions, of which
/// each has its own: its places there are those of its coordinates.
#include <cstddef>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

/// Returns the mesh that a mesh lies in, and that is a part of none: itself where it is one, and
/// the last that has not ended.
TESSERA_FUNCTION const MeshCore& whole_mesh(const MeshCore& mesh);

/// Returns "data=2", and of a part "data=2 (stage=0 of stage=2 x data=2)".
TESSERA_FUNCTION std::string text_of_mesh(const MeshCore& mesh);

/// Returns the place of a mesh in a list of meshes; -1: it is none of them.
template <class Mesh> int number_among(const std::vector<Mesh>& meshes, const MeshCore& mesh) {
  for (std::size_t i = 0; i < meshes.size(); ++i)
    if (&*meshes[i] == &mesh) return static_cast<int>(i);
  return -1;
}

/// Returns the parts for meshes that lie in `world`, or are over processes of it.
TESSERA_FUNCTION std::vector<ProgramPart> program_parts(MeshCore& world,
                                                        const std::vector<MeshCore*>& meshes);

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/detail/program_parts.hpp>
#endif
