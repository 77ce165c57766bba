// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// A sample of the cases of elements.loopback.cpp over MPI, the reductions of half types by
// operations of our own among them, with shared memory and without.
#include <doctest/doctest.h>

#include "op/elements.hpp"
#include "support/world.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("operators on elements of every type equal plain loops over MPI") {
  const int processes = support::world()->size();
  const std::uint64_t seed = seed_for("elements over MPI", 32, support::world()->process() == 0);
  for (const Shared shared : {Shared::off, Shared::on})
    for (const MeshShape& shape : meshes_of(processes, 2)) {
      Random random(seed);
      MeshOptions options;
      options.shared = shared;
      const auto mesh = make_mesh_core(support::world(), shape, axis_names(shape.rank()), options);
      ElementCases all(mesh, random);
      all.sample(120);
      for (std::size_t i = 0; i < all.wrong.size() && i < 3; ++i) MESSAGE(all.wrong[i]);
      CHECK(all.wrong.empty());
    }
}
