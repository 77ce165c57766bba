// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: a mesh that does not fit the processes: a user's error, on all of them.
// processes: 3
// says: process 0: the mesh data=2 x model=2 has 4 processes but the communicator has 3
#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    make_mesh_core(env.world(), MeshShape{2, 2}, {"data", "model"});
  });
}
