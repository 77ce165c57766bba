// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// A sample of the cases of halo.loopback.cpp between the processes of an MPI job: by messages, with
// the calls that MPI sees, and through the node's shared memory.
#include <doctest/doctest.h>

#include <algorithm>

#include "op/halo_cases.hpp"
#include "support/pmpi.hpp"
#include "support/world.hpp"

using namespace tessera;
using namespace support;

namespace {

/// Compares what PMPI sees with the messages of the plan.
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
        if (is_data(text)) planned.push_back(text.substr(text.find(" over ")));
    for (const std::string& text : pmpi::calls())
      if (is_data(text)) seen.push_back(text.substr(text.find(" over ")));
    calls += static_cast<long>(planned.size());
    return planned == seen ? "" : "MPI sees other calls than planned";
  }
};

void run_cases(std::uint64_t otherwise, int count, Shared shared, Check check) {
  const auto& world = support::world();
  const std::uint64_t seed = seed_for("halos under MPI", otherwise, world->process() == 0);
  int wrong = 0;
  std::uint64_t number = 0;
  Signature signature;
  for (int axes = 1; axes <= 3; ++axes)
    for (const MeshShape& shape : meshes_of(world->size(), axes)) {
      Random random(seed + 1000 * ++number);
      MeshOptions options;
      options.machine = some_machine(random);
      if (number % 2 == 0) options.machine.message_ps *= 100;
      options.shared = shared;
      options.check = check;
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
      observer = shared == Shared::off && check == Check::normal ? &signature : nullptr;
      for (int i = 0; i < count; ++i)
        if (const std::string text = halo_case(mesh, random); !text.empty() && ++wrong <= 3)
          MESSAGE(text);
    }
  observer = nullptr;
  CHECK(wrong == 0);
  if (world->size() > 1 && shared == Shared::off && check == Check::normal)
    CHECK(signature.calls > 20);
}

}  // namespace

TEST_CASE("halos by messages, and the calls that MPI sees") {
  run_cases(91, 12, Shared::off, Check::normal);
}
TEST_CASE("halos by messages, compared") { run_cases(92, 4, Shared::off, Check::communicating); }
TEST_CASE("halos read where they lie") { run_cases(93, 12, Shared::on, Check::normal); }

TEST_CASE("a halo tensor is written in place between its exchanges") {
  use_element<double>();
  const auto& world = support::world();
  for (const Shared shared : {Shared::off, Shared::on})
    for (const MeshShape& shape : meshes_of(world->size(), 2)) {
      MeshOptions options;
      options.shared = shared;
      const auto mesh = make_mesh_core(world, shape, axis_names(2), options);
      const Extents extents{11, 10};
      const Sharding s{{0}, {1}};
      const Halo halo{{1, 2, Boundary::periodic}, {2, 1, Boundary::periodic}};
      const auto ramp = [](const GlobalIndex& i) { return static_cast<double>(i.linear() % 7); };
      const DynamicTensor x = from_function<double>(mesh, extents, s, ramp);
      DynamicTensor y = from_function<double>(mesh, extents, s, ramp);
      const DynamicHaloTensor u = halo_exchange(y, halo);
      DynamicTensor inside = u;  // the same memory
      for (int step = 0; step < 3; ++step) {
        (y += x) *= 2;
        (inside += x) *= 2;
        axpy(3, x, inside);
        axpy(3, x, y);
        u.exchange();
        const DynamicHaloTensor wanted = halo_exchange(y, halo);
        const auto n = static_cast<std::size_t>(u.box().size());
        const double* const mine = u.core().data<double>();
        const double* const theirs = wanted.core().data<double>();
        tessera::detail::fence();
        CHECK(std::equal(mine, mine + n, theirs));
      }
    }
}
