// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pipelines on loopback: losses and gradients by every schedule are those of one part.
#include <doctest/doctest.h>

#include "op/texts_of.hpp"
#include "pipeline/pipeline_case.hpp"

using namespace support;

TEST_CASE("pipeline: a small one") {
  for (const std::string& wrong : texts_of(2, [](const std::shared_ptr<Transport>& transport) {
         return pipeline_case<double>(transport, 2, gpipe(2, 2), {0, 0, 1, 1}, {4, 4}, 1e-12);
       }))
    CHECK(wrong == "");
}
