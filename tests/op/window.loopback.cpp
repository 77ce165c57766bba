// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions, reduce-windows and their gradients on every mesh of up to 8 processes: values, plan, ledger, arena.
#include <doctest/doctest.h>

#include <mutex>

#include "window_cases.hpp"

using namespace tessera;
using namespace support;

namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int share = 8;  // sanitized programs run an eighth of the cases
#else
inline constexpr int share = 1;
#endif
}  // namespace

TEST_CASE("convolutions, windows and their gradients equal plain loops, and run their plans") {
  const std::uint64_t seed = seed_for("windows on loopback", 60);
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
      for (int i = 0; i < 60 / share; ++i) {
        const std::string text = some_window_case(mesh, random);
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
