// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// Compiled functions of tensors that share memory: with the application, with one another, under
// several shapes.
#include <doctest/doctest.h>

#include <mutex>
#include <tuple>
#include <utility>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
using Block = Kokkos::View<double**, Kokkos::LayoutRight>;

struct Counted {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return first + static_cast<double>(i[0] * 100 + i[1]);
  }
};
template <class F> void on_meshes(F f, const MeshOptions& options = {}) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      f(make_mesh<Grid>(world, size, options));
    });
}
std::mutex mutex;

/// Memory of the application's that holds a process's block of x.
Block block_of(const Real<data, model>& x) {
  const Extents n = x.box().extents();
  Block block("block", static_cast<std::size_t>(n[0]), static_cast<std::size_t>(n[1]));
  Kokkos::deep_copy(block, local_view(x));
  return block;
}
bool equal(const Block& a, const Block& b) {
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j)
      if (a(i, j) != b(i, j)) return false;
  return true;
}
}  // namespace

TEST_CASE("memory of the application's is not taken over, though the list is one that took some") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    auto twice = compile([](const auto& x) { return tanh(x + x); });
    auto x = from_function<Real<data, model>>(mesh, {60, 40}, Counted{1});
    const Block block = block_of(x), before = block_of(x);
    const auto expected = to_host(tanh(x + x));
    const auto given = to_host(twice(std::move(x)));
    auto ours = adopt<Real<data, model>>(mesh, {60, 40}, block);
    const auto got = to_host(twice(std::move(ours)));
    const std::lock_guard lock(mutex);
    CHECK(given == expected);
    CHECK(got == expected);
    CHECK(equal(block, before));
    CHECK(twice.structures() == 2);
    CHECK(twice.explain_structures().find("application") != std::string::npos);
  });
}

TEST_CASE("a tensor is not read late, early or once where another of its memory is written") {
  MeshOptions options;
  options.machine.hidden_percent = 100;
  const auto on = [](const ProcessMesh<Grid>& mesh) {
    const auto more = from_function<Real<data, model>>(mesh, {12, 8}, Counted{3});
    const auto other = from_function<Real<data, model>>(mesh, {12, 8}, Counted{7});
    const auto square = from_function<Real<_, _>>(mesh, {12, 12}, Counted{7});
    const Block block = block_of(more);
    const auto again = [&](auto& f) {
      Kokkos::deep_copy(block, 1.5);
      auto a = adopt<Real<data, model>>(mesh, {12, 8}, block);
      auto b = adopt<Real<data, model>>(mesh, {12, 8}, block);
      const auto results = f(a, b);
      return std::apply([](const auto&... r) { return std::tuple(to_host(r)...); }, results);
    };
    const auto agree = [&](auto f) {
      const auto expected = again(f);
      auto compiled = compile(f);
      bool same = expected == again(compiled);
      same = same && expected == again(compiled);  // the list is known
      const std::lock_guard lock(mutex);
      CHECK_MESSAGE(same, explain(compiled));
    };
    agree([&](const auto& a, auto& b) {  // share
      const auto p = reshard<P<_, _>>(a);
      b += more;
      const auto q = reshard<P<_, _>>(a);
      return std::tuple(2.0 * p, 3.0 * q);
    });
    agree([&](const auto& a, auto& b) {  // a copy is read
      const auto p = reshard<P<_, _>>(a);
      b += more;
      return std::tuple(2.0 * p, reshard<P<model, data>>(a), reshard<P<_, data>>(a));
    });
    agree([&](const auto& a, auto& b) {  // join
      const auto p = reshard<P<_, _>>(a), q = reshard<P<_, _>>(other);
      b += more;
      return std::tuple(2.0 * p, 3.0 * q, reshard<P<_, _>>(b));
    });
    agree([&](const auto& a, auto& b) {  // overlap
      b += more;
      const auto y = einsum<"ij,jk->ik">(square, square);
      const auto p = reshard<P<_, _>>(a);
      const auto z = einsum<"ij,jk->ik">(y, y);
      b += more;
      return std::tuple(2.0 * p, 1.0 * z);
    });
  };
  on_meshes(on, options);
}

TEST_CASE("one memory under two shapes is moved under each") {
  on_meshes([](const ProcessMesh<Grid>& mesh) {
    const DynamicTensor x = from_function<Real<data, _>>(mesh, {12, 6}, Counted{1});
    const Sharding rows{{0}, {}}, whole{{}, {}};
    const auto f = [&](Index at, bool first) {
      const DynamicTensor r = reshape(x, {24, 3}, rows);
      const auto part = [&](const DynamicTensor& t) {
        return dynamic_slice("ij", "ij", t, {at, 1}, {3, 2}, whole);
      };
      std::vector<DynamicTensor> results;
      if (first) results.push_back(reshard(x, whole));
      for (const DynamicTensor& t : {part(x), part(r), part(x)}) results.push_back(t);
      results.push_back(
          reduce<Sum>("ij->", reverse(r, FixedVector<int, max_dims>{0}, whole), Sharding{}));
      return results;
    };
    for (const bool first : {false, true}) {
      auto compiled = compile(f);
      for (const Index at : {4, 7}) {
        const auto expected = f(at, first), got = compiled(at, first);
        bool same = got.size() == expected.size();
        for (std::size_t i = 0; same && i < got.size(); ++i)
          same = to_host<double>(got[i]) == to_host<double>(expected[i]);
        const std::lock_guard lock(mutex);
        CHECK_MESSAGE(same, explain(compiled));
      }
    }
  });
}

TEST_CASE("one memory under two shapes counts once, whichever process lists it") {
  std::vector<ProgramSpread> spreads;
  for (int process = 0; process < 4; ++process) {
    const auto mesh = dry_mesh<Grid>(sizes<Grid>(4, 1), process);
    const DynamicTensor x = from_function<Real<data, _>>(mesh, {12, 6}, Counted{1});
    const Sharding rows{{0}, {}};
    auto compiled = compile([&] {
      const DynamicTensor r = reshape(x, {24, 3}, rows);
      return map_dynamic<double>("ij,ij->ij", fn::Add{}, rows, r, r);
    });
    (void)compiled();
    REQUIRE(compiled.listed().tensors().size() == 3);  // x, x as r, and the sum
    spreads.push_back(over_processes(compiled.listed()));
    CHECK(spreads.back().peak == spreads[0].peak);
    CHECK(spreads.back().peak.even());
  }
}
