// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// Operators that are started and waited for later, on MPI: also spinning, where the plain calls
// block.
#include "op/async_cases.hpp"
#include "support/world.hpp"

TEST_CASE(
    "what is started gives what the plain operator gives, under every wait and with shared "
    "memory") {
  const int n = support::world()->size();
  for (const Wait wait : {Wait::automatic, Wait::spin}) {
    if (wait == Wait::spin && n > 3) continue;  // spinning on fewer cores than processes takes long
    for (const Shared shared : {Shared::off, Shared::on}) {
      TransportSettings settings = support::world()->settings();
      settings.wait = wait;
      settings.shared = shared;
      settings.shared_least = 64;
      const std::shared_ptr<Transport> transport = support::world()->duplicate(settings);
      for (const MeshSizes<Grid> size :
           {sizes<Grid>(n, 1), sizes<Grid>(n % 2 == 0 ? n / 2 : 1, n % 2 == 0 ? 2 : n)}) {
        const auto mesh = make_mesh<Grid>(transport, size);
        CHECK(async_cases(mesh) == "");
      }
    }
  }
}
