// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A mesh filled with processes whose axes are known only at run time: dynamic tensors are made on
/// it. tensor/process_mesh.hpp has meshes whose axes are types.
///
///     const DynamicMesh mesh = make_mesh(env, {2, 4}, {"data", "model"});
///     const DynamicMesh read = make_mesh(env, std::vector<int>{2, 4}, {"data", "model"});
///     DynamicTensor x = zeros<float>(mesh, {8, 512}, Sharding{{0}, {1}});   // P<data, model>
///     const DynamicMesh same = x.mesh();
///     const DynamicMesh grid = make_mesh<Grid>(env, 2, 4);
///
/// Laws: a DynamicMesh made from a ProcessMesh is the same mesh, and tensors made on either one
/// mix; an axis has the number of its place in the list.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/dry.hpp>
#include <tessera/comm/environment.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/tensor/part_core.hpp>

namespace tessera {

template <class M> class ProcessMesh;

class DynamicMesh {
 public:
  DynamicMesh() = default;
  DynamicMesh(std::shared_ptr<MeshCore> core) : core_(std::move(core)) {}  // NOLINT: it is one
  template <class M>
  DynamicMesh(const ProcessMesh<M>& typed) : core_(typed.core()) {}  // NOLINT: a typed mesh is one

  bool defined() const { return core_ != nullptr; }
  /// Throws MeshError when it is empty; so do the functions below.
  const std::shared_ptr<MeshCore>& core() const {
    if (core_ == nullptr)
      throw MeshError("an empty mesh is used; assign one made by make_mesh or dry_mesh first");
    return core_;
  }
  const MeshShape& shape() const { return core()->shape(); }
  const AxisNames& names() const { return core()->names(); }
  int process() const { return core()->process(); }
  int processes() const { return shape().processes(); }
  const Coordinates& coordinates() const { return core()->coordinates(); }
  detail::Arena& arena() const { return core()->arena(); }
  Ledger& ledger() const { return core()->ledger(); }
  bool dry() const { return core()->dry(); }
  /// As ProcessMesh::part, of axes by their numbers.
  DynamicMesh part(const AxisList& axes, const std::vector<int>& at,
                   Where where = Where::here()) const {
    if (static_cast<int>(at.size()) != axes.size())
      throw MeshError("part: " + std::to_string(axes.size()) + " axes are fixed at " +
                          std::to_string(at.size()) +
                          " coordinates; give one coordinate for each axis",
                      where);
    MeshPart part{shape(), Coordinates(shape().rank(), -1)};
    for (int i = 0; i < axes.size(); ++i) {
      if (axes[i] < 0 || axes[i] >= shape().rank() || part.fixes(axes[i]))
        throw MeshError("part: axis " + std::to_string(axes[i]) + " of the mesh " +
                            core()->to_string() +
                            " is named twice, or is none; name axes by their numbers from 0, each "
                            "once",
                        where);
      part.at[axes[i]] = detail::coordinate(at[static_cast<std::size_t>(i)], where);
    }
    return detail::part_of(core(), part, where);
  }
  bool takes_part() const { return !core()->absent(); }
  /// As ProcessMesh::on.
  template <class Space> detail::OnLane on(const Space& instance) const {
    static_assert(std::is_same_v<Space, KernelSpace>,
                  "[tessera] kernels run in Kokkos's default execution space; give an instance of "
                  "that one");
    return detail::OnLane(detail::lane_of(instance));
  }

 private:
  std::shared_ptr<MeshCore> core_;
};

namespace detail {
inline void require_axes(const MeshShape& shape, const AxisNames& names, Where where) {
  if (names.size() != shape.rank())
    throw MeshError("a mesh of " + std::to_string(shape.rank()) + " axes is made with " +
                        std::to_string(names.size()) + " names; give one name for each axis",
                    where);
  std::int64_t processes = 1;
  for (int a = 0; a < names.size(); ++a) require_size(names[a], shape[a], processes, where);
  for (int a = 0; a < names.size(); ++a)
    if (names.find(names[a]) < a)
      throw MeshError("two axes of a mesh are called " + std::string(names[a]) +
                          "; give each a name of its own",
                      where);
}
/// Plays `process`, or process 0, of a dry mesh of any size.
inline std::shared_ptr<MeshCore> dry_mesh_core(const MeshShape& shape, const AxisNames& names,
                                               int process, const MeshOptions& options,
                                               Where where) {
  const DeviceAssignment assignment = assignment_of(shape, options);
  const bool there = process >= 0 && (assignment.natural() || process < assignment.size());
  return make_mesh_core(dry_transport(shape.processes(), there ? assignment[process] : process),
                        shape, names, options, where);
}
}  // namespace detail

/// Returns a mesh of the given sizes, with a name for each axis, over all processes of `world`.
/// Collective over those processes. Throws MeshError when the sizes do not multiply to the number
/// of processes, or two axes have the same name or one has none.
inline DynamicMesh make_mesh(std::shared_ptr<Transport> world, const MeshShape& shape,
                             const AxisNames& names, const MeshOptions& options = {},
                             Where where = Where::here()) {
  detail::require_axes(shape, names, where);
  return make_mesh_core(std::move(world), shape, names, options, where);
}
inline DynamicMesh make_mesh(Environment& environment, const MeshShape& shape,
                             const AxisNames& names, const MeshOptions& options = {},
                             Where where = Where::here()) {
  return make_mesh(environment.world(), shape, names, options, where);
}

/// Returns a mesh of any size without processes: operators on it only plan.
inline DynamicMesh dry_mesh(const MeshShape& shape, const AxisNames& names, int process = 0,
                            const MeshOptions& options = {}, Where where = Where::here()) {
  detail::require_axes(shape, names, where);
  return detail::dry_mesh_core(shape, names, process, options, where);
}

}  // namespace tessera
