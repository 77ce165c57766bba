// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// The rows of the conformance table between the processes of an MPI job: those on whose own mesh
// they are as many, and a sample of the others.
#include <doctest/doctest.h>

#include "op/conformance_run.hpp"
#include "support/world.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("conformance rows equal plain loops under MPI") {
  const std::vector<Conformance> rows = conformance();
  const int processes = support::world()->size();
  Random random(seed_for("conformance under MPI", 46, support::world()->process() == 0));
  int wrong = 0, runs = 0;
  for (int axes = 1; axes <= 3; ++axes)
    for (const MeshShape& shape : meshes_of(processes, axes)) {
      const auto mesh = make_mesh_core(support::world(), shape, axis_names(axes));
      for (const Conformance& row : rows) {
        const bool own = shape == (row.small.rank() > 0 ? row.small : row.mesh);
        if (row.mesh.rank() != axes || (!own && !random.chance(15))) continue;
        ++runs;
        if (const std::string text = run_row(mesh, row); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
      }
    }
  CHECK(wrong == 0);
  CHECK(runs > 0);
}
