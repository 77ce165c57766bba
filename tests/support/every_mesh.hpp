// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random cases on every mesh of up to 8 processes of a loopback, with machines and checks of many
/// kinds.
///
///     on_every_mesh("rows on loopback", 50, 240 / share, 3, [](const auto& mesh, Random& random) { return some_row_case(mesh, random); });
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "enumerate.hpp"

namespace support {

/// Whether a case of which one in `n` is run is one of these; all are run if all cases are.
inline bool one_in(int n, Random& random) {
  const bool chosen = random.below(n) == 0;
  return chosen || all_cases();
}

/// Runs `run(mesh, random)`, which returns what is wrong or nothing,
/// `cases_of(count_on(shape))` times on every mesh of up to 8 processes and `axes` axes; `name` and
/// `otherwise` choose the seed.
template <class CountOn, class Run>
void on_every_mesh_so_often(const char* name, std::uint64_t otherwise, int axes,
                            const CountOn& count_on, const Run& run) {
  const std::uint64_t seed = seed_for(name, otherwise);
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, axes)) {
    ++number;
    const int count = cases_of(count_on(shape));
    MeshOptions options;
    Random machine(seed + number);
    options.machine = some_machine(machine);
    options.machine.hidden_percent = machine.of<std::int64_t>({0, 0, 50, 100});
    options.check = number % 3 == 0 ? Check::communicating : Check::normal;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + 1000 * number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
      for (int i = 0; i < count; ++i) {
        const std::string text = run(mesh, random);
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

/// Runs so many cases on every mesh.
template <class Run>
void on_every_mesh(const char* name, std::uint64_t otherwise, int count, int axes, const Run& run) {
  on_every_mesh_so_often(
      name, otherwise, axes, [&](const MeshShape&) { return count; }, run);
}

}  // namespace support
