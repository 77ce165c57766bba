// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: a process is killed while the others wait for it: its last call and layer are told.
// processes: 3
// says: process 1 .pid [0-9]+. ended first on its node, without a word
// says: process 1: left all-reduce over data for sum .at user.cpp:8. in layer "encoder/attention", call
#include <chrono>
#include <csignal>
#include <thread>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>
#include <tessera/run/recording.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    auto mesh = make_mesh_core(env.world(), MeshShape{3}, {"data"});
    std::int64_t x = 1;
    Call call = detail::control_all_reduce(mesh->group(AxisSet{0}), Reduction::sum, 1);
    call.group = AxisSet{0};
    const Layer outer(*mesh, "encoder");
    const Layer inner(*mesh, "attention");
    mesh->collective(call, &x, &x, "sum", Where{"a/user.cpp", 8});
    if (env.process() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      std::raise(SIGKILL);
    }
    mesh->collective(call, &x, &x, "sum", Where{"a/user.cpp", 9});
  });
}
