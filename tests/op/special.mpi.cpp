// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Operators over MPI on NaN, infinities, zeros of both signs and the ends of ranges, with shared
// memory and without: what plain rules give, the same on every process.
#include <doctest/doctest.h>

#include "op/special_cases.hpp"
#include "support/world.hpp"

TEST_CASE("special values are reduced alike on all processes, over MPI and through shared memory") {
  for (const tessera::Shared shared : {tessera::Shared::off, tessera::Shared::on}) {
    tessera::MeshOptions options;
    options.shared = shared;
    const auto mesh = tessera::make_mesh_core(
        support::world(), tessera::MeshShape{support::world()->size()}, {"data"}, options);
    const std::string text = support::special_operators_wrong(mesh);
    CHECK_MESSAGE(text.empty(), text);
  }
}
