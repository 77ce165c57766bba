// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// Tensors made by rule, typed and dynamic, against NumPy's own numbers and plain loops.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <tessera/tessera.hpp>

#include "support/few_meshes.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

template <class T> bool all_are(const HostTensor<T>& x, T value) {
  for (const auto& element : x.values)
    if (!(static_cast<T>(element) == value)) return false;
  return true;
}

template <class T> void constants(const ProcessMesh<Grid>& mesh) {
  const Sharding split{{0}, {1}};
  for (const Extents& e : {Extents{7, 5}, Extents{1, 1}, Extents{0, 3}, Extents{4, 0}}) {
    const auto one = ones<Tensor<T, data, model>>(mesh, e);
    CHECK(all_are(to_host(one), T(1)));
    CHECK(one.extents() == e);
    CHECK(all_are(to_host(ones<Tensor<T, data, model>>(mesh, e[0], e[1])), T(1)));
    CHECK(all_are(to_host(zeros_like(one)), T{}));
    CHECK(all_are(to_host(ones_like(one)), T(1)));
    CHECK(all_are(to_host(full_like(one, T(1))), T(1)));
    CHECK(empty_like(one).desc() == one.desc());
    CHECK(empty<Tensor<T, data, model>>(mesh, e).desc() == one.desc());
    CHECK(empty<Tensor<T, data, model>>(mesh, e[0], e[1]).desc() == one.desc());
    const DynamicTensor loose = ones<T>(mesh.core(), e, split);
    CHECK(loose.desc() == one.desc());
    CHECK(all_are(to_host<T>(loose), T(1)));
    CHECK(all_are(to_host<T>(zeros_like(loose)), T{}));
    CHECK(all_are(to_host<T>(ones_like(zeros_like(loose))), T(1)));
    CHECK(all_are(to_host<T>(full_like(loose, T(1))), T(1)));
    CHECK(empty_like(loose).desc() == one.desc());
    CHECK(empty<T>(mesh.core(), e, split).desc() == one.desc());
    for (const Index k : {Index{0}, Index{1}, Index{-2}, Index{9}, Index{-9}}) {
      const HostTensor<T> typed = to_host(eye<Tensor<T, data, model>>(mesh, e, k));
      const HostTensor<T> dynamic = to_host<T>(eye<T>(mesh.core(), e, split, k));
      for (Index i = 0; i < e[0]; ++i)
        for (Index j = 0; j < e[1]; ++j) {
          CHECK(typed(i, j) == (j - i == k ? T(1) : T{}));
          CHECK(dynamic(i, j) == typed(i, j));
        }
    }
  }
  CHECK(to_host(eye<Tensor<T, _, data>>(mesh, 5)) ==
        to_host(eye<Tensor<T, model, _>>(mesh, Extents{5, 5})));
}

TEST_CASE("ones, eye, and tensors like others, of every element type") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    constants<float>(mesh);
    constants<double>(mesh);
    constants<tessera::half>(mesh);
    constants<bfloat16>(mesh);
    constants<tessera::complex<float>>(mesh);
    constants<tessera::complex<double>>(mesh);
    constants<std::int8_t>(mesh);
    constants<std::int16_t>(mesh);
    constants<std::int32_t>(mesh);
    constants<std::int64_t>(mesh);
    constants<std::uint8_t>(mesh);
    constants<std::uint16_t>(mesh);
    constants<std::uint32_t>(mesh);
    constants<std::uint64_t>(mesh);
    constants<bool>(mesh);
  });
}

