// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// Operators onto a tensor that is there, and dot, against plain loops.
#include <doctest/doctest.h>

#include <limits>

#include <tessera/tessera.hpp>

#include "support/few_meshes.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

/// Small whole numbers, so that all types are exact.
template <class T> struct Small {
  int seed;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return T(static_cast<float>((i.linear() * 7 + seed) % 5 + 1));
  }
};
template <class T> struct SmallInt {
  int seed;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    return static_cast<T>((i.linear() * 7 + seed) % 5 + 1);
  }
};
template <class T> using Numbers = std::conditional_t<IntegerElement<T>, SmallInt<T>, Small<T>>;

/// The bytes of arena memory that `run` takes for itself.
template <class Run> Index taken(const ProcessMesh<Grid>& mesh, const Run& run) {
  const Index held = mesh.arena().in_use();
  mesh.arena().reset_peak();
  run();
  return mesh.arena().peak() - held;
}

template <class T> void arithmetic(const ProcessMesh<Grid>& mesh) {
  for (const Extents& e : {Extents{7, 5}, Extents{1, 4}, Extents{0, 3}}) {
    auto x = from_function<Tensor<T, data, model>>(mesh, e, Numbers<T>{1});
    const auto y = from_function<Tensor<T, data, model>>(mesh, e, Numbers<T>{2});
    const auto row = from_function<Tensor<T, model>>(mesh, {e[1]}, Numbers<T>{3});
    const auto column = from_function<Tensor<T, data, _>>(mesh, {e[0], 1}, Numbers<T>{4});
    const auto copy = x;  // shares x's memory
    const void* const memory = x.data();
    const HostTensor<T> hx = to_host(x), hy = to_host(y), hr = to_host(row), hc = to_host(column);
    const auto agree = [&](const auto& wanted) {
      const HostTensor<T> all = to_host(x);
      bool same = true;
      for (Index i = 0; i < e[0]; ++i)
        for (Index j = 0; j < e[1]; ++j) same = same && all(i, j) == wanted(i, j);
      CHECK(same);
      CHECK(x.data() == memory);
      CHECK(to_host(copy) == all);
    };
    using fn::Add, fn::Multiply, fn::Subtract, fn::Divide;
    CHECK(taken(mesh, [&] { x += y; }) == 0);
    agree([&](Index i, Index j) { return Add{}(hx(i, j), hy(i, j)); });
    CHECK(taken(mesh, [&] { x -= y; }) == 0);
    agree([&](Index i, Index j) { return hx(i, j); });
    CHECK(taken(mesh, [&] { x *= row; }) == 0);
    agree([&](Index i, Index j) { return Multiply{}(hx(i, j), hr(j)); });
    CHECK(taken(mesh, [&] { x /= row; }) == 0);
    agree([&](Index i, Index j) { return hx(i, j); });
    CHECK(taken(mesh, [&] { (x += column) -= T(1); }) == 0);
    agree([&](Index i, Index j) { return Subtract{}(Add{}(hx(i, j), hc(i, 0)), T(1)); });
    CHECK(taken(mesh, [&] { x += x; }) == 0);
    x -= copy;
    agree([&](Index, Index) { return T{}; });
    x += full<Tensor<T, _, _>>(mesh, e, T(3));
    CHECK(taken(mesh, [&] { axpy(T(2), y, x); }) == 0);
    agree([&](Index i, Index j) { return Add{}(T(3), Multiply{}(T(2), hy(i, j))); });
    axpy(2, x, x);
    agree([&](Index i, Index j) {
      return Multiply{}(T(3), Add{}(T(3), Multiply{}(T(2), hy(i, j))));
    });
    // What is split otherwise is brought to x's sharding.
    x *= 0;
    x += reshard<P<model, data>>(y);
    agree([&](Index i, Index j) { return hy(i, j); });
    map_into(x, Divide{}, x, x);
    agree([&](Index, Index) { return T(1); });

    DynamicTensor d = from_function<T>(mesh.core(), e, Sharding{{1}, {0}}, Numbers<T>{1});
    const DynamicTensor r = from_function<T>(mesh.core(), {e[1]}, Sharding{{0}}, Numbers<T>{3});
    CHECK(taken(mesh, [&] { d += r; }) == 0);
    d -= 1;
    d *= d;
    axpy(2, r, d);
    d += y;  // a typed tensor is a dynamic one, here split otherwise
    d /= 1;
    map_into<T>("ij,j->ij", d, Add{}, d, r);
    const HostTensor<T> all = to_host<T>(d);
    for (Index i = 0; i < e[0]; ++i)
      for (Index j = 0; j < e[1]; ++j) {
        const T base = Subtract{}(Add{}(hx(i, j), hr(j)), T(1));
        CHECK(
            all(i, j) ==
            Add{}(Add{}(Add{}(Multiply{}(base, base), Multiply{}(T(2), hr(j))), hy(i, j)), hr(j)));
      }
  }
}

