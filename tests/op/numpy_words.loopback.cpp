// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// NumPy's words for what other operators do, typed and dynamic, against plain loops.
#include <doctest/doctest.h>

#include <limits>

#include <tessera/tessera.hpp>

#include "support/few_meshes.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

template <class T> struct Small {
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    if constexpr (std::is_same_v<T, bool>)
      return i.linear() * 7 % 5 < 2;
    else if constexpr (IntegerElement<T>)
      return static_cast<T>(i.linear() * 7 % 11 + 1);
    else
      return T(static_cast<float>(i.linear() * 7 % 11 + 1));
  }
};
template <class T> HostTensor<T> as(const HostTensor<T>& x, const Extents& extents) {
  return {extents, x.values};
}

template <class T> void dimensions(const ProcessMesh<Grid>& mesh) {
  for (const Extents& e : {Extents{7, 5}, Extents{1, 4}, Extents{0, 3}}) {
    const auto x = from_function<Tensor<T, data, model>>(mesh, e, Small<T>{});
    const auto y = reverse<0>(x);
    const DynamicTensor dx = x, dy = y;
    const HostTensor<T> hx = to_host(x), hy = to_host(y);
    const auto front = expand_dims<0>(x);
    static_assert(std::is_same_v<decltype(front), const Tensor<T, _, data, model>>);
    const auto around = expand_dims<0, -1>(x);
    static_assert(std::is_same_v<decltype(around), const Tensor<T, _, data, model, _>>);
    CHECK(to_host(front) == as(hx, {1, e[0], e[1]}));
    CHECK(to_host(around) == as(hx, {1, e[0], e[1], 1}));
    CHECK(to_host(squeeze<0, 3>(around)) == hx);
    CHECK(to_host(squeeze<-1>(around)) == to_host(front));
    CHECK(to_host<T>(expand_dims(dx, {1, -1})) == as(hx, {e[0], 1, e[1], 1}));
    CHECK(to_host<T>(squeeze(expand_dims(dx, {1, -1}), {1, -1})) == hx);
    CHECK(to_host<T>(squeeze(expand_dims(dx, {0}))).values == hx.values);
    if (e[0] == 1)  // the dimension that goes is split
      CHECK(to_host(squeeze<0>(x)) == as(hx, {e[1]}));
    CHECK(to_host(flip<0>(x)) == hy);
    CHECK(to_host(flip<-2>(x)) == hy);
    CHECK(to_host(flip(x)) == to_host(reverse<0, 1>(x)));
    CHECK(to_host<T>(flip(dx, {-2})) == hy);
    CHECK(to_host<T>(flip(dx)) == to_host(flip(x)));

    const auto two = stack<0>(x, y);
    static_assert(std::is_same_v<decltype(two), const Tensor<T, _, data, model>>);
    const auto last = stack<-1, P<model, _, data>>(x, y, x);
    const HostTensor<T> h2 = to_host(two), h3 = to_host(last);
    CHECK(h2.extents == Extents{2, e[0], e[1]});
    CHECK(h3.extents == Extents{e[0], e[1], 3});
    CHECK(to_host<T>(stack(0, {dx, dy})) == h2);
    CHECK(to_host<T>(stack(-1, {dx, dy, dx})) == h3);
    const auto wide = broadcast_to<P<model, _, data>>(x, {3, e[0], e[1]});
    const auto tall = broadcast_to<P<data, model>>(slice(x, {0, 0}, {e[0], 1}), e);
    const HostTensor<T> hw = to_host(wide), ht = to_host(tall);
    CHECK(to_host<T>(broadcast_to(dx, {3, e[0], e[1]}, Sharding{{0}, {}, {1}})) == hw);
    for (Index i = 0; i < e[0]; ++i)
      for (Index j = 0; j < e[1]; ++j) {
        CHECK(h2(0, i, j) == hx(i, j));
        CHECK(h2(1, i, j) == hy(i, j));
        CHECK(h3(i, j, 1) == hy(i, j));
        CHECK(h3(i, j, 2) == hx(i, j));
        CHECK(hw(0, i, j) == hx(i, j));
        CHECK(hw(2, i, j) == hx(i, j));
        CHECK(ht(i, j) == hx(i, 0));
      }
    CHECK_THROWS_WITH_AS((broadcast_to<P<_, data>>(x, {e[0] + 1, e[1] + 1})),
                         doctest::Contains("does not broadcast to"), ShapeError);
    CHECK_THROWS_WITH_AS(squeeze<1>(x), doctest::Contains("squeeze removes dimensions of extent 1"),
                         ShapeError);
    CHECK_THROWS_AS(squeeze(dx, {2}), ShapeError);
    CHECK_THROWS_AS(expand_dims(dx, {1, 1}), ShapeError);
    CHECK_THROWS_AS(flip(dx, {-3}), ShapeError);
    CHECK_THROWS_AS(stack(4, {dx, dy}), ShapeError);
    CHECK_THROWS_AS(stack(0, {dx, DynamicTensor(slice(x, {0, 0}, {e[0], 1}))}), ShapeError);
  }
}

