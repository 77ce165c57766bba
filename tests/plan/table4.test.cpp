// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_rows
// GShard's Table 4 from the planner alone: payload, messages and compute of a process on 2 to 4096
// processes, exactly, and the exponents of their growth.
#include "support/table4.hpp"

#include <doctest/doctest.h>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("Table 4: payload, messages and compute for D from 2 to 4096") {
  for (const Table4Row& row : table4())
    for (int d = 2; d <= table4_most; d *= 2)
      for (const int process : {0, d / 2, d - 1}) {
        const Plan plan = row.plan(d, process, {});
        CAPTURE(row.name);
        CAPTURE(d);
        CHECK_MESSAGE(plan.payload_bytes() == row.payload(d), describe(plan));
        CHECK(plan.messages() == row.messages(d));
        CHECK(plan.flops() == row.flops(d));
        CHECK(plan.network_bytes() == 0);
      }
}

TEST_CASE("Table 4: the exponents of growth") {
  // All are c D^e (1 - 1/D), so that D / (D - 1) times them grows by 2^e exactly when D doubles.
  for (const Table4Row& row : table4()) {
    CAPTURE(row.name);
    for (Index d = 2; d < table4_most; d *= 2) {
      const Index small = row.plan(static_cast<int>(d), 0, {}).payload_bytes();
      const Index large = row.plan(static_cast<int>(2 * d), 0, {}).payload_bytes();
      CHECK((small > 0) == (row.exponent >= 0));
      CHECK(large * (d - 1) * 2 * d == small * (2 * d - 1) * d * (row.exponent > 0 ? 2 : 1));
      const Index few = row.plan(static_cast<int>(d), 0, {}).messages();
      const Index many = row.plan(static_cast<int>(2 * d), 0, {}).messages();
      if (row.message_exponent == 1) CHECK(many + 1 == 2 * (few + 1));  // D - 1
      if (row.message_exponent == 0)
        CHECK(many - few == (row.exponent == 0 ? 2 : 1));  // log2 D, of an all-reduce twice
      if (row.message_exponent < 0) CHECK(many == 0);
    }
  }
}

TEST_CASE(
    "Table 4: an all-to-all on nodes of sqrt D processes takes O(sqrt D) messages, and sends as "
    "much between nodes") {
  for (const Table4Row& row : table4()) {
    if (row.message_exponent != 1) continue;
    for (int root = 2; root * root <= table4_most; root *= 2) {
      const int d = root * root;
      PlanOptions options;
      options.machine.processes_per_node = root;
      options.machine.message_ps = options.machine.network_message_ps =
          1'000'000'000;  // a network that counts messages
      const Plan plan = row.plan(d, d - 1, options);
      CAPTURE(row.name);
      CAPTURE(d);
      CHECK(plan.count(all_to_all) == 1);
      CHECK(plan.messages() == 2 * (root - 1));
      const Index all = row.payload(d) / (d - 1) * d;
      CHECK(plan.network_bytes() == all / d * (d - root));
    }
  }
}
