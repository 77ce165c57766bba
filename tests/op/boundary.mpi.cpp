// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// A sample of the cases of boundary.loopback.cpp between the processes of an MPI job, with the
// calls that MPI sees.
#include <doctest/doctest.h>

#include <climits>

#include "op/boundary_cases.hpp"
#include "support/pmpi.hpp"
#include "support/world.hpp"

using namespace tessera;
using namespace support;

namespace {

/// Compares what PMPI sees with the exchanges of the plan. Facts that processes tell each other are
/// no part of it.
struct Signature final : Observer {
  long calls = 0;
  void begin() override { pmpi::record(true); }
  std::string end(const MeshCore& mesh, const std::vector<Call>& made) override {
    pmpi::record(false);
    std::vector<std::string> planned, seen;
    const auto is_data = [](const std::string& text) {
      return text.starts_with("send") || text.starts_with("receive");
    };
    for (const Call& call : made)
      for (const std::string& text : pmpi::texts_of(call, mesh.shape(), mesh.coordinates()))
        if (is_data(text)) planned.push_back(text);
    for (const std::string& text : pmpi::calls())
      if (is_data(text)) seen.push_back(text);
    calls += static_cast<long>(planned.size());
    return planned == seen ? "" : "MPI sees other calls than planned";
  }
};

void run_cases(std::uint64_t otherwise, int count, Index large_count, Check check) {
  const auto& world = support::world();
  const std::uint64_t seed = seed_for("the boundary under MPI", otherwise, world->process() == 0);
  TransportSettings settings = world->settings();
  settings.large_count = large_count;
  const auto transport = world->duplicate(settings);
  Signature signature;
  // An MPI without large counts makes its large calls in pieces, point to point: there the values
  // alone are compared.
  const bool in_pieces = MPI_VERSION < 4 && large_count < INT_MAX;
  observer = in_pieces ? nullptr : &signature;
  int wrong = 0;
  std::uint64_t number = 0;
  for (int axes = 1; axes <= 2; ++axes)
    for (const MeshShape& shape : meshes_of(world->size(), axes)) {
      Random random(seed + 1000 * ++number);
      MeshOptions options;
      options.machine = some_machine(random);
      options.workspace_limit = number % 2 == 0 ? 0 : max_int64;
      options.arena_bytes = 0;
      options.shared = Shared::off;  // MPI sees nothing of shared memory
      options.check = check;
      const auto mesh = make_mesh_core(transport, shape, axis_names(shape.rank()), options);
      for (int i = 0; i < count; ++i)
        if (const std::string text = boundary_case(mesh, random); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
    }
  observer = nullptr;
  CHECK(wrong == 0);
  if (world->size() > 1 && !in_pieces) CHECK(signature.calls > 20);
}

}  // namespace

TEST_CASE("the boundary under MPI: values, plan, ledger, arena, and the calls that MPI sees") {
  run_cases(61, 40, INT_MAX, Check::normal);
}
TEST_CASE("the boundary under MPI, compared, with large counts") {
  run_cases(62, 15, 3, Check::communicating);
}
