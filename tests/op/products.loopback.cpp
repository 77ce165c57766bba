// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Which library multiplies: the same on all processes, the fixed rule's bits on any number of them,
// and a measured table's where there is one.
#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include <tessera/comm/detail/product_cache.hpp>
#include <tessera/kernel/product/gemm.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

/// Numbers whose sums are rounded.
template <class T> struct Tenths {
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return static_cast<T>(0.1 * static_cast<double>((i[0] * 7 + i[1] * 3) % 11) - 0.43);
  }
};

/// Whether x's rows, split over `processes`, times w are, to the bit, what the kernel makes of each
/// block by itself with this table.
template <class T>
bool blocks_are(int processes, Products products, Index m, Index n, Index k,
                const detail::ProductTable* table) {
  std::atomic<bool> same{true};
  run_loopback(processes, [&](std::shared_ptr<Transport> world) {
    const auto mesh =
        make_mesh<Grid>(world, sizes<Grid>(processes, 1), MeshOptions{.products = products});
    const auto x = from_function<Tensor<T, data, _>>(mesh, {m, k}, Tenths<T>{});
    const auto w = from_function<Tensor<T, _, _>>(mesh, {k, n}, Tenths<T>{});
    const auto y = einsum<"mk,kn->mn", P<data, _>>(x, w);
    const auto a = to_host(x), b = to_host(w), c = to_host(y);
    const Index rows = ceil_div(m, processes);
    std::vector<T> expected(static_cast<std::size_t>(m * n));
    for (Index top = 0; top < m; top += rows) {
      const detail::Gemm g{
          .m = min_of(rows, m - top), .n = n, .k = k, .lda = k, .ldb = n, .ldc = n};
      detail::gemm(dtype_of<T>, g, a.values.data() + top * k, b.values.data(),
                   expected.data() + top * n, 0, false, table);
    }
    if (std::memcmp(expected.data(), c.values.data(), expected.size() * sizeof(T)) != 0)
      same = false;
  });
  return same;
}
}  // namespace

TEST_CASE("the fixed rule gives the kernel's bits on 1, 2 and 4 processes") {
  // On both sides of what the rule asks of oneDNN and of BLIS.
  for (const int processes : {1, 2, 4}) {
    CAPTURE(processes);
    CHECK(blocks_are<float>(processes, Products::fixed, 40, 30, 50, nullptr));
    CHECK(blocks_are<float>(processes, Products::fixed, 260, 130, 70, nullptr));
    CHECK(blocks_are<double>(processes, Products::fixed, 60, 40, 33, nullptr));
    CHECK(blocks_are<double>(processes, Products::fixed, 803, 90, 70, nullptr));
  }
}

TEST_CASE("processes that measure have one table, which their products follow") {
  // What this program knows is made up: nothing is measured.
  detail::ProductTable known;
  detail::ProductRow row{};
  for (int i = 0; i < detail::product_classes; ++i)
    row[i] = i % 2 == 0 ? detail::ProductWay::blas : detail::ProductWay::blis;
  for (int type = 0; type < 4; ++type) known.set(type, row);
  detail::KnownProducts::all().adopt(known);
  known = detail::KnownProducts::all().table();
  for (const int processes : {1, 2, 4}) {
    std::atomic<int> others{0};
    run_loopback(processes, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(1, processes),
                                        MeshOptions{.products = Products::measured});
      if (!(mesh.core()->products() == known)) ++others;
      if (explain_products(mesh).find("products: measured") != 0) ++others;
    });
    CHECK(others == 0);
    CHECK(blocks_are<float>(processes, Products::measured, 130, 64, 70, &known));
    CHECK(blocks_are<double>(processes, Products::measured, 130, 64, 70, &known));
  }
}

TEST_CASE("one library by name multiplies, and processes that differ are told") {
  const detail::ProductTable blas(detail::ProductWay::blas);
  CHECK(blocks_are<float>(2, Products::blas, 260, 130, 70, &blas));
  const detail::ProductTable blis(detail::ProductWay::blis);
  CHECK(blocks_are<double>(2, Products::blis, 70, 30, 40, &blis));
  CHECK_THROWS_WITH_AS(
      run_loopback(2,
                   [](std::shared_ptr<Transport> world) {
                     const Products mine = world->process() == 0 ? Products::blas : Products::fixed;
                     make_mesh<Grid>(world, sizes<Grid>(2, 1), MeshOptions{.products = mine});
                   }),
      doctest::Contains("products "), MismatchError);
}

TEST_CASE("a dry mesh measures nothing") {
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(2, 2), 0, {.products = Products::measured});
  CHECK(mesh.core()->products() == detail::ProductTable());
}