TEST_CASE("dimensions put in, taken out, stretched and turned, of every element type") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    dimensions<float>(mesh);
    dimensions<double>(mesh);
    dimensions<tessera::half>(mesh);
    dimensions<bfloat16>(mesh);
    dimensions<tessera::complex<float>>(mesh);
    dimensions<tessera::complex<double>>(mesh);
    dimensions<std::int8_t>(mesh);
    dimensions<std::int16_t>(mesh);
    dimensions<std::int32_t>(mesh);
    dimensions<std::int64_t>(mesh);
    dimensions<std::uint8_t>(mesh);
    dimensions<std::uint64_t>(mesh);
    dimensions<bool>(mesh);
  });
}

/// numpy.matmul by loops: batch, rows and columns of 1 where an operand has none.
template <class T>
HostTensor<T> product(const HostTensor<T>& a, const HostTensor<T>& b, const Extents& wanted) {
  const auto matrix = [](const HostTensor<T>& x, bool left) {
    Extents e = x.extents;
    if (e.size() == 1) e = left ? Extents{1, e[0]} : Extents{e[0], 1};
    while (e.size() < 4) e = detail::with_dims(e, {0}, Index{1});
    return HostTensor<T>{e, x.values};
  };
  const HostTensor<T> p = matrix(a, true), q = matrix(b, false);
  HostTensor<T> out{wanted, {}};
  const auto both = [&](int d) { return p.extents[d] == 1 ? q.extents[d] : p.extents[d]; };
  for (Index z = 0; z < both(0); ++z)
    for (Index y = 0; y < both(1); ++y)
      for (Index i = 0; i < p.extents[2]; ++i)
        for (Index j = 0; j < q.extents[3]; ++j) {
          T sum{};
          for (Index k = 0; k < p.extents[3]; ++k)
            sum = fn::Add{}(
                sum, fn::Multiply{}(p(p.extents[0] == 1 ? 0 : z, p.extents[1] == 1 ? 0 : y, i, k),
                                    q(q.extents[0] == 1 ? 0 : z, q.extents[1] == 1 ? 0 : y, k, j)));
          out.values.push_back(sum);
        }
  return out;
}

template <class T> void matrices(const ProcessMesh<Grid>& mesh) {
  const auto check = [&](const auto& a, const auto& b, const Extents& wanted) {
    const HostTensor<T> right = product(to_host(a), to_host(b), wanted);
    CHECK(to_host(matmul(a, b)) == right);
    CHECK(to_host<T>(matmul(DynamicTensor(a), DynamicTensor(b))) == right);
  };
  for (const Index n : {5, 1, 0}) {
    const auto a = from_function<Tensor<T, data, model>>(mesh, {n, 3}, Small<T>{});
    const auto b = from_function<Tensor<T, model, _>>(mesh, {3, 4}, Small<T>{});
    const auto v = from_function<Tensor<T, data>>(mesh, {3}, Small<T>{});
    check(a, b, {n, 4});
    check(a, v, {n});
    check(v, b, {4});
    check(v, v, {});
    const auto batch = from_function<Tensor<T, data, _, model>>(mesh, {2, n, 3}, Small<T>{});
    const auto one = from_function<Tensor<T, data, model, _>>(mesh, {1, 3, 4}, Small<T>{});
    const auto grid = from_function<Tensor<T, model, data, _, _>>(mesh, {7, 2, 3, 4}, Small<T>{});
    const auto thin = from_function<Tensor<T, data, model, _, _>>(mesh, {7, 1, n, 3}, Small<T>{});
    check(batch, b, {2, n, 4});
    check(batch, one, {2, n, 4});
    check(batch, v, {2, n});
    check(v, grid, {7, 2, 4});
    check(batch, grid, {7, 2, n, 4});
    check(thin, grid, {7, 2, n, 4});
    check(thin, one, {7, 1, n, 4});
  }
}

