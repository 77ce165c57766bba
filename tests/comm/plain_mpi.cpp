// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Plain MPI, nothing of Tessera: tells a broken launcher or MPI library from a broken Tessera.
/// All other MPI tests wait for it. Its argument is the number of processes that it must find.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace {

void require(bool holds, const char* what, int rank) {
  if (holds) return;
  std::fprintf(stderr, "plain_mpi: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = -1;
  int size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  require(argc == 2, "usage: plain_mpi PROCESSES", rank);
  require(size == std::atoi(argv[1]), "the launcher did not start the processes it was asked for",
          rank);

  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  require(sum == size * (size - 1) / 2, "all-reduce gives a wrong sum", rank);

  const int left = (rank + size - 1) % size;
  const int right = (rank + 1) % size;
  int from_left = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, right, 0, &from_left, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  require(from_left == left, "a message around the ring went astray", rank);

  MPI_Finalize();
  if (rank == 0) std::printf("plain_mpi: %d processes\n", size);
  return 0;
}
