// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: a process leaves the program while others wait for it.
// processes: 3
// says: process 1 has ended, but process [02] waits for it
// says: process 0: waits in a barrier .at returns_early.cpp:
// says: process 1: has ended; its last call was the making of a mesh for data=3
#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    auto mesh = make_mesh_core(env.world(), MeshShape{3}, {"data"}, {.time_limit = 600});
    if (env.process() == 1) return;
    mesh->barrier();
  });
}
