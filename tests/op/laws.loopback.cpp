// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operator on every mesh of up to 8 processes and three axes, sampled: values, plan, ledger, arena, bits.
#include <doctest/doctest.h>

#include <mutex>

#include "cases.hpp"

using namespace tessera;
using namespace support;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int share = 8;  // sanitized programs run an eighth of the cases
#else
inline constexpr int share = 1;
#endif

TEST_CASE("every operator equals plain loops, runs its plan, and needs what the plan says") {
  const std::uint64_t seed = seed_for("operators on loopback", 20);
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 3)) {
    ++number;
    const int count = (shape.processes() > 4 ? 700 : 1000) / share;
    MeshOptions options;
    Random machine(seed + number);
    options.machine = some_machine(machine);
    options.check = number % 3 == 0 ? Check::communicating : Check::normal;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + 1000 * number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
      for (int i = 0; i < count; ++i) {
        const std::string text = some_case(mesh, random);
        const std::lock_guard lock(mutex);
        if (!text.empty()) wrong.push_back(text);
        cases += mesh->process() == 0;
      }
    });
    if (wrong.size() > 5) break;
  }
  MESSAGE(cases << " cases");
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}
