// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: a process loops without end, and is named long before the limit ends the job.
// processes: 2
// says: warning: process 0 has waited [0-9]+ s for process 1, which makes no call meanwhile: it computes, or loops
// says: process 1: left all-reduce over data for sum .at user.cpp:8.
// says: The job ends when a call has waited 2 s; TESSERA_TIME_LIMIT
// says: process 0 has waited longer than the limit of 2 s
#include <tessera/comm/mesh_core.hpp>
#include <tessera/comm/run_main.hpp>

using namespace tessera;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    auto mesh =
        make_mesh_core(env.world(), MeshShape{2}, {"data"}, {.wait = Wait::nap, .time_limit = 2});
    std::int64_t x = 1;
    Call call = detail::control_all_reduce(mesh->group(AxisSet{0}), Reduction::sum, 1);
    call.group = AxisSet{0};
    mesh->collective(call, &x, &x, "sum", Where{"a/user.cpp", 8});
    for (volatile bool endless = env.process() == 1; endless;) {
    }
    mesh->collective(call, &x, &x, "sum", Where{"a/user.cpp", 9});
  });
}
