// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Parts of a mesh between the processes of an MPI job.
#include <doctest/doctest.h>

#include "op/parts_case.hpp"
#include "support/pmpi.hpp"
#include "support/world.hpp"

using namespace tessera;

TEST_CASE("a tensor goes from part to part under MPI, and a process of neither calls nothing") {
  const std::uint64_t seed =
      support::seed_for("parts under MPI", 381, support::world()->process() == 0);
  for (int round = 0; round < 3; ++round) {
    support::Random random(seed + static_cast<std::uint64_t>(round));
    const std::string text = support::parts_case(support::world(), random, 12);
    CHECK_MESSAGE(text.empty(), text);
  }
  const int size = support::world()->size();
  const DynamicMesh mesh(make_mesh_core(support::world(), MeshShape{size}, AxisNames{"stage"},
                                        {.check = Check::light}));
  const DynamicMesh first = mesh.part({0}, {0}), last = mesh.part({0}, {size - 1});
  const DynamicTensor x = full<double>(first, {3, 4}, Sharding::replicated(2), 5);
  support::pmpi::record(true);
  const DynamicTensor y = reshard(x + x, Sharding::replicated(2), last);
  support::pmpi::record(false);
  const bool moves = size > 1 && (mesh.process() == 0 || mesh.process() == size - 1);
  CHECK(support::pmpi::calls().size() == (moves ? 1 : 0));
  if (last.takes_part()) CHECK(to_host<double>(y)(2, 3) == 10);
}
