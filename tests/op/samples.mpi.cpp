// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Samples of the random cases of the loopback tests, between the processes of an MPI job.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "op/indexed_cases.hpp"
#include "op/row_cases.hpp"
#include "op/sort_cases.hpp"
#include "op/window_cases.hpp"

using namespace tessera;
using namespace support;

namespace {
/// Runs some_case(mesh, random) `count` times on every mesh of one or two axes over the job.
template <class SomeCase>
void sample(const char* name, std::uint64_t otherwise, int count, const SomeCase& some_case) {
  const auto world = mpi_transport(MPI_COMM_WORLD);
  const std::uint64_t seed = seed_for(name, otherwise, world->process() == 0);
  std::uint64_t number = 0;
  int wrong = 0;
  for (int axes = 1; axes <= 2; ++axes)
    for (const MeshShape& shape : meshes_of(world->size(), axes)) {
      Random random(seed + 1000 * ++number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      for (int i = 0; i < count; ++i)
        if (const std::string text = some_case(mesh, random); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
    }
  CHECK(wrong == 0);
}
}  // namespace

TEST_CASE("takes, scatters and windows that begin anywhere under MPI") {
  sample("indexed under MPI", 71, 40,
         [](const auto& mesh, Random& random) { return some_indexed_case(mesh, random); });
}
TEST_CASE("sorts under MPI") {
  sample("sort under MPI", 53, 30,
         [](const auto& mesh, Random& random) { return some_sort_case(mesh, random); });
}
TEST_CASE("arg-max, running joins and deterministic sums under MPI") {
  sample("rows under MPI", 51, 30,
         [](const auto& mesh, Random& random) { return some_row_case(mesh, random); });
}
TEST_CASE("convolutions, windows and their gradients under MPI") {
  sample("windows under MPI", 61, 30,
         [](const auto& mesh, Random& random) { return some_window_case(mesh, random); });
}
