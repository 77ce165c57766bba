// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Functions that are compiled around manual functions, under MPI: what MPI sees is what the Program
// says.
#include <doctest/doctest.h>

#include "manual/compiled_case.hpp"
#include "op/signature.hpp"
#include "support/world.hpp"

using namespace support;

TEST_CASE("a random function around manual functions is the same compiled under MPI") {
  Signature signature;
  observer = &signature;
  const std::uint64_t seed =
      seed_for("compiled manual programs under MPI", 725, world()->process() == 0);
  for (int round = 0; round < cases_of(4, 30); ++round) {
    Random random(seed + static_cast<std::uint64_t>(round));
    const std::string text = round % 2 == 0 ? compiled_manual_case(world(), random, 4)
                                            : compiled_stages_case(world(), random, 3);
    CHECK_MESSAGE(text.empty(), text);
    if (!text.empty()) break;
  }
  CHECK((signature.calls > 0 || world()->size() == 1));
  observer = nullptr;
}
