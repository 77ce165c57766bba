// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: halo
// Halo exchanges against their definition: some of everything on all meshes, and every small case
// in one dimension.
#include <doctest/doctest.h>

#include <mutex>

#include "op/halo_cases.hpp"

#include "support/grid.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("halos equal their definition, and cost what their plans say, for some of everything") {
  const std::uint64_t seed = seed_for("halos", 90);
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 3)) {
    ++number;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(seed + number);
      for (int round = 0; round < 3; ++round) {
        MeshOptions options;
        options.machine = some_machine(random);
        if (round % 2 == 0)
          options.machine.message_ps *= 100;          // so that dimensions are taken in turn
        if (round == 2) options.shared = Shared::on;  // halos in place are read where they lie
        const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), options);
        for (int i = 0; i < 6; ++i) {
          const std::string text = halo_case(mesh, random);
          const std::lock_guard lock(mutex);
          if (mesh->process() == 0) ++cases;
          if (!text.empty()) wrong.push_back(text);
        }
      }
    });
  }
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
  CHECK(cases > 1000);
}

TEST_CASE(
    "every halo in one dimension: extents to 7, widths to 3 and beyond all blocks, 1 to 5 "
    "processes") {
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  for (int parts = 1; parts <= 5; ++parts)
    run_loopback(parts, [&](std::shared_ptr<Transport> world) {
      Random random(1);
      MeshOptions options;
      options.check = Check::normal;
      const auto mesh = make_mesh_core(world, MeshShape{parts}, axis_names(1), options);
      for (Index n = 0; n <= 7; ++n)
        for (const Index low : {Index{0}, Index{1}, Index{2}, Index{3}, n + 2})
          for (const Index high : {Index{0}, Index{1}, Index{3}, 2 * n + 1})
            for (int b = 0; b < 5; ++b) {
              const HaloDim halo{low, high, static_cast<Boundary>(b)};
              if (!detail::check_halo({n}, {halo}).ok()) continue;
              const std::string text = HaloCases(mesh, random).one(n, halo);
              const std::lock_guard lock(mutex);
              if (mesh->process() == 0) ++cases;
              if (!text.empty()) wrong.push_back(text);
            }
    });
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
  CHECK(cases > 2000);
}

namespace {
template <class... D> using Field = ShardedTensor<double, Grid, P<D...>>;

struct Linear {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(i.linear());
  }
};

/// One step of a five-point stencil, on a box.
struct FivePoints {
  GlobalView<LocalView<double, 2>> in, out;
  void on(const Box& box) const {
    for (Index i = box[0].lo; i < box[0].hi; ++i)
      for (Index j = box[1].lo; j < box[1].hi; ++j)
        out(i, j) =
            in(i, j) + 2 * in(i - 1, j) + 3 * in(i + 1, j) + 5 * in(i, j - 1) + 7 * in(i, j + 1);
  }
};
}  // namespace

TEST_CASE("a stencil step computed while its halo travels is the step") {
  for (const Shared shared : {Shared::off, Shared::on})
    for (const MeshSizes<Grid> size :
         {sizes<Grid>(1, 1), sizes<Grid>(2, 3), sizes<Grid>(3, 2), sizes<Grid>(4, 2)})
      run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
        MeshOptions options;
        options.shared = shared;
        const auto mesh = make_mesh<Grid>(world, size, options);
        const Index rows = 11, columns = 7;
        auto u =
            make_halo<Field<data, model>, 0, 1>(mesh, {rows, columns}, 1, 1, Boundary::periodic);
        auto v = u.like();
        u.assign(from_function<Field<data, model>>(mesh, {rows, columns}, Linear{}));
        std::vector<double> x(static_cast<std::size_t>(rows * columns)), y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
        const auto at = [&](Index i, Index j) {
          return static_cast<std::size_t>((i + rows) % rows * columns + (j + columns) % columns);
        };
        for (int step = 0; step < 4; ++step) {
          auto pending = u.exchange_async();
          const FivePoints points{u.global(), v.global()};
          points.on(u.inner_box());
          pending.wait();
          for (const Box& box : u.border()) points.on(box);
          std::swap(u, v);
          for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < columns; ++j)
              y[at(i, j)] = x[at(i, j)] + 2 * x[at(i - 1, j)] + 3 * x[at(i + 1, j)] +
                            5 * x[at(i, j - 1)] + 7 * x[at(i, j + 1)];
          std::swap(x, y);
        }
        CHECK(to_host(u.tensor()).values == x);
      });
}

