// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitized: preset address
// Halo exchanges against their definition: some of everything on all meshes, and every small case in one dimension.
#include <doctest/doctest.h>

#include <mutex>

#include "halo_cases.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("halos equal their definition, and cost what their plans say, for some of everything") {
  const std::uint64_t seed = seed_for("halos", 90);
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 3)) {
    ++number;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + number);
      for (int round = 0; round < 4; ++round) {
        MeshOptions options;
        options.machine = some_machine(random);
        if (round % 2 == 0) options.machine.message_ps *= 100;  // so that dimensions are taken in turn
        const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
        for (int i = 0; i < 8; ++i) {
          const std::string text = halo_case(mesh, random);
          const std::lock_guard lock(mutex);
          if (mesh->process() == 0) ++cases;
          if (!text.empty()) wrong.push_back(text);
        }
      }
    });
  }
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
  CHECK(cases > 1500);
}
