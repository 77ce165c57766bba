// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: typed
// Triangles, running log-sum-exps and elements along lines under every sharding of small meshes,
// blocks ragged and empty among them, and their typed forms, against plain loops.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/few_meshes.hpp"
#include "support/grid.hpp"

using namespace tessera;
using namespace support;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Numbers with a few infinities and NaNs.
struct Hard {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    const Index n = i.linear() * 7 + 3;
    if (n % 23 == 1) return infinity;
    if (n % 5 == 1) return -infinity;
    if (n % 29 == 0) return nan;
    return static_cast<double>(n % 17) * 100 - 800;
  }
};
/// Numbers that NumPy's sums of exponentials would not overflow with.
struct Easy {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(i.linear() * 7 % 11) / 4 - 1;
  }
};

/// Runs f(mesh, sharding, extents) for every sharding of a matrix on meshes of two axes and of one.
template <class F> void for_every_sharding(const F& f) {
  for (const MeshShape& shape : {MeshShape{1}, MeshShape{4}, MeshShape{2, 3}})
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      for (const Extents& e : {Extents{5, 7}, Extents{2, 11}, Extents{3, 1}, Extents{0, 4}})
        for (const Sharding& s : shardings(2, shape.rank())) f(mesh, s, e);
    });
}
/// Equal, infinities and NaN too, or apart by no more than that.
bool near(double a, double b, double apart) {
  return a == b || (a != a && b != b) || std::fabs(a - b) <= apart;
}
/// Compares y (of float or double) with what NumPy's logaddexp.accumulate gives for x along
/// `along`.
template <class T>
bool is_running(const HostTensor<T>& y, const HostTensor<double>& x, int along, ScanOptions options,
                double eps) {
  const Index n = x.extents[along], lines = x.extents[1 - along];
  for (Index line = 0; line < lines; ++line) {
    double total = -infinity;
    for (Index k = 0; k < n; ++k) {
      const Index at = options.reverse ? n - 1 - k : k;
      const double value = along == 0 ? x(at, line) : x(line, at), before = total;
      if (total != total || value != value)
        total = nan;
      else if (total == value)
        total = total + std::log(2.0);
      else
        total = std::max(total, value) + std::log1p(std::exp(-std::fabs(total - value)));
      const double wanted = options.exclusive ? before : total;
      const double mine = static_cast<double>(along == 0 ? y(at, line) : y(line, at));
      if (!near(mine, wanted, eps * std::max(1.0, std::fabs(wanted)))) return false;
    }
  }
  return true;
}
}  // namespace

TEST_CASE("triangles under every sharding") {
  for_every_sharding([](const auto& mesh, const Sharding& s, const Extents& e) {
    const DynamicTensor x = from_function<double>(mesh, e, s, Hard{});
    const HostTensor<double> all = to_host<double>(x);
    for (const Index k : {-2, 0, 1, 100}) {
      const DynamicTensor below = tril(x, k), above = triu(x, k);
      CHECK(below.sharding() == s);
      const HostTensor<double> low = to_host<double>(below), high = to_host<double>(above);
      bool right = low.extents == e && high.extents == e;
      for (Index i = 0; i < e[0]; ++i)
        for (Index j = 0; j < e[1]; ++j) {
          right = right && near(low(i, j), j - i <= k ? all(i, j) : 0.0, 0);
          right = right && near(high(i, j), j - i >= k ? all(i, j) : 0.0, 0);
        }
      CHECK(right);
    }
  });
}

TEST_CASE("typed triangles, of batches, of other elements, and of what is unfinished") {
  on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = iota<Tensor<std::int32_t, _, data, model>>(mesh, {2, 5, 4}, 1);
    const auto l = tril(x);
    static_assert(std::is_same_v<decltype(l), const Tensor<std::int32_t, _, data, model>>);
    const HostTensor<std::int32_t> all = to_host(x), low = to_host(l), high = to_host(triu(x, 2));
    for (Index b = 0; b < 2; ++b)
      for (Index i = 0; i < 5; ++i)
        for (Index j = 0; j < 4; ++j) {
          CHECK(low(b, i, j) == (j <= i ? all(b, i, j) : 0));
          CHECK(high(b, i, j) == (j - i >= 2 ? all(b, i, j) : 0));
        }
    const auto truths = full<Tensor<bool, data, model>>(mesh, {3, 4}, true);
    CHECK(to_host(tril(truths, -1))(2, 1) == true);
    CHECK(to_host(tril(truths, -1))(1, 1) == false);
    const auto split = from_function<Tensor<double, model, data, _>>(mesh, {4, 3, 3}, Easy{});
    const auto partial = sum<"bij->ij", P<data, _, Unreduced<Sum, model>>>(split);
    const auto kept = triu(partial);
    static_assert(decltype(kept)::unfinished);
    CHECK(to_host(kept) == to_host(triu(reshard<P<data, _>>(partial))));
    const auto most = max<"bij->ij", P<data, _, Unreduced<Max, model>>>(split);
    CHECK(to_host(tril(most, 1)) == to_host(tril(max<"bij->ij">(split), 1)));
    // No contract is broken, since nothing is sent.
    CHECK_NOTHROW((void)tril(DynamicTensor(x), 0, Contract::nothing()));
    CHECK_THROWS_WITH_AS((void)triu(iota<std::int32_t>(mesh.core(), {5}, Sharding{{0}})),
                         doctest::Contains("triu: the tensor has no matrices; a triangle is of "
                                           "matrices, which are the last two dimensions"),
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)tril(DynamicTensor()), doctest::Contains("an empty tensor"),
                         UsageError);
  });
}

