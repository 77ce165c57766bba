// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>
#include <mpi.h>

#include "op/training_case.hpp"

TEST_CASE("5 steps of training on MPI lead where one process gets alone, on every mesh that fits") {
  using namespace training;
  const auto alone = numbers_alone(5);
  const auto world = mpi_transport(MPI_COMM_WORLD);
  for (int d = 1; d <= world->size(); ++d) {
    if (world->size() % d != 0) continue;
    const auto mesh = make_mesh<Grid>(world, d, world->size() / d);
    CHECK(largest_difference(numbers_after(mesh, 5), alone) < 1e-10);
    CHECK(largest_difference(numbers_after(mesh, 5, true), alone) < 1e-10);
  }
}
