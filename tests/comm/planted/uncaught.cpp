// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: an exception that nobody catches, on one process, with no run_main.
// processes: 2
// says: process 1: a tensor of 3x4 .at planted.cpp:7.
#include <tessera/comm/environment.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  Environment env(argc, argv);
  if (env.process() == 1) throw ShapeError("a tensor of 3x4", Where{"planted.cpp", 7});
  env.world()->barrier();
  return 0;
}