TEST_CASE("running log-sum-exps under every sharding, of infinities and NaN too") {
  for_every_sharding([](const auto& mesh, const Sharding& s, const Extents& e) {
    const DynamicTensor hard = from_function<double>(mesh, e, s, Hard{}),
                        easy = from_function<double>(mesh, e, s, Easy{});
    const HostTensor<double> all_hard = to_host<double>(hard), all_easy = to_host<double>(easy);
    for (const int along : {0, 1})
      for (const ScanOptions options :
           {ScanOptions{}, ScanOptions{.reverse = true}, ScanOptions{.exclusive = true}}) {
        const char letter = along == 0 ? 'i' : 'j';
        const DynamicTensor y = cumulative<LogSumExp>("ij", letter, hard, options);
        CHECK(y.sharding() == s);
        CHECK(is_running(to_host<double>(y), all_hard, along, options, 1e-14));
        const DynamicTensor z = cumulative<LogSumExp>("ij", letter, easy, options);
        CHECK(is_running(to_host<double>(z), all_easy, along, options, 1e-14));
      }
  });
}

TEST_CASE("typed running log-sum-exps, of short floats too, and what is refused") {
  on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = from_function<Tensor<double, data, model>>(mesh, {3, 999}, Easy{});
    const auto y = cumulative<LogSumExp, "ij", 'j'>(x);
    static_assert(std::is_same_v<decltype(y), const Tensor<double, data, model>>);
    CHECK(is_running(to_host(y), to_host(x), 1, {}, 1e-13));
    CHECK(to_host<double>(cumulative<LogSumExp>("ij", 'j', DynamicTensor(x))) == to_host(y));
    const auto moved = cumulative<LogSumExp, "ij", 'i', P<model, data>>(x, {.reverse = true});
    CHECK(is_running(to_host(moved), to_host(x), 0, {.reverse = true}, 1e-13));
    // The last is the whole, and rounding does not add up.
    const auto total = to_host(logsumexp<"ij->i">(x));
    for (Index i = 0; i < 3; ++i)
      CHECK(near(to_host(y)(i, 998), static_cast<double>(total.values[static_cast<std::size_t>(i)]),
                 1e-13));
    CHECK(is_running(to_host(cumulative<LogSumExp, "ij", 'j'>(cast<half>(x))),
                     to_host(cast<double>(cast<half>(x))), 1, {}, 1.1 / 1024));
    CHECK(is_running(to_host(cumulative<LogSumExp, "ij", 'j'>(cast<float>(x))),
                     to_host(cast<double>(cast<float>(x))), 1, {}, 1.3e-7));
    const DynamicTensor d = x;
    CHECK_THROWS_WITH_AS((void)cumulative<LogSumExp>("ij", 'j', cast<std::int32_t>(d)),
                         doctest::Contains("ij of int32: this function is for real numbers"),
                         UsageError);
    CHECK_THROWS_WITH_AS((void)cumulative<LogSumExp>("ij", 'k', d),
                         doctest::Contains("a letter that its operand does not have"),
                         ShardingError);
    const DynamicTensor open = sum<"ij->i", P<data, Unreduced<Sum, model>>>(x);
    CHECK_THROWS_WITH_AS((void)cumulative<LogSumExp>("i", 'i', open),
                         doctest::Contains("an unfinished partial value is used as a value"),
                         ShardingError);
    const bool sends = mesh.shape()[1] > 1;
    const auto refused = [&](const auto& f) {
      try {
        f();
      } catch (const ContractError&) {
        return true;
      }
      return false;
    };
    const Contract nothing = Contract::nothing(),
                   gathered = contract_of<Grid, Only<gathers<model>>>();
    CHECK(sends == refused([&] { (void)cumulative<LogSumExp>("ij", 'j', d, {}, nothing); }));
    CHECK_FALSE(refused([&] { (void)cumulative<LogSumExp>("ij", 'j', d, {}, gathered); }));
    CHECK(sends == refused([&] {
            (void)associative_scan<double>("ij", 'j', fn::LogAddExp{}, -infinity, d, {}, nothing);
          }));
    CHECK(to_host<double>(associative_scan<double>("ij", 'j', fn::LogAddExp{}, -infinity, d, {},
                                                   gathered)) == to_host(y));
  });
}

