// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A mesh within a mesh: the processes that differ along some of its axes only. Each process is in
/// one such slice; slices work independently, and need not do the same.
///
///     auto row = submesh<Mesh<model>>(mesh);               // those with this process's data
///     if (mesh.coordinate<data>() == 0) work_on(submesh<Mesh<model>>(mesh));
///
/// Laws: submesh<M>(mesh of type M) has the processes of the mesh; the axes keep their sizes, and
/// the process its coordinates.
#include <vector>

#include <tessera/tensor/process_mesh.hpp>

namespace tessera {
namespace detail {
template <class M> struct AxesWithin;
template <class... A> struct AxesWithin<Mesh<A...>> {
  template <class M> static constexpr bool all = ((M::template index<A> >= 0) && ...);
  template <class M> static constexpr AxisList list() {
    AxisList axes;
    if constexpr (all<M>) (axes.push_back(M::template index<A>), ...);
    return axes;
  }
};
template <class M> struct AxesWithin<Strict<M>> : AxesWithin<M> {};
}  // namespace detail

/// Returns the mesh of this process's slice: Sub's axes are axes of M, in any order; along the
/// other axes all its processes have the same coordinates. It has the mesh's options unless the
/// call gives `options`. Communication: as make_mesh. Collective over: the slice.
template <class Sub, class M>
ProcessMesh<Sub> submesh(const ProcessMesh<M>& mesh, MeshOptions options,
                         Where where = Where::here()) {
  using Within = detail::AxesWithin<Sub>;
  static_assert(Within::template all<M>,
                "[tessera] submesh names an axis that the mesh does not have; a slice keeps some "
                "of its axes; name axes of the mesh");
  constexpr AxisList axes = Within::template list<M>();
  MeshSizes<Sub> sizes;
  for (int i = 0; i < axes.size(); ++i) sizes.shape.push_back(mesh.shape()[axes[i]]);
  std::vector<int> members;
  for (int p = 0; p < sizes.shape.processes(); ++p) {
    Coordinates at = mesh.coordinates();
    const Coordinates within = sizes.shape.coordinates(p);
    for (int i = 0; i < axes.size(); ++i) at[axes[i]] = within[i];
    members.push_back(mesh.shape().process(at));
  }
  return make_mesh<Sub>(mesh.core()->transport().among(members, where), sizes, options, where);
}
template <class Sub, class M>
ProcessMesh<Sub> submesh(const ProcessMesh<M>& mesh, Where where = Where::here()) {
  MeshOptions options = detail::options_within(*mesh.core());
  options.strict = false;  // Sub decides
  return submesh<Sub>(mesh, options, where);
}

}  // namespace tessera
