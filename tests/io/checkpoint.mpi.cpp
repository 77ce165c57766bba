// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
// A sample of checkpoint.loopback.cpp between processes, from one mesh of them to another.
#include <doctest/doctest.h>

#include <unistd.h>

#include "io/checkpoint_cases.hpp"
#include "support/world.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("checkpoints go from one mesh of processes to another") {
  const auto& world = support::world();
  const std::uint64_t seed = seed_for("checkpoints under MPI", 93, world->process() == 0);
  const auto line = make_mesh_core(world, {world->size()}, axis_names(1));
  const Folder folder(
      "tessera_checkpoint_mpi" + std::to_string(line->gather_facts({::getpid()}, {}).front()), "");
  int wrong = 0;
  for (int i = 0; i < 6; ++i) {
    Random random(seed + 100 * static_cast<std::uint64_t>(i));
    const std::vector<TensorDesc> tensors = some_tensors(random);
    Index turn = 0;
    for (int axes = 1; axes <= 2; ++axes)
      for (const MeshShape& shape : meshes_of(world->size(), axes)) {
        const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()));
        const std::string text = checkpoint_case(
            mesh, random, tensors, folder.file("x.safetensors"), 1000 * (turn + 1), 1000 * turn);
        if (!text.empty() && ++wrong <= 3) MESSAGE(text);
        ++turn;
        mesh->barrier();
      }
  }
  line->barrier();
  CHECK(folder.files() == 1);
  line->barrier();
  CHECK(wrong == 0);
}
