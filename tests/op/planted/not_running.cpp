// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: MPI and Kokkos are used before they are initialized and after they are finalized.
// It ends with a failure since planted programs must.
// processes: 2
// says: 1: .tessera. MPI is not initialized; make a tessera::Environment first, or call MPI_Init_thread .at not_running.cpp:
// says: 2: .tessera. Kokkos is not initialized, and a mesh computes with it; make a tessera::Environment first
// says: 3: 30
// says: 4: .tessera. the mesh data=2 cannot be used: it was closed when MPI was finalized, .*.at not_running.cpp:
// says: 5: .tessera. MPI has been finalized, and cannot be initialized again; .*.at not_running.cpp:
// says: 6: .tessera. MPI has been finalized
// says: 7: .tessera. the mesh data=2 cannot be used
// says: 8: .tessera. Kokkos has been finalized, and cannot be initialized again
// says: 9: dry
#include <mpi.h>

#include <cstdio>
#include <string>

#include <Kokkos_Core.hpp>

#include <tessera/tessera.hpp>

using namespace tessera;

struct data : Axis<> {};
using Grid = Mesh<data>;
using Real = ShardedTensor<double, Grid, P<data, _>>;

static int rank = 0;

/// Runs f and prints the user's error that it throws.
template <class F> void refuses(int step, F f) {
  std::string text = "nothing was thrown";
  try {
    f();
  } catch (const UsageError& error) {
    text = error.what();
  }
  if (rank == 0) std::printf("%d: %s\n", step, text.c_str());
}

int main(int argc, char** argv) {
  const auto over_all = [] { return make_mesh<Grid>(mpi_transport(MPI_COMM_WORLD), 2); };
  refuses(1, over_all);
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  refuses(2, over_all);
  Kokkos::initialize();
  const auto mesh = over_all();
  const auto x = full<Real>(mesh, {12, 5}, 0.5);
  const double total = value(sum(x));
  if (rank == 0) std::printf("3: %g\n", total);
  MPI_Finalize();
  refuses(4, [&] { sum(x); });
  refuses(5, over_all);
  refuses(6, [&] { Environment env(argc, argv); });
  Kokkos::finalize();
  refuses(7, [&] { exp(x); });
  refuses(8,
          [] { run_loopback(1, [](auto world) { make_mesh_core(world, MeshShape{1}, {"a"}); }); });
  const auto dry = dry_mesh<Grid>(2);
  const auto y = zeros<Real>(dry, 12, 5);
  sum(y);
  if (rank == 0) std::printf("9: dry %d\n", static_cast<int>(y.core().extents()[0]));
  return rank == 0 ? 1 : 0;
}
