// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: processes call different operators at level communicating.
// processes: 4
// says: ^.tessera. process 0 calls einsum "ik,kj->ij"
// says: but process 3 calls reduce "ij->i" .at user.cpp:4.
#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    auto mesh = make_mesh_core(env.world(), MeshShape{2, 2}, {"data", "model"},
                               {.check = Check::communicating});
    if (env.process() == 3)
      mesh->agree(1, "reduce \"ij->i\"", Where{"user.cpp", 4});
    else
      mesh->agree(2, "einsum \"ik,kj->ij\"", Where{"user.cpp", 3});
  });
}
