// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: a process never comes to a call that goes through shared memory, and the others poll and
// sleep.
// processes: 2
// says: process 0 has waited longer than the limit of 1.5 s
// says: process 0: waits in all-reduce over data for sum .at user.cpp:9., call 4
// says: process 1: left all-reduce over data for sum .at user.cpp:8., call 3
// says: TESSERA_TIME_LIMIT
#include <chrono>
#include <thread>
#include <vector>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>
#include <tessera/kernel/use_element.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    auto mesh = make_mesh_core(env.world(), MeshShape{2}, {"data"},
                               {.wait = Wait::nap, .shared = Shared::on, .time_limit = 1.5});
    use_element<std::int64_t>();
    std::vector<std::int64_t> x(50000, 1);
    Call call = detail::control_all_reduce(mesh->group(AxisSet{0}), Reduction::sum, 50000);
    call.group = AxisSet{0};
    mesh->collective(call, x.data(), x.data(), "sum", Where{"a/user.cpp", 8});
    if (mesh->ledger().shared_bytes() == 0) return;  // it went another way: not what is tested
    if (env.process() == 1) std::this_thread::sleep_for(std::chrono::seconds(60));
    mesh->collective(call, x.data(), x.data(), "sum", Where{"a/user.cpp", 9});
  });
}