TEST_CASE("typed halos are dynamic ones; what cannot be is said with its numbers") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Field<data, model>>(mesh, {6, 5}, Linear{});
    const auto u =
        halo_exchange<0, 1>(x, {1, 0}, {2, 1}, {Boundary::none, Boundary::constant}, 0.5);
    const Halo halo{{1, 2, Boundary::none}, {0, 1, Boundary::constant}};
    CHECK(u.halo() == halo);
    const auto v = halo_exchange<double>(DynamicTensor(x), halo, 0.5);
    CHECK(u.box() == v.box());
    const auto a = u.view(), b = v.view<double, 2>();
    bool same = true;
    for (std::size_t i = 0; i < a.extent(0); ++i)
      for (std::size_t j = 0; j < a.extent(1); ++j) same = same && a(i, j) == b(i, j);
    CHECK(same);
    CHECK(static_cast<Index>(u.interior().size()) == u.own_box().size());
    const auto [p, q] =
        halo_exchange_together<1>(1, 1, Boundary::periodic, x, reshard<P<_, data>>(x));
    const auto alone = halo_exchange<Only<exchanges<model>>, 1>(x, 1, 1, Boundary::periodic);
    CHECK(p.global()(p.own_box()[0].lo, -1 + p.own_box()[1].lo) ==
          alone.global()(p.own_box()[0].lo, -1 + p.own_box()[1].lo));
    CHECK(q.box()[1].size() == q.own_box()[1].size() + 2);
    CHECK(to_host(halo_adjoint(halo_exchange<0>(x, 6, 0, Boundary::periodic))).values[29] > 0);
    using doctest::Contains;
    CHECK_THROWS_WITH_AS(
        (halo_exchange<0>(x, -1, 1, Boundary::none)),
        Contains("the halo of dimension 0 is -1 low and 1 high; widths are 0 or more"), ShapeError);
    CHECK_THROWS_WITH_AS(
        (halo_exchange<1>(x, 0, 5, Boundary::reflected)),
        Contains("the halo of dimension 1 is 5 wide, and the mirror image of 5 elements has 4"),
        ShapeError);
    CHECK_THROWS_WITH_AS((halo_exchange<0, 1>(x, {1}, 1, Boundary::none)),
                         Contains("names 2 dimensions and is given 1 widths"), UsageError);
    CHECK_THROWS_WITH_AS(halo_exchange(DynamicTensor(x), Halo{{1, 1, Boundary::none}}),
                         Contains("widths for 1 dimensions and the tensor has 2"), ShapeError);
    CHECK_THROWS_WITH_AS((u.DynamicHaloTensor::view<float, 2>()),
                         Contains("viewed as one of float"), UsageError);
    CHECK_THROWS_WITH_AS(HaloTensor<Field<data>>().box(), Contains("an empty halo tensor"),
                         UsageError);
    auto pending = u.exchange_async();
    CHECK_THROWS_WITH_AS(u.exchange(), Contains("has not been waited for"), UsageError);
    pending.wait();
    CHECK_THROWS_WITH_AS(pending.wait(), Contains("waited for twice"), UsageError);
  });
}

TEST_CASE(
    "an exchange that finds no memory to start with is none under way, and can be made later") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    MeshOptions options;
    options.memory_limit = Index{1} << 20;
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 1), options);
    auto u = make_halo<Field<_, data>, 1>(mesh, {4096, 6}, 1, 1, Boundary::periodic);
    u.assign(from_function<Field<_, data>>(mesh, {4096, 6}, Linear{}));
    std::vector<Field<_, _>> held;
    CHECK_THROWS_AS(
        [&] {
          for (;;) held.push_back(zeros<Field<_, _>>(mesh, 8, 8));
        }(),
        MemoryError);
    CHECK_THROWS_AS(u.exchange(), MemoryError);
    CHECK_THROWS_AS((void)u.exchange_async(), MemoryError);
    held.clear();
    u.exchange();
    const Index last = mesh.process() == 0 ? 3 : 0;  // the column behind this process's
    CHECK(u.global()(7, u.box()[1].hi - 1) == static_cast<double>(7 * 6 + last));
  });
}
