// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: one process throws while the others wait for it.
// processes: 3
// says: process 1: planted failure
#include <stdexcept>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    auto mesh = make_mesh_core(env.world(), MeshShape{3}, {"data"});
    if (env.process() == 1) throw std::runtime_error("planted failure");
    mesh->barrier();
  });
}