/// The elements are floor(start + i (stop - start) / parts), of which __int128 has every digit.
template <class T>
void one_line(const ProcessMesh<Grid>& mesh, T start, T stop, Index count, bool endpoint) {
  __extension__ using Wide = __int128;
  CAPTURE(start);
  CAPTURE(stop);
  CAPTURE(count);
  const auto line = to_host(linspace<Tensor<T, data>>(mesh, start, stop, count, endpoint));
  const Wide parts = endpoint ? count - 1 : count;
  for (Index i = 0; i < count; ++i) {
    const Wide along = (Wide{stop} - Wide{start}) * i, over = parts > 0 ? along % parts : 0;
    const Wide wanted = Wide{start} + (parts > 0 ? (along - over) / parts - (over < 0) : 0);
    CHECK(line(i) == static_cast<T>(wanted));
  }
}
template <class T> void lines_of(const ProcessMesh<Grid>& mesh) {
  constexpr T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::lowest();
  for (const bool endpoint : {true, false})
    for (const Index count : {1, 2, 3, 7, 50}) {
      one_line<T>(mesh, least, most, count, endpoint);
      one_line<T>(mesh, most, least, count, endpoint);
      one_line<T>(mesh, most, static_cast<T>(most - 9), count, endpoint);
      one_line<T>(mesh, static_cast<T>(least + 9), least, count, endpoint);
      one_line<T>(mesh, 0, 1, count, endpoint);
      if constexpr (sizeof(T) == 8) {
        constexpr T exact = T{1} << 53;  // above, doubles are even
        one_line<T>(mesh, exact - 3, exact + 5, count, endpoint);
        one_line<T>(mesh, exact + 1, 2 * exact + 1, count, endpoint);
      }
    }
}
TEST_CASE("integers on a line are exact to the ends of their types") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    lines_of<std::int8_t>(mesh);
    lines_of<std::uint8_t>(mesh);
    lines_of<std::int64_t>(mesh);
    lines_of<std::uint64_t>(mesh);
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    constexpr std::uint64_t beyond = std::uint64_t{1} << 63;
    CHECK(to_host(arange<Tensor<std::int64_t, data>>(mesh, most - 2, beyond)).values ==
          std::vector<std::int64_t>{most - 2, most - 1, most});
    CHECK(to_host<std::int64_t>(
              arange<std::int64_t>(mesh.core(), Sharding{{0}}, 1 - most, -most - 1, -1))
              .values == std::vector<std::int64_t>{1 - most, -most});
    CHECK(to_host(iota<Tensor<std::int8_t, data>>(mesh, {128}))(127) == 127);
    CHECK_THROWS_WITH_AS((iota<Tensor<std::int8_t, data>>(mesh, {129})),
                         doctest::Contains("128 is no element of int8"), UsageError);
    CHECK_THROWS_WITH_AS(iota<std::uint8_t>(mesh.core(), {2, 257}, Sharding{{0}, {}}, 1),
                         doctest::Contains("256 is no element of uint8"), UsageError);
    CHECK(iota<Tensor<std::int8_t, data, _>>(mesh, {0, 400}, 1).extent(1) == 400);
  });
}

/// The elements are start + i step, as many as NumPy makes.
template <class T, class N>
void one_range(const ProcessMesh<Grid>& mesh, N start, N stop, N step, Index length) {
  const auto typed = arange<Tensor<T, data>>(mesh, start, stop, step);
  CAPTURE(start);
  CAPTURE(stop);
  CAPTURE(step);
  REQUIRE(typed.extent(0) == length);
  const HostTensor<T> all = to_host(typed);
  for (Index i = 0; i < length; ++i)
    CHECK(all(i) == static_cast<T>(static_cast<double>(start) +
                                   static_cast<double>(i) * static_cast<double>(step)));
  CHECK(to_host<T>(arange<T>(mesh.core(), Sharding{{0, 1}}, start, stop, step)) == all);
}

