// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: within
// Convolutions, reduce-windows and their gradients on every mesh of up to 8 processes: values,
// plan, ledger, arena.
#include <doctest/doctest.h>

#include "op/window_cases.hpp"
#include "support/every_mesh.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("convolutions, windows and their gradients equal plain loops, and run their plans") {
  const int before = freed_plans.load();
  on_every_mesh("windows on loopback", 60, 60 / share, 3,
                [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                  return some_window_case(mesh, random);
                });
  const int turns = window_turns.load(), freed = freed_plans.load() - before;
  MESSAGE(freed << " of them split letters that their axes split nowhere");
  CHECK(freed > 20 / share);
  MESSAGE(turns << " of them take corners dimension by dimension");
  CHECK(turns > 24 / share);
}
