// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// A sample of the cases of rows.loopback.cpp between the processes of an MPI job.
#include <doctest/doctest.h>

#include "op/row_cases.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("arg-max, running joins and deterministic sums under MPI") {
  const auto world = mpi_transport(MPI_COMM_WORLD);
  const std::uint64_t seed = seed_for("rows under MPI", 51, world->rank() == 0);
  std::uint64_t number = 0;
  int wrong = 0;
  for (int axes = 1; axes <= 2; ++axes)
    for (const MeshShape& shape : meshes_of(world->size(), axes)) {
      Random random(seed + 1000 * ++number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      for (int i = 0; i < 30; ++i)
        if (const std::string text = some_row_case(mesh, random); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
    }
  CHECK(wrong == 0);
}
