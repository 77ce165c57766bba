// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// A sample of the cases of shape.loopback.cpp between the processes of an MPI job; and the calls
// that MPI sees are those of the plans.
#include <doctest/doctest.h>

#include "op/shape_cases.hpp"
#include "op/signature.hpp"

using namespace tessera;
using namespace support;

namespace {
void run_cases(const char* name, std::uint64_t otherwise, bool watched) {
  const auto world = mpi_transport(MPI_COMM_WORLD);
  const std::uint64_t seed = seed_for(name, otherwise, world->process() == 0);
  Signature signature;
  observer = watched ? &signature : nullptr;
  std::uint64_t number = 0;
  int wrong = 0;
  for (int axes = 1; axes <= 2; ++axes)
    for (const MeshShape& shape : meshes_of(world->size(), axes)) {
      Random random(seed + 1000 * ++number);
      MeshOptions options;
      options.machine = some_machine(random);
      options.check = watched ? Check::normal
                              : Check::communicating;  // the comparison of operators is a call too
      options.shared =
          watched ? Shared::off : Shared::automatic;  // MPI sees nothing of shared memory
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
      if (const std::string text = wrong_detour(mesh); !text.empty() && ++wrong <= 3) MESSAGE(text);
      for (int i = 0; i < 40; ++i)
        if (const std::string text = some_shape_case(mesh, random); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
    }
  observer = nullptr;
  CHECK(wrong == 0);
  if (watched && world->size() > 2) CHECK(signature.calls > 0);
}
}  // namespace

TEST_CASE("operators that move elements under MPI: values, plan, ledger, arena, bits") {
  run_cases("shapes under MPI", 76, false);
}
TEST_CASE("MPI sees the calls of their plans") { run_cases("signatures of shapes", 77, true); }