TEST_CASE("arithmetic in place, of every number type") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    arithmetic<float>(mesh);
    arithmetic<double>(mesh);
    arithmetic<tessera::half>(mesh);
    arithmetic<bfloat16>(mesh);
    arithmetic<tessera::complex<float>>(mesh);
    arithmetic<tessera::complex<double>>(mesh);
    arithmetic<std::int8_t>(mesh);
    arithmetic<std::int16_t>(mesh);
    arithmetic<std::int32_t>(mesh);
    arithmetic<std::int64_t>(mesh);
    arithmetic<std::uint8_t>(mesh);
    arithmetic<std::uint64_t>(mesh);
  });
}

TEST_CASE("unfinished sums take part in place as they do elsewhere") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    const auto x = from_function<Tensor<double, data, model>>(mesh, {6, 5}, Small<double>{1});
    using Open = Tensor<double, data, Unreduced<Sum, model>>;
    auto open = reduce<Sum, "ij->i", Open::spec>(x);
    const auto other = reduce<Sum, "ij->i", Open::spec>(x);
    open += other;
    open *= 3.0;
    axpy(2.0, other, open);
    CHECK(to_host(open) == to_host(sum<"ij->i">(x) * 8.0));
  });
}

TEST_CASE("what cannot be done in place says so, and leaves the tensor as it was") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    auto row = full<Tensor<float, _, _>>(mesh, {1, 4}, 2);
    const auto matrix = zeros<Tensor<float, _, _>>(mesh, 3, 4);
    CHECK_THROWS_WITH_AS(row += matrix, doctest::Contains("the result is float 3x4"), ShapeError);
    auto odd = zeros<Tensor<float, _, _>>(mesh, 3, 5);
    CHECK_THROWS_AS(odd += matrix, ShapeError);
    CHECK(to_host(row)(0, 3) == 2);
    DynamicTensor whole = zeros<std::int32_t>(mesh.core(), {3}, Sharding{{0}});
    CHECK_THROWS_WITH_AS(whole += 0.5, doctest::Contains("Add: a value of type"), UsageError);
    CHECK_THROWS_WITH_AS(whole += DynamicTensor(odd),
                         doctest::Contains("the operands are of int32 and float"), UsageError);
    DynamicTensor truth = zeros<bool>(mesh.core(), {3}, Sharding{{0}});
    CHECK_THROWS_WITH_AS(truth += truth, doctest::Contains("arithmetic takes numbers"), UsageError);
    DynamicTensor none;
    CHECK_THROWS_AS(none += whole, UsageError);
    // The destination in another guise is not itself.
    auto square = zeros<Tensor<float, data, _>>(mesh, 4, 4);
    auto whole_square = zeros<Tensor<float, _, _>>(mesh, 40, 40);
    CHECK_THROWS_WITH_AS((map_into<float>("ij,ji->ij", DynamicTensor(square), fn::Add{},
                                          DynamicTensor(square), DynamicTensor(odd))),
                         doctest::Contains("letter"), ShapeError);
    const auto turned = [&] {
      map_into<float>("ij,ji->ij", DynamicTensor(whole_square), fn::Add{},
                      DynamicTensor(whole_square), DynamicTensor(whole_square));
    };
    CHECK_THROWS_WITH_AS(turned(), doctest::Contains("shares its memory with operand 2"),
                         UsageError);
    Kokkos::View<float**, Kokkos::LayoutRight> memory("memory", 4, 4);
    auto a = adopt<Tensor<float, _, _>>(mesh, {4, 4}, memory);
    const auto b = adopt<Tensor<float, _, _>>(mesh, {4, 4}, memory);
    CHECK_THROWS_WITH_AS(a += b, doctest::Contains("shares its memory with operand 2"), UsageError);
  });
}

