// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// A sample of the cases of loop.loopback.cpp between the processes of an MPI job: the calls that
// MPI sees are those of the plans.
#include <doctest/doctest.h>

#include "op/loop_cases.hpp"
#include "op/signature.hpp"

using namespace tessera;
using namespace support;

namespace {
/// Plays `count` cases on every mesh under every option, with shared memory and without; returns
/// how many were of this kind.
int play(const char* name, std::uint64_t otherwise, int count, const std::vector<MeshOptions>& all,
         ProductKind kind) {
  const auto world = mpi_transport(MPI_COMM_WORLD);
  const std::uint64_t seed = seed_for(name, otherwise, world->process() == 0);
  std::atomic<int> played = 0;
  kind.count = &played;
  int wrong = 0;
  for (const bool shared : {false, true}) {
    Signature signature;
    observer = shared ? nullptr : &signature;  // MPI sees nothing of shared memory
    std::uint64_t number = 0;
    for (int axes = 1; axes <= 2; ++axes)
      for (const MeshShape& shape : meshes_of(world->size(), axes))
        for (MeshOptions options : all) {
          options.shared = shared ? Shared::on : Shared::off;
          options.check = shared ? Check::communicating : Check::normal;  // which is a call, too
          Random random(seed + 1000 * ++number);
          const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
          for (int i = 0; i < count; ++i)
            if (const std::string text = some_product(mesh, random, kind);
                !text.empty() && ++wrong <= 3)
              MESSAGE(text);
        }
    observer = nullptr;
    if (!shared && world->size() > 1) CHECK(signature.calls > 0);
  }
  CHECK(wrong == 0);
  return world->process() == 0 && world->size() > 1 ? int{played} : count;
}
}  // namespace

TEST_CASE("products in rounds under MPI, with shared memory and without") {
  CHECK(play("products in rounds under MPI", 92, 20, looping_options(), {}) > 0);
}

TEST_CASE("products read the own part of a gathered operand where it lies, under MPI") {
  CHECK(play("products in parts under MPI", 94, 200, {parts_options()}, {.in_parts = true}) > 0);
}

TEST_CASE("the conformance cases of loops under MPI, with shorter sides") {
  const auto world = mpi_transport(MPI_COMM_WORLD);
  const int n = world->size();
  int wrong = 0, rows = 0;
  for (const LoopRow& full : loop_rows()) {
    const LoopRow row = with_short_sides(full);
    if (row.mesh.processes() != n) continue;
    ++rows;
    const auto mesh =
        make_mesh_core(world, row.mesh, axis_names(row.mesh.rank()), looping_options(row));
    if (const std::string text = played_row(mesh, row); !text.empty() && ++wrong <= 3)
      MESSAGE(text);
  }
  CHECK(wrong == 0);
  CHECK((rows > 0) == (n == 2 || n == 4 || n == 6 || n == 8));  // the sizes that rows have
}
