// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: reports
// Operators on NaN, infinities, zeros of both signs and the ends of ranges: what plain rules give,
// the same on every process.
#include <doctest/doctest.h>

#include <mutex>

#include "op/special_cases.hpp"

TEST_CASE("special values are reduced alike on all processes of a loopback") {
  for (const int processes : {1, 2, 3, 4, 6}) {
    std::mutex mutex;
    std::string first;
    tessera::run_loopback(processes, [&](std::shared_ptr<tessera::Transport> world) {
      const auto mesh =
          tessera::make_mesh_core(std::move(world), tessera::MeshShape{processes}, {"data"});
      const std::string text = support::special_operators_wrong(mesh);
      const std::lock_guard lock(mutex);
      if (first.empty()) first = text;
    });
    CHECK_MESSAGE(first.empty(), first);
  }
}
