// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Planning takes as much work for 4096 processes as for 1024: this program is compiled so that
// every function, inline ones too, reports that it is entered, and counts them while the rows of
// GShard's Table 4 are planned. With nodes another plan may be the cheapest on more processes, and
// ask a little more. A program of its own, since the other tests are compiled otherwise.
#include <cstdio>
#include <memory>

#include "support/table4.hpp"

// The standard library says that it has these functions compiled; clang 14 believes it where inline
// functions are counted, and it has not.
template class std::allocator<char>;

namespace {
long entered = 0;
}
extern "C" {
__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void*, void*) { ++entered; }
__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void*, void*) {}
}

namespace {
using namespace tessera;
using namespace support;

long work_of_planning(const Table4Row& row, int processes, const PlanOptions& options) {
  const long before = entered;
  const Plan plan = row.plan(processes, processes - 1, options);
  const long work = entered - before;
  return plan.steps.empty() ? -1 : work;
}
}  // namespace

int main() {
  // The search leaves ways that cannot be better; which those are depends on prices, so the work
  // settles as meshes grow.
  constexpr int settled_from = 1024;
  int wrong = 0;
  for (const Table4Row& row : table4())
    for (const int node : {0, 8}) {
      PlanOptions options;
      options.machine.processes_per_node = node;
      const long settled = work_of_planning(row, table4_most, options);
      std::printf("%-36s nodes of %d: %6ld calls at D=%d", row.name.c_str(), node, settled,
                  table4_most);
      if (settled <= 0) ++wrong;
      for (int d = 2; d < table4_most; d *= 2) {
        const long work = work_of_planning(row, d, options);
        const bool large = d >= settled_from;
        if (work > settled + settled / (large ? 20 : 2) ||
            (large && work < settled - settled / 20)) {
          std::printf(", %ld at D=%d", work, d);
          ++wrong;
        }
      }
      std::printf("\n");
    }
  if (wrong > 0) std::printf("the work of planning depends on the number of processes\n");
  return wrong > 0;
}
