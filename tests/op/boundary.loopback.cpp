// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// Tensors from one process and to one, from blocks, and from boxes that the application has cut;
// and what wrong calls are answered, on every process alike.
#include <doctest/doctest.h>

#include <mutex>

#include "op/boundary_cases.hpp"

#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

/// Runs f(mesh) on 2 x 2 processes and returns the texts of what it throws, by process.
template <class F> std::vector<std::string> failures(F f) {
  std::vector<std::string> texts(4);
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    texts[static_cast<std::size_t>(mesh.process())] = complaint_of([&] { f(mesh); });
  });
  return texts;
}
bool all_say(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) continue;
    MESSAGE(text);
    return false;
  }
  return true;
}
}  // namespace

TEST_CASE("the boundary equals plain loops, and costs what its plan says, for some of everything") {
  const std::uint64_t seed = seed_for("the boundary", 60);
  std::mutex mutex;
  std::vector<std::string> wrong;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 2)) {
    ++number;
    MeshOptions options;
    Random machine(seed + number);
    options.machine = some_machine(machine);
    if (number % 2 == 0) options.workspace_limit = 0;  // least slabs
    options.check = number % 3 == 0 ? Check::communicating : Check::normal;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + 1000 * number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
      for (int i = 0; i < 60; ++i) {
        const std::string text = boundary_case(mesh, random);
        const std::lock_guard lock(mutex);
        if (!text.empty()) wrong.push_back(text);
      }
    });
    if (wrong.size() > 5) break;
  }
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
}

TEST_CASE("typed tensors from a root, in many rounds, and from blocks") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    MeshOptions options;
    options.workspace_limit = 0;
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options, Where{});
    std::vector<float> values(71 * 93);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto nothing = std::span<const float>();
    const auto x =
        from_root<Tensor<data, model>>(mesh, {71, 93}, 3, mesh.process() == 3 ? values : nothing);
    const HostTensor<float> all = to_root(x, 1);
    CHECK(all.values == (mesh.process() == 1 ? values : std::vector<float>{}));
    CHECK(to_host(x).values == values);
    const HostBlock<float> mine = to_block(x);
    CHECK(mine.box == x.box());
    CHECK(to_host(from_blocks<Tensor<data, model>>(mesh, {71, 93}, mine.values)).values == values);
    CHECK(to_root(from_root<Tensor<>>(mesh, {}, 0, std::vector<float>{7})).values.size() ==
          (mesh.process() == 0 ? 1 : 0));
  });
}

TEST_CASE("irregular boxes that are the blocks are adopted; the memory is the tensor's") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const Box own =
        block({10, 6}, named_sharding<Grid, P<data, model>>(), mesh.shape(), mesh.coordinates());
    const Kokkos::View<float**, Kokkos::LayoutRight> view("box", 5, 3);
    const auto x = from_irregular<Tensor<data, model>>(mesh, {10, 6}, own, view);
    CHECK(x.data() == view.data());
    CHECK(mesh.ledger().total().calls == 0);
    const auto rows = from_irregular<Tensor<data, _>>(
        mesh, {10, 6}, std::vector<std::vector<Index>>{{0, 5, 10}, {}},
        Kokkos::View<float*>("rows", 30));
    CHECK(mesh.ledger().total().calls == 0);
    CHECK(rows.local_size() == 30);
  });
}

TEST_CASE("on a dry mesh the boundary only plans") {
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(2, 2), 1);
  const auto x = from_root<Tensor<data, model>>(mesh, {8, 8}, 1, {});
  CHECK(mesh.ledger().payload_bytes() == 3 * 16 * 4);
  CHECK(to_root(x, 0).values.empty());
  CHECK(mesh.ledger().payload_bytes() == 4 * 16 * 4);
  const Kokkos::View<float*> none("none", 0);
  const auto y = from_irregular<Tensor<data, _>>(
      mesh, {8, 8},
      detail::cut_boxes({8, 8}, Sharding{{0, 1}, {}}, {{0, 1, 2, 3, 8}, {}}, mesh.shape()), none);
  CHECK(y.core().dry());
  CHECK_THROWS_AS(to_irregular(y, Box{}, none), UsageError);
}

TEST_CASE("what one process declares wrongly is the same error on every process") {
  CHECK(all_say(failures([](const auto& mesh) {
                  from_root<Tensor<data, _>>(mesh, {7, 3}, 2, std::vector<float>(20));
                }),
                "a tensor of 7x3 has 21 elements and the root gives 20; give all elements on the "
                "root, row-major (process 2)"));
  CHECK(all_say(failures([](const auto& mesh) {
                  from_root<Tensor<data, _>>(mesh, {7, 3}, 4, std::vector<float>(21));
                }),
                "process 4 is named as root, but the mesh has 4 processes"));
  const auto boxes = [](const auto& mesh, Index missing, Index given) {
    Box own = whole({8, 3});
    own[0] = {2 * mesh.process(), 2 * mesh.process() + (mesh.process() == 2 ? missing : 2)};
    from_irregular<Tensor<data, _>>(
        mesh, {8, 3}, own,
        Kokkos::View<float*>("box", static_cast<std::size_t>(own.size() + given)));
  };
  CHECK(all_say(failures([&](const auto& mesh) { boxes(mesh, 3, 0); }),
                "process 2 declares [4,7) x [0,3) and process 3 declares [6,8) x [0,3), which "
                "share [6,7) x [0,3)"));
  CHECK(all_say(failures([&](const auto& mesh) { boxes(mesh, 1, 0); }),
                "no process declares [5,6) x [0,3) of the tensor 8x3"));
  CHECK(all_say(failures([&](const auto& mesh) { boxes(mesh, 2, mesh.process() == 1 ? 1 : 0); }),
                "process 1 declares [2,4) x [0,3), 6 elements, and gives memory of 7"));
  CHECK(all_say(failures([](const auto& mesh) {
                  const Index cut = mesh.process() == 3 ? 2 : 1;
                  from_irregular<Tensor<data, _>>(mesh, {8, 3},
                                                  std::vector<std::vector<Index>>{{0, cut, 8}, {}},
                                                  Kokkos::View<float*>("box", 3));
                }),
                "processes 0 and 3 declare different boxes"));
  CHECK(all_say(failures([](const auto& mesh) {
                  const auto x = zeros<Tensor<data, _>>(mesh, 8, 3);
                  Box own = whole({8, 3});
                  own[1].hi = 3 + mesh.process();
                  to_irregular(x, own,
                               Kokkos::View<float*>("box", static_cast<std::size_t>(own.size())));
                }),
                "process 1 declares [0,8) x [0,4) of a tensor 8x3"));
}

TEST_CASE("blocks of the wrong size are refused where they are given") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    CHECK_THROWS_AS((from_blocks<Tensor<data, _>>(mesh, {7, 3}, std::vector<float>(13))),
                    ShapeError);
  });
}
