// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// A sample of the cases of indexed.loopback.cpp between the processes of an MPI job.
#include <doctest/doctest.h>

#include "op/indexed_cases.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("takes, scatters and windows that begin anywhere under MPI") {
  const auto world = mpi_transport(MPI_COMM_WORLD);
  const std::uint64_t seed = seed_for("indexed under MPI", 71, world->rank() == 0);
  std::uint64_t number = 0;
  int wrong = 0;
  for (int axes = 1; axes <= 2; ++axes)
    for (const MeshShape& shape : meshes_of(world->size(), axes)) {
      Random random(seed + 1000 * ++number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      for (int i = 0; i < 40; ++i)
        if (const std::string text = some_indexed_case(mesh, random); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
    }
  CHECK(wrong == 0);
}
