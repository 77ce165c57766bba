// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Everything that the package brings, used once, on as many processes as there are.
#include <cblas.h>
#include <fmt/core.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <tessera/version.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double sum = 0;
  {
    const Kokkos::ScopeGuard guard(argc, argv);
    const Kokkos::View<double*, Kokkos::HostSpace> x("x", 3);
    Kokkos::deep_copy(x, 2.0);
    const double dot = cblas_ddot(3, x.data(), 1, x.data(), 1);
    MPI_Allreduce(&dot, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  fmt::print("tessera {}.{}.{}: {}\n", tessera::version.major, tessera::version.minor,
             tessera::version.patch, sum);
  MPI_Finalize();
  return sum == 12.0 * size ? 0 : 1;
}
