// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// What there is not enough of, and what lives at the same time.
#include <doctest/doctest.h>

#include <atomic>
#include <string>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace {

struct rows : Axis<> {};
struct columns : Axis<> {};
using Grid = Mesh<rows, columns>;
using Real = ShardedTensor<double, Grid, P<rows, columns>>;

struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return static_cast<double>(i[0] * 10 + i[1]);
  }
};

}  // namespace

TEST_CASE(
    "an operator that would pass the mesh's limit says so before it begins, on all processes") {
  std::atomic<int> good{0};
  std::string sample;
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    MeshOptions options;
    options.memory_limit = 40 * 40 * 8;  // two blocks of 20 x 20, and two more
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
    const auto x = from_function<Real>(mesh, {40, 40}, Ramp{});
    mesh.arena().reset_peak();
    const Index held = mesh.arena().in_use();
    mesh.ledger().reset();
    std::string text = "nothing was thrown";
    try {
      replicate(x);
    } catch (const MemoryError& error) {
      text = error.what();
    }
    const bool said =
        text.find("reshard: ") != std::string::npos &&
        text.find(" would be needed, ") != std::string::npos &&
        text.find("its limit is 12800") != std::string::npos &&
        text.find("MeshOptions::workspace_limit") != std::string::npos &&
        text.find("(at limits.loopback.cpp:") != std::string::npos &&
        text.find("on process " + std::to_string(mesh.process())) != std::string::npos;
    if (said && mesh.arena().peak() == held && mesh.ledger().count(all_gather) == 0) ++good;
    if (mesh.process() == 0) sample = text;
    const double total = value(sum(x));  // the mesh goes on
    if (total == 40 * (780.0 * 10 + 780.0)) ++good;
  });
  CHECK_MESSAGE(good == 8, sample);
}

TEST_CASE("two meshes over the same processes, used by turns, do not meet") {
  std::atomic<int> good{0};
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto wide = make_mesh<Grid>(world, sizes<Grid>(2, 3));
    const auto tall = make_mesh<Grid>(world, sizes<Grid>(3, 2));
    auto x = from_function<Real>(wide, {7, 11}, Ramp{});
    auto y = from_function<Real>(tall, {7, 11}, Ramp{});
    for (int turn = 0; turn < 3; ++turn) {
      x = x + x;
      const auto a = to_host(x);
      y = y + y;
      if (to_host(y).values == a.values) ++good;
    }
    try {
      maximum(x, y);
    } catch (const MeshError&) {
      ++good;
    }
  });
  CHECK(good == 6 * 4);
}

TEST_CASE("a tensor keeps what it needs of its mesh") {
  std::atomic<int> good{0};
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    Real x;
    {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2));
      x = from_function<Real>(mesh, {5, 5}, Ramp{});
    }
    if (value(sum(x)) == 5 * 100 + 5 * 10) ++good;
    const Real copy = x;
    x.core().mesh()->close();
    try {
      sum(copy);
    } catch (const UsageError&) {
      ++good;
    }
  });
  CHECK(good == 8);
}
