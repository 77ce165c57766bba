// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: another MPI's mpiexec has started the program: it says so and computes nothing.
// processes: 1
// says: this process is alone in its world, but (OMPI_COMM_WORLD_SIZE|PMI_SIZE) is 16, as in a job of several: (Open MPI|MPICH)
// says: has started a program that is linked to [A-Za-z ]*MPI
// says: start it with the mpiexec of the MPI that it is linked to
#include <cstdio>
#include <cstdlib>

#include <tessera/comm/run_main.hpp>

int main(int argc, char** argv) {
#if defined(OPEN_MPI)
  setenv("PMI_SIZE", "16", 1);
#else
  setenv("OMPI_COMM_WORLD_SIZE", "16", 1);
#endif
  const int code =
      tessera::run_main(argc, argv, [](tessera::Environment&) { std::puts("it has computed"); });
  return code == 2 ? 2 : 0;  // a user's error
}
