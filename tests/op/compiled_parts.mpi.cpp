// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Compiled functions over parts of a mesh under MPI: what MPI sees is what each process's Program
// says, and a process that has no part in a function makes no call.
#include <doctest/doctest.h>

#include "op/any_process.hpp"
#include "op/compiled_parts_case.hpp"
#include "op/signature.hpp"
#include "support/grid.hpp"
#include "support/world.hpp"

using namespace support;

namespace {
template <class Case> void under_mpi(const char* name, int seed_of, int rounds, const Case& test) {
  Signature signature;
  observer = &signature;
  const std::uint64_t seed =
      seed_for(name, static_cast<std::uint64_t>(seed_of), world()->process() == 0);
  for (int round = 0; round < rounds; ++round) {
    Random random(seed + static_cast<std::uint64_t>(round));
    const std::string text = test(world(), random, 5);
    CHECK_MESSAGE(text.empty(), text);
    if (!text.empty()) break;
  }
  observer = nullptr;
}
}  // namespace

TEST_CASE("a random function over parts of a mesh is the same compiled under MPI") {
  under_mpi("compiled functions over parts under MPI", 392, cases_of(6, 40), compiled_parts_case);
}

TEST_CASE("gradients and a step over two parts are the same compiled under MPI") {
  under_mpi("compiled gradients over parts under MPI", 393, cases_of(4, 30),
            compiled_parts_gradient_case);
}

TEST_CASE("what any process sends, calls and takes for parts of a mesh is known on every other") {
  const std::uint64_t seed =
      seed_for("any process's numbers under MPI", 394, world()->process() == 0);
  MeshOptions options;
  options.check = Check::normal;
  options.shared = Shared::off;
  for (int round = 0; round < cases_of(6, 40); ++round) {
    Random random(seed + static_cast<std::uint64_t>(round));
    const MeshShape shape = random.of(meshes_of(world()->size(), 1 + random.below(3)));
    const DynamicMesh whole(make_mesh_core(world(), shape, axis_names(shape.rank()), options));
    const DynamicMesh a = some_part(whole, random), b = some_part(whole, random);
    const auto on = [&](const DynamicMesh& mesh) {
      return some_sharding(random, 2, mesh.shape().rank());
    };
    const Sharding x_on = on(a), w_on = on(a), h_on = on(a), v_on = on(b), z_on = on(b),
                   y_on = on(whole);
    const auto given = [](const DynamicMesh& mesh, const Extents& extents, const Sharding& s) {
      return from_function<double>(mesh, extents, s, Numbered{0.1});
    };
    const DynamicTensor x = given(a, {5, 6}, x_on), w = given(a, {6, 7}, w_on),
                        v = given(b, {7, 4}, v_on);
    std::vector<std::shared_ptr<MeshCore>> cores{whole.core()};
    for (const DynamicMesh& mesh : {a, b})
      if (std::find(cores.begin(), cores.end(), mesh.core()) == cores.end())
        cores.push_back(mesh.core());
    const std::string text = as_any_process_plans(cores, [&] {
      const DynamicTensor h = einsum("ij,jk->ik", x, w, h_on);
      const DynamicTensor z = einsum("ij,jk->ik", reshard(h, z_on, b), v, z_on);
      const DynamicTensor y = reshard(z, y_on, whole);
      return std::vector<DynamicTensor>{h, einsum("ij,ij->", y, y, Sharding{})};
    });
    CHECK_MESSAGE(text.empty(), text);
  }
}

TEST_CASE("a process outside of a part makes no MPI call for it, and waits for nobody") {
  struct turn : Axis<> {};
  const int size = world()->size();
  using Line = Mesh<turn>;
  using One = ShardedTensor<double, Mesh<alone>, P<_>>;
  const auto mesh = make_mesh<Line>(world(), sizes<Line>(size), {.check = Check::light});
  const auto first = mesh.part<turn>(0), last = mesh.part<turn>(size - 1);
  const auto x = from_function<One>(first, {1000}, Numbered{1});
  auto step = compile([&](const One& a) {
    One b = a + a;
    for (int i = 0; i < 3; ++i) b = reshard<One>(b * b, last);
    return b;
  });
  for (int i = 0; i < 2; ++i) {
    pmpi::record(true);
    const One y = step(x);
    pmpi::record(false);
    const Program& program = step.program();
    const bool takes = mesh.process() == 0 || mesh.process() == size - 1;
    if (i == 1 && !takes) CHECK(pmpi::calls().empty());
    CHECK(program.own_payload_bytes() == (mesh.process() == 0 && size > 1 ? 8000 : 0));
    if (!takes) CHECK(program.peak_bytes() == 0);
    if (last.takes_part()) CHECK(to_host(y)(0) == 1679616);
  }
}