TEST_CASE("arange has as many elements as NumPy's") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    // len(numpy.arange(start, stop, step))
    one_range<double>(mesh, 0.0, 1.0, 0.1, 10);
    one_range<double>(mesh, 1.0, 1.3, 0.1, 4);
    one_range<double>(mesh, 0.0, 0.7, 0.1, 7);
    one_range<float>(mesh, 5.0, 2.0, -0.5, 6);
    one_range<float>(mesh, 5.0, 2.0, 0.5, 0);
    one_range<double>(mesh, 2.0, 2.0, 1.0, 0);
    one_range<tessera::half>(mesh, 0.0, 3.0, 0.75, 4);
    one_range<bfloat16>(mesh, -1.0, 1.5, 1.0, 3);
    one_range<std::int32_t>(mesh, 3, 20, 4, 5);
    one_range<std::int64_t>(mesh, 20, 3, -4, 5);
    one_range<std::int64_t>(mesh, 3, 19, 4, 4);
    one_range<std::int8_t>(mesh, -128, 128, 51, 6);
    one_range<std::uint8_t>(mesh, 0, 256, 255, 2);
    one_range<std::int16_t>(mesh, 4, 4, -1, 0);
    one_range<std::int64_t>(mesh, 4, 5, -1, 0);
    CHECK(to_host(arange<Tensor<float, data>>(mesh, 7)).values ==
          std::vector<float>{0, 1, 2, 3, 4, 5, 6});
    CHECK(arange<std::int32_t>(mesh.core(), Sharding{{0}}, 0).extents()[0] == 0);
    const auto z = to_host(arange<Tensor<tessera::complex<float>, data>>(mesh, 3));
    CHECK(z(2) == tessera::complex<float>(2));
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    const auto ends = to_host(arange<Tensor<std::int64_t, _>>(mesh, -most - 1, most, most));
    CHECK(ends.values == std::vector<std::int64_t>{-most - 1, -1, most - 1});
    // Numbers of uint64 are not all int64, while stops and steps may be negative.
    using Naturals = Tensor<std::uint64_t, data>;
    constexpr std::uint64_t half_way = std::uint64_t{1} << 63, all = ~std::uint64_t{0};
    const auto naturals = [&](auto start, auto stop, auto step) {
      const auto typed = to_host(arange<Naturals>(mesh, start, stop, step)).values;
      CHECK(to_host<std::uint64_t>(
                arange<std::uint64_t>(mesh.core(), Sharding{{1}}, start, stop, step))
                .values == typed);
      return typed;
    };
    using Numbers = std::vector<std::uint64_t>;
    CHECK(naturals(half_way - 1, half_way + 2, 1) == Numbers{half_way - 1, half_way, half_way + 1});
    CHECK(naturals(0, all, all / 2) == Numbers{0, half_way - 1, all - 1});
    CHECK(naturals(0, all, all) == Numbers{0});
    CHECK(naturals(3, -1, -1) == Numbers{3, 2, 1, 0});
    CHECK(naturals(3, -1, -2) == Numbers{3, 1});
    CHECK(naturals(all - 1, -most, -most) == Numbers{all - 1, half_way - 1, 0});
    CHECK(naturals(all, half_way, -most) == Numbers{all});
    CHECK(naturals(5, 5, -1).empty());
    CHECK(naturals(all, 7, 1).empty());
    CHECK(naturals(-7, -9, 1).empty());
    CHECK(to_host(arange<Naturals>(mesh, 3)).values == Numbers{0, 1, 2});
  });
}

TEST_CASE("linspace has NumPy's numbers") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto line = [&](double a, double b, Index n, bool endpoint) {
      const HostTensor<double> typed =
          to_host(linspace<Tensor<double, data>>(mesh, a, b, n, endpoint));
      CHECK(to_host<double>(linspace<double>(mesh.core(), Sharding{{1}}, a, b, n, endpoint)) ==
            typed);
      return typed.values;
    };
    CHECK(line(2, 3, 5, true) == std::vector<double>{2, 2.25, 2.5, 2.75, 3});
    CHECK(line(2, 3, 5, false) == std::vector<double>{2, 2.2, 2.4, 2.6, 2.8});
    CHECK(line(1, 0, 3, true) == std::vector<double>{1, 0.5, 0});
    CHECK(line(4, 9, 1, true) == std::vector<double>{4});
    CHECK(line(4, 9, 1, false) == std::vector<double>{4});
    CHECK(line(4, 9, 0, true).empty());
    CHECK(line(4, 4, 3, true) == std::vector<double>{4, 4, 4});
    CHECK(line(0.1, 0.7, 101, true).back() == 0.7);
    // numpy.linspace(0, 5e-324, 3): the step is no double.
    CHECK(line(0, 5e-324, 3, true) == std::vector<double>{0, 0, 5e-324});
    // numpy.linspace(-3, 4, 5, dtype=int), numpy.linspace(0, 1, 4, dtype=bool) is refused
    CHECK(to_host(linspace<Tensor<std::int32_t, data>>(mesh, -3, 4, 5)).values ==
          std::vector<std::int32_t>{-3, -2, 0, 2, 4});
    CHECK(to_host(linspace<Tensor<std::int8_t, data>>(mesh, -128, 127.9, 3)).values ==
          std::vector<std::int8_t>{-128, -1, 127});
    CHECK(to_host(linspace<Tensor<std::uint64_t, data>>(mesh, 0, 0x1p63, 3)).values ==
          std::vector<std::uint64_t>{0, std::uint64_t{1} << 62, std::uint64_t{1} << 63});
    // Without its end a line may go to a number that is no element.
    CHECK(to_host(linspace<Tensor<std::uint8_t, data>>(mesh, 0, 256, 4, false)).values ==
          std::vector<std::uint8_t>{0, 64, 128, 192});
    CHECK(to_host(linspace<Tensor<std::int8_t, data>>(mesh, 127, -129, 2, false)).values ==
          std::vector<std::int8_t>{127, -1});
    CHECK(to_host(linspace<Tensor<std::uint64_t, data>>(mesh, 0, 0x1p64, 2, false)).values ==
          std::vector<std::uint64_t>{0, std::uint64_t{1} << 63});
    const auto z = to_host(linspace<Tensor<tessera::complex<double>, data>>(
        mesh, tessera::complex<double>(0, 1), tessera::complex<double>(2, -1), 3));
    CHECK(z(0) == tessera::complex<double>(0, 1));
    CHECK(z(1) == tessera::complex<double>(1, 0));
    CHECK(z(2) == tessera::complex<double>(2, -1));
    const auto h = to_host(linspace<Tensor<tessera::half, model>>(mesh, 0, 1, 3));
    CHECK(static_cast<float>(h(1)) == 0.5f);
  });
}