TEST_CASE("elements along lines under every sharding of the operand and of the indices") {
  for_every_sharding([](const auto& mesh, const Sharding& s, const Extents& e) {
    if (e[0] == 3) return;
    const DynamicTensor x = from_function<double>(mesh, e, s, Hard{});
    const HostTensor<double> all = to_host<double>(x);
    for (const int along : {0, 1})
      for (const Index count : {3, 9})
        for (const Sharding& other : shardings(2, mesh->shape().rank())) {
          Extents few = e;
          few[along] = count;
          const DynamicTensor ids = random_uniform<std::int64_t>(mesh, few, other, 7, -2, 12);
          const HostTensor<std::int64_t> i = to_host<std::int64_t>(ids);
          const char letter = along == 0 ? 'i' : 'j';
          const auto is = [&](const DynamicTensor& y, bool drop) {
            const HostTensor<double> mine = to_host<double>(y);
            bool right = mine.extents == few;
            for (Index a = 0; a < few[0]; ++a)
              for (Index b = 0; b < few[1]; ++b) {
                const Index n = e[along], asked = i(a, b),
                            at = std::min(std::max<Index>(asked, 0), n - 1);
                const bool gone = drop && asked != at;
                const double wanted = gone || n == 0 ? 0 : along == 0 ? all(at, b) : all(a, at);
                right = right && near(mine(a, b), wanted, 0);
              }
            return right;
          };
          CHECK(is(take_along_axis("ij", letter, x, ids, OutOfRange::drop), true));
          if (e[along] > 0) {
            CHECK(is(take_along_axis("ij", letter, x, ids), false));
            CHECK(is(take_along_axis("ij", letter, x, ids, {}, s), false));
          }
        }
  });
}

TEST_CASE("typed elements along lines, those of a sort, and what is refused") {
  on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = from_function<Tensor<double, data, model>>(mesh, {5, 7}, Easy{});
    const auto order = argsort<"ij", 'j'>(x);
    const auto sorted = take_along_axis<"ij", 'j'>(x, order);
    static_assert(std::is_same_v<decltype(sorted), const Tensor<double, data, model>>);
    CHECK(to_host(sorted) == to_host(tessera::sort<"ij", 'j'>(x)));
    const auto best = take_along_axis<"ij", 'i', P<model, data>>(x, argsort<"ij", 'i'>(x));
    static_assert(std::is_same_v<decltype(best), const Tensor<double, model, data>>);
    CHECK(to_host(best) == to_host(tessera::sort<"ij", 'i'>(x)));
    const DynamicTensor d = x, o = order;
    CHECK(to_host<double>(take_along_axis("ij", 'j', d, o)) == to_host(sorted));
    CHECK_THROWS_WITH_AS((void)take_along_axis("ij", 'k', d, o),
                         doctest::Contains("a letter that its operand does not have"),
                         ShardingError);
    CHECK_THROWS_WITH_AS((void)take_along_axis("ij->", 'j', d, o),
                         doctest::Contains("the equation cannot be read"), ShardingError);
    CHECK_THROWS_WITH_AS((void)take_along_axis("ij", 'j', d, d),
                         doctest::Contains("indices are int32 or int64"), UsageError);
    const DynamicTensor wrong = zeros<std::int64_t>(mesh.core(), {4, 7}, Sharding{{}, {}});
    CHECK_THROWS_WITH_AS((void)take_along_axis("ij", 'j', d, wrong),
                         doctest::Contains("i is 5 in operand 1"), ShapeError);
    const bool sends = mesh.shape()[1] > 1;
    const auto refused = [&](const Contract& contract) {
      try {
        (void)take_along_axis("ij", 'j', d, o, OutOfRange::clamp, contract);
      } catch (const ContractError&) {
        return true;
      }
      return false;
    };
    CHECK(sends == refused(Contract::nothing()));
    CHECK_FALSE(refused(
        contract_of<Grid, Only<gathers<model>, all_reduces<model>, reduce_scatters<model>>>()));
  });
}
