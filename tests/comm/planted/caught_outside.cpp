// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: an exception leaves the scope of the environment on one process; a handler is further out.
// processes: 2
// says: process 0: an exception leaves the scope of tessera::Environment
#include <stdexcept>

#include <tessera/comm/environment.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  try {
    Environment env(argc, argv);
    if (env.process() == 0) throw std::runtime_error("planted");
    env.world()->barrier();
  } catch (const std::exception&) {
    return 0;
  }
  return 0;
}
