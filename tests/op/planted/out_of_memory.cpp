// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: an operator whose plan needs more memory than there is says so before it takes any.
// processes: 2
// says: nothing was taken
// says: .tessera. ik,jk->ij: [0-9]+ bytes would be needed, [0-9]+ are in use of [0-9]+ held, and [0-9]+ are left on this machine for 2 processes; shard over more
// says: workspace_limit
// says: .at out_of_memory.cpp:[0-9]+, on process 0: data=0.
#include <sys/resource.h>

#include <cstdio>

#include <tessera/tessera.hpp>

using namespace tessera;

struct data : Axis<> {};
using Grid = Mesh<data>;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const auto mesh = make_mesh<Grid>(env, 2);
    const auto x = zeros<ShardedTensor<float, Grid, P<data, _>>>(mesh, 20000, 16);
    const auto y = zeros<ShardedTensor<float, Grid, P<_, _>>>(mesh, 20000, 16);
    const Index used = detail::number_after("/proc/self/status", "VmSize:") * 1024;
    const rlimit limit{static_cast<rlim_t>(used) + (256 << 20), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return;
    const Index held = mesh.arena().capacity();
    try {
      einsum<"ik,jk->ij">(x, y);  // 800 MB a process
    } catch (const MemoryError&) {
      if (mesh.arena().capacity() == held && env.process() == 0) std::puts("nothing was taken");
      throw;
    }
  });
}
