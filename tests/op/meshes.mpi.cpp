// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: layers
// Meshes from communicators of the application, over some of the processes, within one another and
// in any order, between the processes of an MPI job.
#include <doctest/doctest.h>

#include <mpi.h>

#include "op/between_case.hpp"
#include "support/grid.hpp"
#include "support/world.hpp"

using namespace tessera;

namespace {
struct line : Axis<> {};
using Row = Mesh<line>;
using InRow = ShardedTensor<double, Row, P<line>>;
using Tile = ShardedTensor<double, Grid, P<data, model>>;

struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return static_cast<double>(i[0]) + 1;
  }
};
double sum_to(const ProcessMesh<Row>& mesh, Index n) {
  return value(sum(from_function<InRow>(mesh, {n}, Ramp{})));
}
}  // namespace

TEST_CASE("tensors go between meshes over the same processes, in any order") {
  const std::uint64_t seed =
      support::seed_for("between meshes under MPI", 80, support::world()->process() == 0);
  for (int round = 0; round < 3; ++round) {
    support::Random random(seed + static_cast<std::uint64_t>(round));
    const std::string text = support::between_case(support::world(), random, 20);
    CHECK_MESSAGE(text.empty(), text);
  }
}

TEST_CASE("a mesh from a communicator of the application, which may be freed") {
  const int rank = support::world()->process();
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);  // in reverse order
  int size = 0;
  int own = 0;
  MPI_Comm_size(half, &size);
  MPI_Comm_rank(half, &own);
  const auto mesh = make_mesh<Row>(half, size);
  MPI_Comm_free(&half);
  CHECK(mesh.process() == own);
  CHECK(mesh.core()->processes()[static_cast<std::size_t>(own)] == rank);
  for (int i = 0; i <= rank % 2; ++i)
    CHECK(sum_to(mesh, 10) == 55);  // the halves do not do the same
  CHECK(sum_to(make_mesh<Row>(support::world(), support::world()->size()), 10) == 55);
}

TEST_CASE("processes that are in no part have no mesh") {
  MPI_Comm some = MPI_COMM_NULL;
  const bool in = support::world()->process() == 0;
  MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, 0, &some);
  if (in) {
    CHECK(sum_to(make_mesh<Row>(some, 1), 4) == 10);
    MPI_Comm_free(&some);
  } else {
    std::string text;
    try {
      (void)make_mesh<Row>(some, 1);
    } catch (const MeshError& error) {
      text = error.what();
    }
    CHECK(text.find("MPI_COMM_NULL") != std::string::npos);
  }
  CHECK(sum_to(make_mesh<Row>(MPI_COMM_WORLD, support::world()->size()), 4) == 10);
}

TEST_CASE("some processes work on their own, and slices of a mesh too") {
  const std::shared_ptr<Transport>& world = support::world();
  const int p = world->size();
  if (world->process() < (p + 1) / 2) {
    const auto mesh = make_mesh<Row>(world->first((p + 1) / 2), (p + 1) / 2);
    for (int i = 0; i < 3; ++i) CHECK(sum_to(mesh, 20) == 210);
  }
  const int rows = p % 2 == 0 ? 2 : 1;
  MeshOptions options;
  options.device_assignment = as_snake(MeshShape{rows, p / rows});
  const auto mesh = make_mesh<Grid>(world, sizes<Grid>(rows, p / rows), options);
  const auto row = submesh<Mesh<model>>(mesh);
  CHECK(row.process() == mesh.coordinate<model>());
  using Part = ShardedTensor<double, Mesh<model>, P<model>>;
  for (int i = 0; i <= mesh.coordinate<data>(); ++i)
    CHECK(value(sum(from_function<Part>(row, {9}, Ramp{}))) == 45);
  const auto x = from_function<Tile>(mesh, {5, 6}, Ramp{});
  CHECK(to_host(reshard<InRow>(sum<"ij->i", P<data>>(x), make_mesh<Row>(world, p))) ==
        to_host(sum<"ij->i">(x)));
}

TEST_CASE("meshes come and go by the dozen") {
  const std::shared_ptr<Transport>& world = support::world();
  for (int i = 0; i < 60; ++i) {
    MeshOptions options;
    options.arena_bytes = 0;
    options.device_assignment = as_snake(MeshShape{world->size()});
    const auto a = make_mesh<Row>(MPI_COMM_WORLD, sizes<Row>(world->size()), options);
    const auto b = submesh<Row>(a);
    if (i % 20 == 0) CHECK(sum_to(b, 5) == 15);
  }
}
