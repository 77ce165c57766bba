// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: meshes are made in a loop: those let go of cost nothing, those kept use communicators up.
// processes: 2
// says: 1000 meshes came and went
// says: .tessera. process 0: this process holds [0-9]+ communicators, and MPI has hardly more
// says: make one mesh once
#include <cstdio>
#include <memory>
#include <vector>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    MeshOptions options;
    options.arena_bytes = 0;
    const auto make = [&] { return make_mesh_core(env.world(), MeshShape{2}, {"data"}, options); };
    for (int i = 0; i < 1000; ++i) make();
    if (env.rank() == 0) std::puts("1000 meshes came and went");
    std::fflush(stdout);
    std::vector<std::shared_ptr<MeshCore>> meshes;
    for (int i = 0; i < 1000; ++i) meshes.push_back(make());
  });
}
