// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// How many plans a mesh keeps, and that letting go of them changes nothing but time.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <list>
#include <random>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

struct Ramp {
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return static_cast<double>(i[0] * 10 + i[1]);
  }
};

struct Number {
  int value = 0;
  std::uint64_t digest() const { return static_cast<std::uint64_t>(value % 7) * 9; }  // they meet
  bool operator==(const Number&) const = default;
};
struct Made : std::enable_shared_from_this<Made> {
  int value = 0;
  Index extra = 0;
};
Index heap_bytes(const Made& made) { return made.extra; }

/// Bytes that the heap has given out.
Index heap_in_use() {
  const auto info = mallinfo2();
  return static_cast<Index>(info.uordblks + info.hblkhd);
}
}  // namespace

TEST_CASE("a recent cache keeps what a list in the order of use keeps") {
  std::mt19937 random(5);
  for (const Index limit : {Index{0}, Index{900}, Index{5'000}, Index{40'000}, max_int64}) {
    detail::RecentCache<Number, Made> cache;
    const auto size_of_one = [](int n) { return Index{(n * 37) % 500}; };
    std::list<int> kept;  // the newest in front
    Index each = -1;      // what an entry takes beside what its value says
    Index made = 0;
    for (int turn = 0; turn < 4'000; ++turn) {
      const int n = static_cast<int>(random() % 40 * (random() % 3));
      const Made& got = cache.get(Number{n}, limit, [&] {
        Made one;
        one.value = 3 * n;
        one.extra = size_of_one(n);
        return one;
      });
      REQUIRE(got.value == 3 * n);
      if (each < 0) each = cache.bytes() - size_of_one(n);
      made += std::find(kept.begin(), kept.end(), n) == kept.end();
      kept.remove(n);
      kept.push_front(n);
      Index bytes = 0;
      for (const int k : kept) bytes += each + size_of_one(k);
      for (; kept.size() > 1 && bytes > limit; kept.pop_back())
        bytes -= each + size_of_one(kept.back());
      REQUIRE(cache.size() == kept.size());
      REQUIRE(cache.bytes() == bytes);
      REQUIRE(cache.made() == made);
      REQUIRE(cache.found() == turn + 1 - made);
      REQUIRE(cache.evicted() == made - static_cast<Index>(kept.size()));
    }
  }
}

namespace {
/// A tensor that no operator makes, so that none is planned.
Real<data, model> unplanned(const ProcessMesh<Grid>& mesh, Index n) {
  return Real<data, model>(
      TensorCore::make(mesh.core(), {DType::f64, {n, 3}, Real<data, model>::sharding()}));
}
}  // namespace

TEST_CASE("45,000 different extents stay within the bound") {
  MeshOptions options;
  options.plan_cache_bytes = 4 << 20;
  const auto mesh = dry_mesh<Grid>(sizes<Grid>(2, 2), 0, options);
  MeshCore& core = *mesh.core();
  CHECK(plan_cache_use(core).limit == 4 << 20);
  const Index before = heap_in_use();
  Index most = 0;
  for (Index n = 1; n <= 45'000; ++n) {
    (void)sum<"ij->i">(unplanned(mesh, n));
    most = std::max(most, plan_cache_use(core).bytes);
  }
  const PlanCacheUse use = plan_cache_use(core);
  CHECK(most <= options.plan_cache_bytes);
  CHECK(use.made == 45'000);
  CHECK(use.evicted == use.made - use.plans);
  CHECK(use.plans > 10);
  CHECK(use.bytes > options.plan_cache_bytes * 9 / 10);
  if (before > 0) {  // not under a sanitizer, which has a heap of its own
    CHECK(heap_in_use() - before < use.bytes * 5 / 4);
    CHECK(heap_in_use() - before > use.bytes * 3 / 4);
  }
  // The last ones are known, the first ones are planned again, and alike.
  const auto again = [&](Index n) {
    const Index made = plan_cache_use(core).made;
    (void)sum<"ij->i">(unplanned(mesh, n));
    return plan_cache_use(core).made - made;
  };
  CHECK(again(45'000) == 0);
  CHECK(again(44'990) == 0);
  CHECK(again(1) == 1);
}

TEST_CASE("with a plan cache of any size every operator gives the same") {
  std::atomic<int> good{0};
  for (const Index limit : {Index{0}, Index{1}, Index{200'000}, max_int64})
    run_loopback(4, [&](std::shared_ptr<Transport> world) {
      MeshOptions options;
      options.plan_cache_bytes = limit;
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
      const auto x = from_function<Real<data, model>>(mesh, {7, 9}, Ramp{});
      const auto all = to_host(x).values;
      // Started, and a dozen other plans before it is waited for.
      auto pending = async([&] { return reshard<P<model, _>>(x); });
      auto summed = async([&] { return reduce<Sum, "ij->j">(x); });
      for (Index n = 1; n < 13; ++n) (void)sum<"ij->">(full<Real<data, model>>(mesh, {n, n}, 1));
      good += to_host(pending.wait()).values == all;
      double expected = 0;
      for (std::size_t i = 0; i < 7; ++i) expected += all[i * 9 + 8];
      good += to_host(summed.wait()).values.back() == expected;
      // A halo tensor keeps its exchange.
      auto halo = make_halo<Real<data, model>, 0, 1>(mesh, {7, 9}, 1, 1, Boundary::periodic);
      halo.assign(x);
      for (int turn = 0; turn < 3; ++turn) {
        halo.exchange();
        (void)sum<"ij->">(x + x);
      }
      const Box box = halo.box();
      good +=
          halo.view()(0, 0) == static_cast<double>((box[0].lo + 7) % 7 * 10 + (box[1].lo + 9) % 9);
      // The order of a product of three is kept while its products are planned.
      const auto y = einsum<"ij,kj,kl->il">(x, x, x);
      double corner = 0;
      for (std::size_t j = 0; j < 9; ++j)
        for (std::size_t k = 0; k < 7; ++k) corner += all[j] * all[k * 9 + j] * all[k * 9];
      good += to_host(y).values.front() == corner;
      const PlanCacheUse use = plan_cache_use(*mesh.core());
      good += limit > 1'000'000 ? use.evicted == 0 && use.found > 0 : use.evicted > 10;
      good += limit > 1 ? use.bytes <= limit : use.plans == 1;
    });
  CHECK(good == 4 * 4 * 6);
}

TEST_CASE("TESSERA_PLAN_CACHE_BYTES is the size of plan caches") {
  CHECK(MeshOptions().plan_cache_bytes == 64 << 20);
  setenv("TESSERA_PLAN_CACHE_BYTES", "1000000", 1);
  CHECK(MeshOptions().plan_cache_bytes == 1'000'000);
  setenv("TESSERA_PLAN_CACHE_BYTES", "1e30", 1);
  CHECK(MeshOptions().plan_cache_bytes == max_int64);
  setenv("TESSERA_PLAN_CACHE_BYTES", "much", 1);
  CHECK_THROWS_WITH_AS(MeshOptions(), doctest::Contains("TESSERA_PLAN_CACHE_BYTES is \"much\""),
                       UsageError);
  unsetenv("TESSERA_PLAN_CACHE_BYTES");
}