TEST_CASE("sequences that cannot be say so") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using Ints = Tensor<std::int32_t, data>;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(arange<Ints>(mesh, 0, 5, 0), doctest::Contains("at steps of 0"), UsageError);
  CHECK_THROWS_WITH_AS((arange<Tensor<double, data>>(mesh, 0.0, nan)),
                       doctest::Contains("there is no length"), UsageError);
  CHECK_THROWS_WITH_AS((arange<Tensor<double, data>>(mesh, 0.0, 1e300)),
                       doctest::Contains("fewer than 2^63"), UsageError);
  CHECK_THROWS_WITH_AS((arange<Tensor<std::int8_t, data>>(mesh, 0, 300)),
                       doctest::Contains("299, which int8 cannot hold"), UsageError);
  CHECK_THROWS_WITH_AS((arange<std::uint8_t>(mesh.core(), Sharding{{0}}, -1, 3)),
                       doctest::Contains("-1, which uint8 cannot hold"), UsageError);
  using Naturals = Tensor<std::uint64_t, data>;
  CHECK_THROWS_WITH_AS(arange<Naturals>(mesh, -1, 3),
                       doctest::Contains("-1, which uint64 cannot hold"), UsageError);
  CHECK_THROWS_WITH_AS(arange<Naturals>(mesh, 3, -2, -1),
                       doctest::Contains("-1, which uint64 cannot hold"), UsageError);
  CHECK_THROWS_WITH_AS(arange<Naturals>(mesh, 4, -9, -7),
                       doctest::Contains("-3, which uint64 cannot hold"), UsageError);
  CHECK_THROWS_WITH_AS(arange<Naturals>(mesh, std::numeric_limits<std::uint64_t>::max()),
                       doctest::Contains("fewer than 2^63"), UsageError);
  CHECK_THROWS_WITH_AS(linspace<Naturals>(mesh, 0, 0x1p64, 3),
                       doctest::Contains("which uint64 cannot hold"), UsageError);
  CHECK_THROWS_WITH_AS(arange<Ints>(mesh, std::numeric_limits<std::uint64_t>::max()),
                       doctest::Contains("fewer than 2^63"), UsageError);
  CHECK_THROWS_WITH_AS(linspace<Ints>(mesh, 0, 1, -1), doctest::Contains("the count is -1"),
                       UsageError);
  CHECK_THROWS_WITH_AS((linspace<Tensor<std::int8_t, data>>(mesh, 0, 128, 3)),
                       doctest::Contains("which int8 cannot hold"), UsageError);
  CHECK_THROWS_WITH_AS((linspace<Tensor<std::int8_t, data>>(mesh, 0, 257, 2, false)),
                       doctest::Contains("128, which int8 cannot hold"), UsageError);
  CHECK_THROWS_WITH_AS(eye<float>(mesh.core(), {3}, Sharding{{0}}),
                       doctest::Contains("give two extents"), ShapeError);
  const DynamicTensor x = zeros<std::int32_t>(mesh.core(), {3}, Sharding{{0}});
  CHECK_THROWS_WITH_AS((void)full_like(x, 0.5), doctest::Contains("full_like: a value of type"),
                       UsageError);
  CHECK_THROWS_AS((void)zeros_like(DynamicTensor()), UsageError);
  CHECK_THROWS_AS(zeros_like(Ints()), UsageError);
  const auto open = reduce<Sum, "ij->i", P<data, Unreduced<Sum, model>>>(
      zeros<Tensor<float, data, model>>(mesh, 4, 4));
  CHECK_THROWS_WITH_AS((void)zeros_like(DynamicTensor(open)),
                       doctest::Contains("a tensor is made finished"), ShardingError);
}
}  // namespace
