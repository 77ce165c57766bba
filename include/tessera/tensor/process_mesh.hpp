// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A mesh type filled with processes: tensors are made on it.
///
///     auto mesh = make_mesh<Grid>(env, 2, 2);       // all processes of the environment's world
///     auto read = make_mesh<Grid>(env, std::vector<int>{2, 2});   // of sizes from a file, say
///     auto half = make_mesh<Grid>(comm, 1, 2);      // those of a communicator of one's own
///     auto some = make_mesh<Grid>(env.world()->among({0, 3}), 1, 2);          // these, on these
///     auto dry = dry_mesh<Grid>(64, 64);            // 4096 processes: plans, no data
///     const auto there = mesh.on(instance);         // from here on kernels run on this instance
///     auto first = mesh.part<data>(0);              // those whose coordinate of data is 0
///
/// Laws: a ProcessMesh<M> is a mesh of type M only; tensors on two different ProcessMesh objects do
/// not mix.
#include <concepts>
#include <memory>
#include <utility>

#include <tessera/mesh/contract.hpp>
#include <tessera/mesh/part.hpp>
#include <tessera/tensor/dynamic_mesh.hpp>
#include <tessera/tensor/part_core.hpp>

namespace tessera {

template <class M> class ProcessMesh {
 public:
  using mesh_type = M;
  ProcessMesh() = default;
  explicit ProcessMesh(std::shared_ptr<MeshCore> core) : core_(std::move(core)) {}

  const std::shared_ptr<MeshCore>& core() const { return core_; }
  const MeshShape& shape() const { return core_->shape(); }
  int process() const { return core_->process(); }
  int processes() const { return core_->shape().processes(); }
  const Coordinates& coordinates() const { return core_->coordinates(); }
  template <class A> int size() const {
    static_assert(M::template index<A> >= 0,
                  "[tessera] the Mesh has no such axis; name one of its axes");
    return shape()[M::template index<A>];
  }
  /// Returns where this process stands along axis A.
  template <class A> int coordinate() const {
    static_assert(M::template index<A> >= 0,
                  "[tessera] the Mesh has no such axis; name one of its axes");
    return coordinates()[M::template index<A>];
  }
  MeshSizes<M> sizes() const { return {shape()}; }
  detail::Arena& arena() const { return core_->arena(); }
  Ledger& ledger() const { return core_->ledger(); }
  bool dry() const { return core_->dry(); }
  /// Returns the part of the mesh whose coordinates along the axes Fixed... are these, made at the
  /// first request. Every process may have every part: on one that is in no part of it, operators
  /// do nothing, and tensors have no data (takes_part). Tensors go from part to part, and to the
  /// whole mesh, by reshard<Y>(x, mesh). Communication: as make_mesh, between the part's processes,
  /// at the first request. Collective over: these. Throws MeshError where there is no such
  /// coordinate.
  template <class... Fixed, std::convertible_to<int>... At>
  ProcessMesh<Without<M, Fixed...>> part(At... at) const {
    static_assert(sizeof...(Fixed) == sizeof...(At) && sizeof...(At) > 0,
                  "[tessera] part<axes...>(coordinates...) has one coordinate for each axis; name "
                  "the axes that it fixes");
    MeshPart part{shape(), Coordinates(shape().rank(), -1)};
    if constexpr (sizeof...(Fixed) == sizeof...(At))
      ((part.at[M::template index<Fixed>] = detail::coordinate(at)), ...);
    return ProcessMesh<Without<M, Fixed...>>(detail::part_of(core_, part));
  }
  /// Returns whether this process is one of the mesh's: false on the processes that a part leaves
  /// out.
  bool takes_part() const { return !core_->absent(); }
  /// Puts work on an instance of Kokkos's default execution space: while the returned object lives,
  /// all kernels of operators that this thread calls, on this mesh or another, are launched there.
  /// Operators on other instances that need the results wait for them, and so do the calls of the
  /// host (to_host, files). The instance is kept until Kokkos is finalized. Communication: none.
  /// Throws UsageError for more than max_lanes instances.
  template <class Space> detail::OnLane on(const Space& instance) const {
    static_assert(std::is_same_v<Space, KernelSpace>,
                  "[tessera] kernels run in Kokkos's default execution space; give an instance of "
                  "that one");
    return detail::OnLane(detail::lane_of(instance));
  }

 private:
  std::shared_ptr<MeshCore> core_;
};

/// Returns a mesh of the given sizes over all processes of `world`. Collective over those
/// processes. Throws MeshError when the sizes do not multiply to the number of processes.
template <class M>
ProcessMesh<M> make_mesh(std::shared_ptr<Transport> world, MeshSizes<M> mesh_sizes,
                         MeshOptions options = {}, Where where = Where::here()) {
  options.strict = options.strict || detail::is_strict<M>;
  return ProcessMesh<M>(
      make_mesh_core(std::move(world), mesh_sizes.shape, M::names(), options, where));
}
template <class M, class... Size>
  requires(std::is_convertible_v<Size, int>&&...)
ProcessMesh<M> make_mesh(std::shared_ptr<Transport> world, Size... size) {
  return make_mesh<M>(std::move(world), tessera::sizes<M>(size...), {}, Where{});
}
template <class M, class... Size>
  requires(std::is_convertible_v<Size, int>&&...)
ProcessMesh<M> make_mesh(Environment& environment, Size... size) {
  return make_mesh<M>(environment.world(), tessera::sizes<M>(size...), {}, Where{});
}

/// These overloads make a mesh over the processes of an application's communicator, which is
/// duplicated. Collective over these processes. They throw MeshError for MPI_COMM_NULL.
template <class M, class... Size>
  requires(std::is_convertible_v<Size, int>&&...)
ProcessMesh<M> make_mesh(MPI_Comm comm, Size... size) {
  return make_mesh<M>(mpi_transport(comm), tessera::sizes<M>(size...), {}, Where{});
}
template <class M>
ProcessMesh<M> make_mesh(MPI_Comm comm, MeshSizes<M> mesh_sizes, MeshOptions options = {},
                         Where where = Where::here()) {
  return make_mesh<M>(mpi_transport(comm, detail::settings_from_environment(), where), mesh_sizes,
                      options, where);
}

/// This overload takes options, and has the place of the call in errors: make_mesh(env,
/// sizes<Grid>(2, 4), {...}).
template <class M>
ProcessMesh<M> make_mesh(Environment& environment, MeshSizes<M> mesh_sizes,
                         MeshOptions options = {}, Where where = Where::here()) {
  return make_mesh<M>(environment.world(), mesh_sizes, options, where);
}

/// Returns a mesh of any size without processes: operators on it only plan. This program plays
/// process 0, or `process`.
template <class M>
ProcessMesh<M> dry_mesh(MeshSizes<M> mesh_sizes, int process = 0, MeshOptions options = {}) {
  options.strict = options.strict || detail::is_strict<M>;
  return ProcessMesh<M>(
      detail::dry_mesh_core(mesh_sizes.shape, M::names(), process, options, Where{}));
}
/// Returns such a mesh with the sizes of another, which may be a real one, its limits, and its
/// machine, which decides what plans send; this program plays the same process, or `process`.
template <class M> ProcessMesh<M> dry_mesh(const ProcessMesh<M>& like, int process = -1) {
  MeshOptions options;
  options.machine = like.core()->machine();
  options.workspace_limit = like.core()->workspace_limit();
  options.memory_limit = like.core()->options().memory_limit;
  options.narrow_parts = like.core()->options().narrow_parts;
  return dry_mesh<M>(like.sizes(), process < 0 ? like.process() : process, options);
}
template <class M, class... Size>
  requires(std::is_convertible_v<Size, int>&&...)
ProcessMesh<M> dry_mesh(Size... size) { return dry_mesh<M>(tessera::sizes<M>(size...)); }

}  // namespace tessera
