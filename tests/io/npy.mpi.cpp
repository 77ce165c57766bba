// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
// A sample of npy.loopback.cpp between processes, and a file that one of them alone does not see.
#include <doctest/doctest.h>

#include <unistd.h>

#include "io/npy_cases.hpp"
#include "support/world.hpp"

using namespace tessera;
using namespace support;

namespace {
namespace grid {
struct data : Axis<> {};
}  // namespace grid
using Line = Mesh<grid::data>;

/// A folder that all processes name alike: after process 0.
std::string shared_name(MeshCore& mesh) {
  return "tessera_npy_mpi" + std::to_string(mesh.gather_facts({::getpid()}, {}).front()) + "_";
}
}  // namespace

TEST_CASE("tensors go through files between processes") {
  const auto& world = support::world();
  const std::uint64_t seed = seed_for("npy files under MPI", 72, world->process() == 0);
  int wrong = 0;
  std::uint64_t number = 0;
  for (int axes = 1; axes <= 2; ++axes)
    for (const MeshShape& shape : meshes_of(world->size(), axes)) {
      Random random(seed + 1000 * ++number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()));
      const std::string name = shared_name(*mesh);
      const Folder folder(name, "");
      for (int i = 0; i < 12; ++i)
        if (const std::string text = npy_case(mesh, random, folder, random.of(npy_types));
            !text.empty() && ++wrong <= 3)
          MESSAGE(text);
      mesh->barrier();
    }
  CHECK(wrong == 0);
}

TEST_CASE("a file that one process alone cannot open is an error on all") {
  const auto& world = support::world();
  const auto mesh = make_mesh<Line>(world, world->size());
  const Folder folder(shared_name(*mesh.core()), "");
  const std::string path = folder.file("x.npy");
  mesh.core()->barrier();
  if (mesh.process() == 0)
    write_bytes(path, npy_file(DType::f32, {8, 3}, false, false, [](Index, Index) { return 0; }));
  mesh.core()->barrier();
  const bool last = mesh.process() == mesh.processes() - 1;
  using X = ShardedTensor<float, Line, P<grid::data, _>>;
  CHECK_THROWS_AS(read_npy<X>(mesh, last ? path + ".not" : path), FileError);
  CHECK(read_npy<X>(mesh, path).extents() == Extents{8, 3});
  mesh.core()->barrier();
}
