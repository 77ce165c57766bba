// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counts of indices and of elements within an interval, against plain loops.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "op/texts_of.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
using Counts = std::vector<std::int64_t>;
template <class T, class... D> using Of = ShardedTensor<T, Grid, P<D...>>;

/// Some below 0, some beyond 8.
template <class T> struct Some {
  T scale;
  template <class I> KOKKOS_FUNCTION T operator()(const I& i) const {
    return static_cast<T>(scale * static_cast<T>((i[0] * 7 + i[1] * 5 + i[0] * i[1]) % 13 - 2));
  }
};
constexpr Index rows = 7, columns = 11;

template <class F> void on_meshes(F f) {
  for (const MeshSizes<Grid> size :
       {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2), sizes<Grid>(1, 4)}) {
    std::mutex mutex;
    std::string first;
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const std::string text = f(make_mesh<Grid>(world, size));
      const std::lock_guard lock(mutex);
      if (first.empty()) first = text;
    });
    CHECK_MESSAGE(first.empty(), to_string(size.shape, Grid::names()) << ": " << first);
  }
}
/// For each row, or for all rows, how often part(i, j) is each of 0 to n - 1.
template <class Part> Counts counted(Index n, bool each_row, const Part& part) {
  Counts counts(static_cast<std::size_t>(each_row ? rows * n : n));
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      if (const Index v = part(i, j); v >= 0 && v < n)
        ++counts[static_cast<std::size_t>(each_row ? i * n + v : v)];
  return counts;
}
}  // namespace

TEST_CASE("indices are counted, alone and by rows, under any sharding") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    constexpr Index n = 8;
    const auto id = [](Index i, Index j) {
      return Some<std::int32_t>{1}(FixedVector<Index, 2>{i, j});
    };
    const Counts all = counted(n, false, id), by_row = counted(n, true, id);
    const auto check = [&](const auto& ids) -> std::string {
      REQUIRE_THAT(to_host(bincount<"bs->v">(ids, n)).values == all);
      REQUIRE_THAT(to_host(bincount<"bs->bv">(ids, n)).values == by_row);
      REQUIRE_THAT(to_host(bincount<"bs->v", P<model>>(ids, n)).values == all);
      const auto ones = full_like(cast<double>(ids), 2.0);
      const auto sums = to_host(bincount<"bs->v">(ids, ones, n)).values;
      for (std::size_t v = 0; v < sums.size(); ++v)
        REQUIRE_THAT(sums[v] == 2.0 * static_cast<double>(all[v]));
      const DynamicTensor d = ids;
      for (const Sharding& out : {Sharding{{}}, Sharding{{1}}, Sharding{{0, 1}}}) {
        REQUIRE_THAT(to_host<std::int64_t>(bincount("bs->v", d, n, {}, out)).values == all);
        const DynamicTensor y = zeros<std::int64_t>(mesh, {n}, out);
        (void)bincount("bs->v", d, n, OutOfRange::drop, {out, into(y)});
        REQUIRE_THAT(to_host<std::int64_t>(y).values == all);
      }
      REQUIRE_THAT(to_host<std::int64_t>(bincount("bs->bv", d, n)).values == by_row);
      REQUIRE_THAT(to_host<double>(bincount("bs->v", d, ones, n)).values == sums);
      // Clamped ones count at the ends; none are lost.
      const auto clamped = to_host(bincount<"bs->v">(ids, n, OutOfRange::clamp)).values;
      std::int64_t total = 0;
      for (const std::int64_t c : clamped) total += c;
      REQUIRE_THAT(total == rows * columns);
      REQUIRE_THAT(clamped[3] == all[3]);
      return "";
    };
    const Extents extents{rows, columns};
    for (const std::string& wrong :
         {check(from_function<Of<std::int32_t, data, model>>(mesh, extents, Some<std::int32_t>{1})),
          check(from_function<Of<std::int64_t, _, Axes<data, model>>>(mesh, extents,
                                                                      Some<std::int64_t>{1})),
          check(from_function<Of<std::int32_t, _, _>>(mesh, extents, Some<std::int32_t>{1}))})
      if (!wrong.empty()) return wrong;
    const auto none = zeros<Of<std::int32_t, data, _>>(mesh, {rows, 0});
    REQUIRE_THAT(to_host(bincount<"bs->v">(none, n)).values == Counts(n));
    // Rows that are split alike need nothing of each other.
    const auto ids = from_function<Of<std::int32_t, data, _>>(mesh, extents, Some<std::int32_t>{1});
    REQUIRE_THAT(to_host(bincount<"bs->bv", P<data, _>, Only<>>(ids, n)).values == by_row);
    return "";
  });
}

TEST_CASE("elements are counted within the parts of an interval") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const Extents extents{rows, columns};
    const auto check = [&]<class T>(T scale, Index bins, double lo, double hi) -> std::string {
      const auto x = from_function<Of<T, model, data>>(mesh, extents, Some<T>{scale});
      const auto part = [&](Index i, Index j) -> Index {
        const double v = static_cast<double>(Some<T>{scale}(FixedVector<Index, 2>{i, j}));
        if (v == hi) return bins - 1;
        for (Index k = 0; k < bins; ++k) {
          const double step = (hi - lo) / static_cast<double>(bins);
          const double begin = lo + static_cast<double>(k) * step,
                       end = k + 1 == bins ? hi : lo + static_cast<double>(k + 1) * step;
          if (v >= begin && v < end) return k;
        }
        return -1;
      };
      const Counts all = counted(bins, false, part), by_row = counted(bins, true, part);
      REQUIRE_THAT(to_host(histogram<"bs->v">(x, bins, lo, hi)).values == all);
      REQUIRE_THAT(to_host(histogram<"bs->bv">(x, bins, lo, hi)).values == by_row);
      const DynamicTensor d = x;
      REQUIRE_THAT(to_host<std::int64_t>(histogram<T>("bs->v", d, bins, lo, hi)).values == all);
      REQUIRE_THAT(
          to_host<std::int64_t>(histogram<T>("bs->v", d, bins, lo, hi, Sharding{{0}})).values ==
          all);
      return "";
    };
    for (const std::string& wrong :
         {check(0.1, 10, 0.0, 1.0), check(0.1, 7, -0.2, 0.7), check(0.7f, 3, -1.0, 2.1),
          check(half(0.5f), 5, -1.0, 4.0), check(std::int32_t{3}, 6, -3.0, 15.0)})
      if (!wrong.empty()) return wrong;
    const auto nan = full<Of<double, data, _>>(mesh, extents, std::nan(""));
    REQUIRE_THAT(to_host(histogram<"bs->v">(nan, 4, 0.0, 1.0)).values == Counts(4));
    // In a compiled function, and in a dry plan.
    const auto x = from_function<Of<double, model, data>>(mesh, extents, Some<double>{0.1});
    auto count = compile(
        [](const Of<double, model, data>& y) { return histogram<"bs->v">(y, 10, 0.0, 1.0); });
    REQUIRE_THAT(to_host(count(x)) == to_host(histogram<"bs->v">(x, 10, 0.0, 1.0)));
    for (const auto& [bins, hi] : {std::pair<Index, double>{0, 1.0}, {4, 0.0}, {4, INFINITY}}) try {
        (void)histogram<"bs->v">(x, bins, 0.0, hi);
        return "an interval without parts is divided";
      } catch (const ShapeError&) {
      }
    return "";
  });
}
