// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Manual functions between the processes of an MPI job.
#include <doctest/doctest.h>

#include "manual/program_case.hpp"
#include "support/world.hpp"

TEST_CASE("a random function in manual mode is the same in automatic mode under MPI") {
  const std::uint64_t seed =
      support::seed_for("manual programs under MPI", 721, support::world()->process() == 0);
  for (int round = 0; round < 3; ++round) {
    support::Random random(seed + static_cast<std::uint64_t>(round));
    const std::string text = support::manual_case(support::world(), random, 4);
    CHECK_MESSAGE(text.empty(), text);
  }
}
