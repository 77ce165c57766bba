// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: the environment cannot start, since a variable makes no sense.
// processes: 2
// says: TESSERA_WAIT is "doze"; it is one of automatic, spin, nap
#include <cstdlib>

#include <tessera/comm/run_main.hpp>

int main(int argc, char** argv) {
  setenv("TESSERA_WAIT", "doze", 1);
  return tessera::run_main(argc, argv, [](tessera::Environment&) {});
}
