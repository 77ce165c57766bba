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

namespace {
struct stage : Axis<> {};
struct data : Axis<> {};
using Staged = Mesh<stage, data>;
using Part = Without<Staged, stage>;
using OfPart = ShardedTensor<double, Part, P<data, _>>;
struct Numbered {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return first + static_cast<double>(i.linear());
  }
};
/// Tensors of different extents, one after the other over the parts, of these numbers.
std::vector<OfPart> over_parts(const ProcessMesh<Staged>& mesh, double first) {
  std::vector<OfPart> all;
  for (int i = 0; i < 5; ++i)
    all.push_back(from_function<OfPart>(mesh.part<stage>(i * mesh.size<stage>() / 5), {7 + i, 3},
                                        Numbered{first + 1000.0 * i}));
  return all;
}
}  // namespace

TEST_CASE("a checkpoint of tensors on parts of a mesh is read on any other number of parts") {
  const auto& world = support::world();
  const int n = world->size();
  const auto line = make_mesh_core(world, {n}, axis_names(1));
  const Folder folder(
      "tessera_parts_mpi" + std::to_string(line->gather_facts({::getpid()}, {}).front()), "");
  const std::string path = folder.file("x.safetensors");
  const auto mesh_of = [&](int parts) { return make_mesh<Staged>(world, parts, n / parts); };
  for (int written = 1; written <= n; ++written)
    for (int read = 1; read <= n; ++read) {
      if (n % written != 0 || n % read != 0) continue;
      const double first = 100.0 * written + read;
      const auto from = mesh_of(written), to = mesh_of(read);
      write_checkpoint(from, path, over_parts(from, first));
      std::vector<OfPart> tensors = over_parts(to, -1);
      (void)read_checkpoint(to, path, tensors);
      const std::vector<OfPart> expected = over_parts(to, first);
      for (std::size_t i = 0; i < tensors.size(); ++i)
        if (!tensors[i].core().mesh()->absent()) CHECK(to_host(tensors[i]) == to_host(expected[i]));
      line->barrier();
    }
  line->barrier();
}
