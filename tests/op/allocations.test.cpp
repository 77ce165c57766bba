// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A repeated operator allocates nothing on the heap: what it needs comes out of the mesh's arena.
// The program's operator new counts, by thread.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
thread_local std::int64_t allocations = 0;

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
}  // namespace

// Not inlined: g++ 12 else takes what is freed for memory of another operator new's (a false
// -Wmismatched-new-delete under ThreadSanitizer).
[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return counted(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {
using namespace tessera;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

/// Runs body several times and returns how often the last run allocated.
template <class Body> std::int64_t allocations_of(const Body& body) {
  for (int i = 0; i < 3; ++i) body();
  const std::int64_t before = allocations;
  body();
  return allocations - before;
}

struct Later {
  KOKKOS_FUNCTION float operator()(const GlobalIndex& i, float x) const {
    return x + static_cast<float>(i[0]);
  }
};
}  // namespace

TEST_CASE("a repeated operator allocates nothing") {
  std::unique_ptr<int> kept;  // else clang leaves the allocation out
  CHECK(allocations_of([&] { kept = std::make_unique<int>(); }) == 1);  // it counts
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      MeshOptions options;
      options.check =
          Check::normal;  // comparing all operators, as this test's environment asks, does allocate
      const auto mesh = make_mesh<Grid>(world, size, options);
      INFO(mesh.processes());
      const auto a = random_normal<Tensor<data, model>>(mesh, {6, 8}, 1);
      const auto b = random_normal<Tensor<data, model>>(mesh, {6, 8}, 2);
      const auto bias = random_normal<Tensor<_>>(mesh, {8}, 3);
      const auto w = random_normal<Tensor<model, data>>(mesh, {8, 10}, 4);
      const auto v = random_normal<Tensor<_, model>>(mesh, {10, 4}, 5);
      auto u = zeros<Tensor<data>>(mesh, 6);
      auto y = zeros<Tensor<data, model>>(mesh, 6, 8);
      CHECK(allocations_of([&] { a* b + a; }) == 0);
      CHECK(allocations_of([&] { where(a > 0.5f, sin(a), pow(b, 2)); }) == 0);
      CHECK(allocations_of([&] { cast<double>(a); }) == 0);
      CHECK(allocations_of([&] { map_with_index(Later{}, a); }) == 0);
      CHECK(allocations_of([&] { map_into(y, fn::Add{}, a, b); }) == 0);
      CHECK(allocations_of([&] { map_into(y, fn::GeluGradient{}, a); }) == 0);
      CHECK(allocations_of([&] { reduce_into<Sum, "ij->i">(u, a); }) == 0);
      CHECK(allocations_of([&] { y += a; }) == 0);
      CHECK(allocations_of([&] { y -= b, y *= 0.5f, y /= y; }) == 0);
      CHECK(allocations_of([&] { axpy(0.5f, a, y); }) == 0);
      CHECK(allocations_of([&] { dot(a, b); }) == 0);
      CHECK(allocations_of([&] { a + bias; }) == 0);
      CHECK(allocations_of([&] { einsum<"ij,jk->ik">(a, w); }) == 0);
      CHECK(allocations_of([&] { einsum<"ij,jk->ik", P<data, _, Unreduced<Sum, model>>>(a, w); }) ==
            0);
      CHECK(allocations_of([&] { einsum<"ij,jk->ik", P<_, data>>(a, w); }) == 0);
      CHECK(allocations_of([&] { einsum<"ij,jk,kl->il">(a, w, v); }) == 0);
      CHECK(allocations_of([&] { sum<"ij->i">(a); }) == 0);
      CHECK(allocations_of([&] { max(a); }) == 0);
      CHECK(allocations_of([&] { transpose<"ij->ji">(a); }) == 0);
      CHECK(allocations_of([&] { reshard<P<_, data>>(a); }) == 0);
      CHECK(allocations_of([&] { reshard<P<_, _>>(a); }) == 0);
      CHECK(allocations_of([&] { softmax<"ij", 'j'>(a); }) == 0);
      const auto ids = iota<ShardedTensor<std::int32_t, Grid, P<data>>>(mesh, {6});
      CHECK(allocations_of([&] { take<"ij,n->nj">(a, ids); }) == 0);
      CHECK(allocations_of([&] { scatter_into<Sum, "ij,n,nj->ij">(y, ids, b); }) == 0);
      const auto row = zeros<Tensor<_, model>>(mesh, 1, 8);
      CHECK(allocations_of([&] { dynamic_update_slice_into<"ij", 'i'>(y, row, {3}); }) == 0);
    });
}

TEST_CASE("what tensors are counted with outlives the mesh") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    Tensor<data, model> kept;
    {
      const auto mesh = make_mesh<Grid>(world, 1, 1);
      kept = zeros<Tensor<data, model>>(mesh, 2, 3);
      kept = kept + 1.0f;
      mesh.core()->close();  // lets go of the pool
      CHECK_THROWS_AS((zeros<Tensor<data, model>>(mesh, 2, 3)), Error);
    }
    const auto copy = kept;
    kept = Tensor<data, model>();
    CHECK(copy.extent(1) == 3);
  });
}
