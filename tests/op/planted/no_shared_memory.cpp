// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: /dev/shm is full: no window, no shared arena, the same results; and a process that does
// not come is still noticed, by the blackboard, which needs no name there.
// processes: 3
// program: its own
// says: the sum is 4950, through shared memory went 0 bytes, the arena has 0
// says: has waited longer than the limit of 1 s
// says: .at no_shared_memory.cpp:
// says: process 2: left all-reduce over data .* and has not called since
#include <mpi.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include <tessera/tessera.hpp>

using namespace tessera;

static bool shm_is_full = false;

/// Takes the place of the C library's. MPI's own start needs some.
extern "C" int statvfs(const char* path, struct statvfs* stat) noexcept {
  struct statfs found {};
  const int result = statfs(path, &found);
  *stat = {};
  stat->f_bsize = static_cast<unsigned long>(found.f_bsize);
  stat->f_frsize = static_cast<unsigned long>(found.f_frsize);
  stat->f_blocks = found.f_blocks;
  stat->f_bfree = stat->f_bavail = shm_is_full ? 0 : found.f_bavail;
  return result;
}

struct data : Axis<> {};
using Grid = Mesh<data>;
struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return static_cast<double>(i[0]);
  }
};

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  shm_is_full = true;
  const int code = run_main(argc, argv, [](Environment& env) {
    MeshOptions options;
    options.shared = Shared::on;
    options.time_limit = 1;
    const auto mesh = make_mesh<Grid>(env, sizes<Grid>(3), options);
    const auto x =
        from_function<ShardedTensor<double, Grid, P<data, _>>>(mesh, {100, 1000}, Ramp{});
    const double total = to_host(sum<"ij->j">(x)).values[7];
    if (env.process() == 0)
      std::printf("the sum is %g, through shared memory went %lld bytes, the arena has %lld\n",
                  total, static_cast<long long>(mesh.ledger().shared_bytes()),
                  static_cast<long long>(mesh.arena().shared_bytes()));
    std::fflush(stdout);
    if (env.process() == 2) std::this_thread::sleep_for(std::chrono::seconds(60));
    replicate(x);
  });
  MPI_Finalize();
  return code;
}
