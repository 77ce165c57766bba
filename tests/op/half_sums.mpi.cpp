// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Sums of half types between the processes of an MPI job.
#include "op/half_sums.hpp"

TEST_CASE("sums of half types are rounded once under MPI, with shared memory and without") {
  const auto world = tessera::mpi_transport(MPI_COMM_WORLD);
  for (const tessera::Shared shared : {tessera::Shared::automatic, tessera::Shared::off})
    for (int axes = 1; axes <= 2; ++axes)
      for (const tessera::MeshShape& shape : support::meshes_of(world->size(), axes)) {
        tessera::MeshOptions options;
        options.shared = shared;
        const auto mesh =
            tessera::make_mesh_core(world, shape, support::axis_names(shape.rank()), options);
        half_sums::check<tessera::half>(mesh, 5, 2);
      }
}
