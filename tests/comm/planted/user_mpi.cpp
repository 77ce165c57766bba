// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: MPI and Kokkos are the user's: nothing of theirs is finalized.
// It ends with a failure since planted programs must.
// processes: 3
// says: the user ends MPI
// says: the user has ended MPI
#include <mpi.h>

#include <cstdio>

#include <Kokkos_Core.hpp>

#include <tessera/comm/environment.hpp>
#include <tessera/comm/mesh_core.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    Environment env(argc, argv);
    MPI_Comm two = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : 1, rank, &two);
    {
      auto mesh = make_mesh_core(mpi_transport(two), MeshShape{rank < 2 ? 2 : 1}, {"data"});
      mesh->barrier();
    }
    MPI_Comm_free(&two);
  }
  int up = 0;
  MPI_Finalized(&up);
  if (rank == 0 && up == 0 && Kokkos::is_initialized()) std::printf("the user ends MPI\n");
  Kokkos::finalize();
  MPI_Finalize();
  if (rank == 0) std::printf("the user has ended MPI\n");
  return rank == 0 ? 1 : 0;  // a launcher may end the others with the first that fails
}