TEST_CASE("matmul is NumPy's") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    matrices<float>(mesh);
    matrices<double>(mesh);
    matrices<tessera::complex<double>>(mesh);
    matrices<std::int32_t>(mesh);
    matrices<std::int8_t>(mesh);
    const auto a = zeros<Tensor<float, data, _>>(mesh, 4, 3);
    CHECK_THROWS_AS(matmul(a, a), ShapeError);
    CHECK_THROWS_AS(matmul(zeros<Tensor<float, data, _, _>>(mesh, 2, 3, 3),
                           zeros<Tensor<float, _, _, _>>(mesh, 4, 3, 3)),
                    ShapeError);
    CHECK_THROWS_WITH_AS(matmul(DynamicTensor(a), DynamicTensor(zeros<Tensor<float>>(mesh))),
                         doctest::Contains("an operand is a scalar"), ShapeError);
  });
}

TEST_CASE("allclose and item answer as NumPy's do") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();
    struct Case {
      double a, b;
      bool close, equal_nan;
    };
    // numpy.allclose(a, b) and numpy.allclose(a, b, equal_nan=True)
    for (const Case& c : {Case{1, 1, true, true},
                          {1, 1.00001, true, true},
                          {1, 1.0000101, false, false},
                          {1e-8, 0, true, true},
                          {1.1e-8, 0, false, false},
                          {0, 1.1e-8, false, false},
                          {1e10, 1.00001e10, true, true},
                          {1e10, 1.000011e10, false, false},
                          {inf, inf, true, true},
                          {inf, -inf, false, false},
                          {inf, 1, false, false},
                          {1, inf, false, false},
                          {nan, nan, false, true},
                          {nan, 1, false, false},
                          {inf, nan, false, false}}) {
      CAPTURE(c.a);
      CAPTURE(c.b);
      for (const Index n : {7, 1}) {
        auto x = ones<Tensor<double, data, model>>(mesh, n, 3);
        auto y = ones<Tensor<double, model, _>>(mesh, n, 3);
        x = update(x, full<Tensor<double, _, _>>(mesh, {1, 1}, c.a), {n - 1, 2});
        y = update(y, full<Tensor<double, _, _>>(mesh, {1, 1}, c.b), {n - 1, 2});
        CHECK(allclose(x, y) == c.close);
        CHECK(allclose(x, y, 1e-5, 1e-8, true) == c.equal_nan);
        CHECK(allclose<double>(DynamicTensor(x), DynamicTensor(y)) == c.close);
        const auto z = make_complex(x, zeros_like(x));
        CHECK(allclose(z, y) == c.close);
      }
    }
    const auto i = arange<Tensor<std::int64_t, data>>(mesh, 9);
    CHECK(allclose(i, cast<float>(i)));
    CHECK(allclose(i, i + 1, 0, 1));
    CHECK(!allclose(i, i + 1, 0, 0.5));
    CHECK(allclose(i * 0, zeros<Tensor<tessera::half, _>>(mesh, 1)));  // broadcast
    CHECK(allclose(zeros<Tensor<float, data>>(mesh, 0), zeros<Tensor<float, data>>(mesh, 0)));
    CHECK(allclose(i < 4, i < 4));
    CHECK(!allclose(i < 4, i < 5));
    CHECK_THROWS_AS(allclose(i, zeros<Tensor<double, data>>(mesh, 8)), ShapeError);

    CHECK(item(full<Tensor<float, data, model>>(mesh, {1, 1}, 3)) == 3);
    CHECK(item(sum(i)) == 36);
    CHECK(item<std::int64_t>(DynamicTensor(slice(i, {8}, {9}))) == 8);
    CHECK(item(slice(i < 1, {0}, {1})));
    CHECK_THROWS_WITH_AS(item(i), doctest::Contains("has 9 elements"), ShapeError);
    CHECK_THROWS_AS(item(zeros<Tensor<float, data>>(mesh, 0)), ShapeError);
    CHECK_THROWS_AS(item<float>(DynamicTensor(sum(i))), UsageError);
  });
  const auto dry = dry_mesh<Grid>(2, 2);
  const auto x = zeros<Tensor<float, data>>(dry, 4);
  CHECK_THROWS_WITH_AS((void)allclose(x, x), doctest::Contains("the tensor is dry"), UsageError);
}
}  // namespace
