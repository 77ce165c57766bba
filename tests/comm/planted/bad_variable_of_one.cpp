// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: the environment cannot start on one process alone, since a variable makes no sense there.
// processes: 2
// says: process 1 of the job cannot start, and the others would wait for it: TESSERA_WAIT is "doze"; it is one of automatic
#include <cstdlib>
#include <string>

#include <tessera/comm/run_main.hpp>

int main(int argc, char** argv) {
  for (const char* const name : {"PMI_RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char* const rank = std::getenv(name); rank != nullptr && std::string(rank) == "1")
      setenv("TESSERA_WAIT", "doze", 1);
  return tessera::run_main(argc, argv, [](tessera::Environment&) {});
}
