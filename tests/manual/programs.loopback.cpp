// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random functions in manual mode and in automatic mode: the same values, and the same gradients.
#include <doctest/doctest.h>

#include "manual/program_case.hpp"
#include "op/texts_of.hpp"

using namespace support;

TEST_CASE("a random function in manual mode is the same in automatic mode, and its gradients are") {
  const std::uint64_t seed = seed_for("manual programs", 720);
  for (const int processes : {1, 2, 3, 4, 6, 8}) {
    const auto texts = texts_of(processes, [&](const std::shared_ptr<Transport>& world) {
      for (int round = 0; round < cases_of(4, 60); ++round) {
        Random random(seed + static_cast<std::uint64_t>(100 * processes + round));
        if (const std::string text = manual_case(world, random, 6); !text.empty()) return text;
      }
      return std::string();
    });
    CHECK(quiet(texts));
  }
}
