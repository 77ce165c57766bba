// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Every operator on every mesh of up to 8 processes and three axes, sampled: values, plan, ledger,
// arena, bits.
#include <doctest/doctest.h>

#include "op/cases.hpp"
#include "support/every_mesh.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("every operator equals plain loops, runs its plan, and needs what the plan says") {
  const int before = freed_plans.load();
  on_every_mesh_so_often(
      "operators on loopback", 20, 3,
      [](const MeshShape& shape) { return (shape.processes() > 4 ? 700 : 1000) / share; },
      [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
        return some_case(mesh, random);
      });
  const int freed = freed_plans.load() - before;
  MESSAGE(freed << " of them split letters that their axes split nowhere");
  CHECK(freed > 20 / share);
}
