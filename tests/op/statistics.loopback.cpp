// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Variances, norms and log-sum-exp equal plain loops, on meshes of 1 to 8 processes, with ragged
// and empty blocks.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
using namespace tessera;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

constexpr Index rows = 5, columns = 7;
double element(Index i, Index j) {
  return 1000 + 3 * std::sin(static_cast<double>(7 * i + j)) - 200.0 * static_cast<double>(i);
}
struct Values {
  double operator()(const GlobalIndex& i) const { return element(i[0], i[1]); }
};
struct Rare {
  template <class T> KOKKOS_FUNCTION bool operator()(T x) const { return x > T(1002); }
};
struct Turned {
  KOKKOS_FUNCTION complex<double> operator()(double x) const { return {x, -2 * x}; }
};
struct AllInfinite {
  KOKKOS_FUNCTION double operator()(double x) const {
    return x < 500 ? -std::numeric_limits<double>::infinity() : x;
  }
};

template <class F> void on_every_mesh(const F& f) {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(4, 1), sizes<Grid>(2, 2),
                                     sizes<Grid>(3, 2), sizes<Grid>(1, 5), sizes<Grid>(8, 1)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      f(make_mesh<Grid>(std::move(world), size));
    });
}

void compare(const HostTensor<double>& y, const std::vector<double>& wanted, double eps = 1e-13) {
  REQUIRE(y.values.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK(std::fabs(y.values[i] - wanted[i]) <= eps * std::fabs(wanted[i]));
}

TEST_CASE("variance, standard deviation, norms, log-sum-exp, any, all, product") {
  std::vector<double> means, var, sample, one, two, most, lse;
  double sum_of_squares = 0;
  for (Index i = 0; i < rows; ++i) {
    double sum = 0, size = 0, squares = 0, largest = 0, top = -1e9;
    for (Index j = 0; j < columns; ++j) {
      const double v = element(i, j);
      sum += v, size += std::fabs(v), squares += v * v, largest = std::max(largest, std::fabs(v)),
                                                        top = std::max(top, v);
    }
    means.push_back(sum / columns);
    double spread = 0, exps = 0;
    for (Index j = 0; j < columns; ++j) {
      spread += (element(i, j) - sum / columns) * (element(i, j) - sum / columns);
      exps += std::exp(element(i, j) - top);
    }
    var.push_back(spread / columns), sample.push_back(spread / (columns - 1));
    one.push_back(size), two.push_back(std::sqrt(squares)), most.push_back(largest),
        lse.push_back(top + std::log(exps));
    sum_of_squares += squares;
  }
  on_every_mesh([&](const ProcessMesh<Grid>& mesh) {
    const auto x = from_function<Tensor<double, data, model>>(mesh, {rows, columns}, Values{});
    compare(to_host(variance<"ij->i">(x)), var, 1e-11);
    compare(to_host(variance<"ij->i", P<model>>(x, 1)), sample, 1e-11);
    const auto [centre, spread] = mean_and_variance<"ij->i">(x, 1);
    compare(to_host(centre), means);
    compare(to_host(spread), sample, 1e-11);
    const auto [all_centre, all_spread] = mean_and_variance(x);
    CHECK(std::fabs(value(all_centre) - value(mean(x))) < 1e-10);
    CHECK(value(all_spread) == value(variance(x)));
    std::vector<double> root;
    for (double v : sample) root.push_back(std::sqrt(v));
    compare(to_host(standard_deviation<"ij->i">(x, 1)), root, 1e-11);
    CHECK(std::isnan(to_host(variance<"ij->i">(x, columns)).values[0]));
    compare(to_host(norm<1, "ij->i">(x)), one);
    compare(to_host(norm<2, "ij->i">(x)), two);
    compare(to_host(norm<2, "ij->i", P<Axes<data, model>>>(x)), two);
    compare(to_host(norm<infinite_norm, "ij->i">(x)), most);
    compare(to_host(norm(x)), {std::sqrt(sum_of_squares)});
    compare(to_host(logsumexp<"ij->i">(x)), lse);
    compare(to_host(logsumexp<"ij->i", P<model>>(x)), lse);
    const auto z = map(Turned{}, x);
    std::vector<double> turned, turned_var;
    for (double v : two) turned.push_back(v * std::sqrt(5.0));
    for (double v : var) turned_var.push_back(5 * v);
    compare(to_host(norm<2, "ij->i">(z)), turned);
    compare(to_host(variance<"ij->i">(z)), turned_var, 1e-11);
    const auto below = to_host(logsumexp<"ij->i">(map(AllInfinite{}, x))).values;
    CHECK(below[4] == -std::numeric_limits<double>::infinity());
    CHECK(std::isfinite(below[0]));
    const auto rare = map(Rare{}, x);
    const auto some = to_host(any<"ij->i">(rare)).values;
    CHECK(some[0]);
    CHECK(!some[1]);
    CHECK(value(any(rare)));
    CHECK(!value(all(rare)));
    double product_of_row = 1;
    for (Index j = 0; j < columns; ++j) product_of_row *= element(1, j);
    CHECK(std::fabs(to_host(product<"ij->i">(x)).values[1] - product_of_row) <=
          1e-13 * product_of_row);
    const auto h = cast<half>(cast<float>(x));
    CHECK(
        std::fabs(static_cast<double>(static_cast<float>(to_host(norm<2, "ij->i">(h)).values[0])) -
                  two[0]) < 4);
  });
}
}  // namespace