template <class T> void products(const ProcessMesh<Grid>& mesh) {
  for (const Extents& e : {Extents{7, 5}, Extents{1, 1}, Extents{0, 3}, Extents{9, 40}}) {
    const auto x = from_function<Tensor<T, data, model>>(mesh, e, Numbers<T>{1});
    const auto y = from_function<Tensor<T, model, data>>(mesh, e, Numbers<T>{3});
    const HostTensor<T> hx = to_host(x), hy = to_host(y);
    double wanted = 0;
    for (std::size_t i = 0; i < hx.values.size(); ++i) {
      if constexpr (ComplexElement<T>)
        wanted += static_cast<double>((hx.values[i] * hy.values[i]).re);
      else
        wanted += static_cast<double>(hx.values[i]) * static_cast<double>(hy.values[i]);
    }
    T expected;
    if constexpr (IntegerElement<T>)
      expected = static_cast<T>(static_cast<std::int64_t>(wanted));
    else if constexpr (sizeof(T) == 2)
      expected = static_cast<T>(static_cast<float>(wanted));
    else
      expected = detail::from_double<T>(wanted);
    const auto near = [&](T got) {
      if constexpr (sizeof(T) == 2 && !IntegerElement<T>)  // parts are rounded on the way
        return std::fabs(static_cast<float>(got) - static_cast<float>(expected)) <=
               0.02f * static_cast<float>(expected);
      else
        return got == expected;
    };
    const auto same = dot(x, y);
    static_assert(std::is_same_v<decltype(same), const Tensor<T>>);
    CHECK(near(value(same)));
    CHECK(near(value(dot(x, reshard<P<data, model>>(y)))));
    CHECK(near(to_host<T>(dot(DynamicTensor(x), DynamicTensor(y))).values[0]));
  }
}

TEST_CASE("dot is the sum of all products") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    products<float>(mesh);
    products<double>(mesh);
    products<tessera::half>(mesh);
    products<bfloat16>(mesh);
    products<tessera::complex<float>>(mesh);
    products<tessera::complex<double>>(mesh);
    products<std::int8_t>(mesh);
    products<std::int16_t>(mesh);
    products<std::int32_t>(mesh);
    products<std::int64_t>(mesh);
    products<std::uint8_t>(mesh);
    products<std::uint64_t>(mesh);
    const auto v = from_function<Tensor<double, Axes<data, model>>>(mesh, {11}, Small<double>{0});
    double squares = 0;
    for (const double each : to_host(v).values) squares += each * each;
    CHECK(value(dot(v, v)) == squares);
    CHECK(value(dot(zeros<Tensor<double>>(mesh) + 3.0, zeros<Tensor<double>>(mesh) + 2.0)) == 6);
    CHECK_THROWS_AS(dot(v, zeros<Tensor<double, data>>(mesh, 12)), ShapeError);
    CHECK_THROWS_WITH_AS(dot(DynamicTensor(v), DynamicTensor(reshape<P<_, _>>(v, {11, 1}))),
                         doctest::Contains("takes two of equal extents"), ShapeError);
  });
}
}  // namespace
