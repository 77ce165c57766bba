// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slice and its siblings on every mesh of up to 8 processes: values, plan, ledger, arena, bits.
#include <doctest/doctest.h>

#include <mutex>

#include "shape_cases.hpp"

using namespace tessera;
using namespace support;

namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int share = 8;  // sanitized programs run an eighth of the cases
#else
inline constexpr int share = 1;
#endif
}  // namespace

TEST_CASE("operators that move elements equal plain loops, and run their plans") {
  const std::uint64_t seed = seed_for("shapes on loopback", 70);
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 3)) {
    ++number;
    MeshOptions options;
    Random machine(seed + number);
    options.machine = some_machine(machine);
    options.check = number % 3 == 0 ? Check::communicating : Check::normal;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + 1000 * number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
      for (int i = 0; i < 240 / share; ++i) {
        const std::string text = some_shape_case(mesh, random);
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
