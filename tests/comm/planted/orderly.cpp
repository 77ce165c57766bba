// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: meshes and transports outlive the environment in statics, closed before MPI ends.
// It ends with a failure since planted programs must.
// processes: 3
// says: ^process 0 is done
// says: process 0 refuses
// says: all 3 have ended in order
#include <cstdio>
#include <memory>
#include <vector>

#include <tessera/comm/environment.hpp>
#include <tessera/comm/mesh_core.hpp>

using namespace tessera;

static std::vector<std::shared_ptr<MeshCore>> meshes;
static std::shared_ptr<Transport> transport;
static std::vector<detail::Block> blocks;

int main(int argc, char** argv) {
  int rank = 0;
  {
    Environment env(argc, argv);
    rank = env.process();
    transport = env.world();
    for (int i = 0; i < 3; ++i) {
      meshes.push_back(make_mesh_core(env.world(), MeshShape{3}, {"data"}));
      meshes.back()->group(AxisSet{0});
      blocks.push_back(meshes.back()->arena().allocate(1 << 22));
    }
    meshes.erase(meshes.begin() + rank);  // another one on each process
    env.world()->barrier();
    if (rank == 0) std::printf("process %d is done\n", rank);
  }
  try {
    transport->barrier();
  } catch (const UsageError&) {
    if (rank == 0) std::printf("process %d refuses\n", rank);
  }
  for (auto& mesh : meshes) mesh->arena().release(blocks.back());
  if (rank == 0) std::printf("all 3 have ended in order\n");
  return rank == 0 ? 1 : 0;  // a launcher may end the others with the first that fails
}
