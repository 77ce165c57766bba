// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The layers that are open on a mesh, and the mesh of what a layer is opened on.
///
///     path_of(innermost)          // "encoder.0/attention"
///     mesh_among(x, w)            // that of the first argument that has one
///
/// Laws: layers that are open at once on a mesh lie in each other, and each has a number of its
/// own.
#include <concepts>
#include <cstdint>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/tensor/process_mesh.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// A layer that is open on a mesh, and the stack of them.
struct OpenLayer {
  std::string name;
  Where where;
  const OpenLayer* outer = nullptr;
  std::uint64_t number = 0;  ///< of those that have been opened on the mesh
};
struct OpenLayers {
  const OpenLayer* innermost = nullptr;
  std::uint64_t opened = 0;
  MeshCore* shown_by = nullptr;  ///< the mesh whose blackboard shows them, while it lives
};

/// Returns "encoder.0/attention".
inline std::string path_of(const OpenLayer* innermost) {
  if (innermost == nullptr) return "";
  std::string path = innermost->name;
  for (const OpenLayer* l = innermost->outer; l != nullptr; l = l->outer)
    path = l->name + "/" + path;
  return path;
}

// The mesh of an argument, where it has one.
inline MeshCore* mesh_behind(const DynamicMesh& mesh) { return mesh.core().get(); }
template <class X>
  requires requires(const X& x) {
    { x.core() } -> std::same_as<const TensorCore&>;
  }
MeshCore* mesh_behind(const X& x) { return x.core().mesh().get(); }
template <class X>
concept KnowsMesh = requires(const X& x) {
  mesh_behind(x);
};
template <class First, class... Rest>
MeshCore& mesh_among(const First& first, const Rest&... rest) {
  if constexpr (KnowsMesh<First>) {
    return *mesh_behind(first);
  } else {
    static_assert(sizeof...(Rest) > 0,
                  "[tessera] layer(name, f)(...) finds no mesh: none of the arguments is a tensor "
                  "or a ProcessMesh; open a Layer(mesh, name) inside f");
    if constexpr (sizeof...(Rest) > 0) return mesh_among(rest...);
  }
}

}  // namespace tessera::detail
