// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Compiled functions under MPI, on as many processes as there are.
#include <doctest/doctest.h>

#include "op/program_cases.hpp"
#include "op/signature.hpp"
#include "support/world.hpp"

using namespace tessera;

TEST_CASE("random functions, compiled, under MPI: values, payload, memory, and what MPI sees") {
  const int n = support::world()->size();
  const std::uint64_t seed = support::seed_for("compiled programs under MPI", 92, n == 1);
  support::Signature signature;
  std::uint64_t number = 0;
  std::vector<std::string> wrong;
  for (const Shared shared : {Shared::automatic, Shared::off})
    for (const MeshShape& shape : support::meshes_of(n, 2)) {
      support::Random random(seed + ++number);
      MeshOptions options;
      options.shared = shared;
      if (shared == Shared::off) options.check = Check::normal;  // others compare by calls
      options.machine.hidden_percent = random.of<std::int64_t>({0, 50});
      const auto mesh = make_mesh_core(support::world(), shape, support::axis_names(2), options);
      // MPI sees nothing of shared memory.
      support::observer = shared == Shared::off ? &signature : nullptr;
      for (int i = 0; i < 8; ++i)
        for (const auto some : {&support::some_program_case, &support::some_gradient_case})
          if (const std::string text = some(mesh, random); !text.empty()) wrong.push_back(text);
    }
  support::observer = nullptr;
  for (std::size_t i = 0; i < wrong.size() && i < 3; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
  CHECK((n == 1 || signature.calls > 0));
}
