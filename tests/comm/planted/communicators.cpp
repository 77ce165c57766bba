// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: thousands of meshes. Those let go of cost nothing; kept ones of several processes use
// communicators up, until a sentence says so where MPI has few; of one process, any number lives.
// processes: 2
// says: 1000 meshes came and went
// says: 5000 meshes of one process are alive
// says: (of two processes [0-9]+ were alive, and one more is refused|1200 meshes of two processes are alive)
// says: .tessera. process 0: the test is over
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  setenv("TESSERA_WAIT", "nap", 1);  // spinning takes long where other programs run
  return run_main(argc, argv, [](Environment& env) {
    MeshOptions options;
    options.arena_bytes = 0;
    const auto make = [&] { return make_mesh_core(env.world(), MeshShape{2}, {"data"}, options); };
    const auto say = [&](const std::string& text) {
      if (env.process() == 0) std::puts(text.c_str());
      std::fflush(stdout);
    };
    for (int i = 0; i < 1000; ++i) make();
    say("1000 meshes came and went");

    std::vector<std::shared_ptr<MeshCore>> meshes;
    const auto alone = env.world()->among({env.process()});
    while (meshes.size() < 5000)
      meshes.push_back(make_mesh_core(alone, MeshShape{1}, {"data"}, options));
    meshes.front()->barrier();
    meshes.back()->barrier();
    say("5000 meshes of one process are alive");
    meshes.clear();

    const bool few = detail::MpiContext::most_communicators < 10000;
    try {
      while (meshes.size() < 1200) meshes.push_back(make());
    } catch (const CommunicationError& error) {
      const std::string text = error.what();
      const std::string said = std::to_string(meshes.size()) + " meshes are alive and hold ";
      if (!few || text.find(said) == std::string::npos ||
          text.find("make one mesh once") == std::string::npos)
        throw;
      meshes.back()->barrier();
      say("of two processes " + std::to_string(meshes.size()) +
          " were alive, and one more is refused");
      meshes.clear();
      make()->barrier();
      throw std::runtime_error("the test is over");
    }
    if (few) throw std::runtime_error("MPI's limit was not met");
    meshes.back()->barrier();
    say("1200 meshes of two processes are alive");
    throw std::runtime_error("the test is over");
  });
}
