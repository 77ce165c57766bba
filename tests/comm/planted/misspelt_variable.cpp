// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: two variables of the environment are misspelt; the program goes on, and ends with a failure
// since planted programs must.
// processes: 2
// says: .tessera. warning: the environment sets TESSERA_CHEK, which nothing reads; the nearest that is read is TESSERA_CHECK: set that
// says: nearest that is read is TESSERA_TIME_LIMIT
// says: one process has told, once
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  setenv("TESSERA_CHEK", "heavy", 1);
  setenv("TESSERA_TIMELIMIT", "5", 1);
  // What this process says goes through a file, so that it can be counted.
  const std::string path = "/tmp/tessera_misspelt_" + std::to_string(getpid());
  const int screen = dup(2);
  std::fflush(stderr);
  if (std::freopen(path.c_str(), "w", stderr) == nullptr) return 2;
  int lines = 0;
  int rank = 0;
  int others = 0;
  {
    Environment env(argc, argv);
    rank = env.process();
    for (int i = 0; i < 3; ++i) make_mesh_core(env.world(), MeshShape{2}, {"data"});
    std::fflush(stderr);
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (line.find("[tessera] warning") == std::string::npos) continue;
      ++lines;
      std::fprintf(stdout, "%s\n", line.c_str());
    }
    MPI_Status status;
    MPI_Sendrecv(&lines, 1, MPI_INT, 1 - rank, 0, &others, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD,
                 &status);
  }
  dup2(screen, 2);
  std::remove(path.c_str());
  if (rank == 0 && lines == 2 && others == 0) std::puts("one process has told, once");
  return rank == 0 ? 1 : 0;
}
