// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// Numbers beside tensors of integers: what every operator makes of one that is no element.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/few_meshes.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

template <class T> std::vector<T> around_its_ends() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all{Limits::lowest(),
                     static_cast<T>(Limits::lowest() + 1),
                     0,
                     1,
                     2,
                     static_cast<T>(Limits::max() - 1),
                     Limits::max()};
  if constexpr (sizeof(T) == 8)
    for (int i = -1; i < 2; ++i) all.push_back(static_cast<T>((T{1} << 53) + i));
  return all;
}
template <class S> std::vector<S> numbers() {
  if constexpr (std::is_integral_v<S>) {
    std::vector<S> all = around_its_ends<S>();
    for (const int n : {3, 100, 127, 128, 200, 255, 256, 257}) all.push_back(static_cast<S>(n));
    if constexpr (std::is_signed_v<S>)
      for (const int n : {-1, -2, -128, -129, -300}) all.push_back(static_cast<S>(n));
    return all;
  } else {
    std::vector<S> all{0,     S(-0.0), S(0.5),   S(-0.5),  1,
                       S(-1), S(1.5),  S(126.5), S(127.5), S(-128.5)};
    for (const S size : {S(127), S(128), S(255), S(256), S(0x1p31), S(0x1p32), S(0x1p53), S(0x1p63),
                         S(0x1p64), S(1e30), std::numeric_limits<S>::infinity()})
      for (const S toward : {S(0), size, std::numeric_limits<S>::infinity()})
        for (const S n : {std::nextafter(size, toward), size}) {
          all.push_back(n);
          all.push_back(-n);
        }
    all.push_back(std::numeric_limits<S>::quiet_NaN());
    return all;
  }
}
/// Every element and number is a long double, which compares them exactly.
template <class F, class Exact, class T, class S> void compare(const Exact& exact) {
  const detail::CallSite site{"comparison", Where::here()};
  bool same = true;
  for (const S s : numbers<S>()) {
    const auto right = detail::beside<F, 1, T>(F{}, s, site);
    const auto left = detail::beside<F, 0, T>(F{}, s, site);
    for (const T x : around_its_ends<T>()) {
      const auto a = static_cast<long double>(x), b = static_cast<long double>(s);
      const bool held = right(x) == exact(a, b) && left(x) == exact(b, a);
      same = same && held;
      if (!held) MESSAGE(detail::type_name<F>() << " of " << a << " and " << b);
    }
  }
  CHECK(same);
}
template <class F, class Exact, class T> void compare_with_all() {
  compare<F, Exact, T, int>({});
  compare<F, Exact, T, std::int64_t>({});
  compare<F, Exact, T, std::uint64_t>({});
  compare<F, Exact, T, float>({});
  compare<F, Exact, T, double>({});
  compare<F, Exact, T, long double>({});
}
template <class F, class Exact> void compare_all() {
  compare_with_all<F, Exact, std::int8_t>();
  compare_with_all<F, Exact, std::uint8_t>();
  compare_with_all<F, Exact, std::int32_t>();
  compare_with_all<F, Exact, std::int64_t>();
  compare_with_all<F, Exact, std::uint64_t>();
}

TEST_CASE("integers compare exactly with every number") {
  compare_all<fn::Equal, std::equal_to<long double>>();
  compare_all<fn::NotEqual, std::not_equal_to<long double>>();
  compare_all<fn::Less, std::less<long double>>();
  compare_all<fn::LessEqual, std::less_equal<long double>>();
  compare_all<fn::Greater, std::greater<long double>>();
  compare_all<fn::GreaterEqual, std::greater_equal<long double>>();
}

using Bytes = Tensor<std::int8_t, data>;
using Naturals = Tensor<std::uint8_t, data>;
const std::vector<std::int8_t> some{100, -100, 1};
const std::vector<std::uint8_t> few{3, 200, 0};

/// Both surfaces give the values.
template <class T, class F, class X>
void gives(const X& x, const std::vector<T>& wanted, const F& f) {
  using Kept = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
  const std::vector<Kept> all(wanted.begin(), wanted.end());
  CHECK(to_host(f(x)).values == all);
  CHECK(to_host<T>(f(DynamicTensor(x))).values == all);
}
/// Both surfaces refuse the number, and say so.
template <class F, class X> void refuses(const X& x, const char* text, const F& f) {
  CHECK_THROWS_WITH_AS(f(x), doctest::Contains(text), UsageError);
  CHECK_THROWS_WITH_AS(f(DynamicTensor(x)), doctest::Contains(text), UsageError);
}

TEST_CASE("a number that is no element has the answer of mathematics, or is refused") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const auto x = from_host<Bytes>(mesh, {3}, some);
    const auto u = from_host<Naturals>(mesh, {3}, few);
    gives<bool>(x, {false, false, false}, [](const auto& a) { return a > 200; });
    gives<bool>(x, {true, true, true}, [](const auto& a) { return 200 >= a; });
    gives<bool>(u, {true, true, true}, [](const auto& a) { return a > -1; });
    gives<bool>(x, {true, false, true}, [](const auto& a) { return a > 0.5; });
    gives<bool>(x, {true, true, true}, [](const auto& a) { return not_equal(a, 1.5f); });
    gives<bool>(u, {false, false, false}, [](const auto& a) { return less(a, std::nan("")); });
    gives<std::int8_t>(x, some, [](const auto& a) { return clamp(a, -300, 300); });
    gives<std::int8_t>(x, {5, 5, 5}, [](const auto& a) { return clamp(a, 300, 5); });
    gives<std::uint8_t>(u, {3, 7, 0}, [](const auto& a) { return clamp(a, -1, 7); });
    gives<std::uint8_t>(u, few, [](const auto& a) { return maximum(a, -1); });
    gives<std::int8_t>(x, some, [](const auto& a) { return minimum(1000, a); });

    const char* const big = "300 is no element of int8, which holds -128 to 127";
    const char* const negative = "-1 is no element of uint8, which holds 0 to 255";
    refuses(x, big, [](const auto& a) { return clamp(a, 300, 400); });
    refuses(u, negative, [](const auto& a) { return clamp(a, 3, -1); });
    refuses(x, big, [](const auto& a) { return maximum(a, 300); });
    refuses(u, negative, [](const auto& a) { return minimum(a, -1); });
    refuses(x, big, [](const auto& a) { return a + 300; });
    refuses(x, big, [](const auto& a) { return 300 - a; });
    refuses(x, big, [](const auto& a) { return a * 300u; });
    refuses(x, big, [](const auto& a) { return a / 300l; });
    refuses(x, big, [](const auto& a) { return remainder(a, 300); });
    refuses(x, big, [](const auto& a) { return where(a > 0, a, 300); });
    refuses(u, negative, [](const auto& a) { return where(a > 0, -1, a); });
    refuses(u, negative, [](const auto& a) { return bitwise_and(a, -1); });
    refuses(x, big, [](const auto& a) { return full_like(a, 300); });
    refuses(x, "18446744073709551615 is no element of int8",
            [](const auto& a) { return a + std::numeric_limits<std::uint64_t>::max(); });
    const auto into = [](auto a) { a *= 257; };
    refuses(x, "257 is no element of int8", into);
    refuses(x, big, [](auto a) { axpy(300, a, a); });
    CHECK(to_host(x).values == some);
    const DynamicTensor d(x), e(u);
    CHECK_THROWS_WITH_AS((pad(x, {1}, {1}, {}, 300)), doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS(pad(d, {1}, {1}, {}, 300), doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS(shift<0>(u, 1, -1), doctest::Contains(negative), UsageError);
    CHECK_THROWS_WITH_AS(shift(e, 1, 0, -1), doctest::Contains(negative), UsageError);
    CHECK_THROWS_WITH_AS(full<Bytes>(mesh, {3}, 300), doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS(full<std::int8_t>(mesh.core(), {3}, Sharding{{0}}, 300),
                         doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS((halo_exchange<0>(x, 1, 1, Boundary::constant, 300)),
                         doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS((halo_exchange<std::int8_t>(d, {{1, 1, Boundary::constant}}, 300)),
                         doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS((associative_scan<"i", 'i'>(fn::Add{}, 300, x)), doctest::Contains(big),
                         UsageError);
    CHECK_THROWS_WITH_AS(associative_scan<std::int8_t>("i", 'i', fn::Add{}, 300, d),
                         doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS((make_halo<Bytes, 0>(mesh, {3}, 1, 1, Boundary::constant, 300)),
                         doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS(random_uniform<Bytes>(mesh, {3}, 1, -1, 128),
                         doctest::Contains("no distribution of int8 from -1.000000 to 128"),
                         UsageError);
    CHECK_THROWS_WITH_AS(random_uniform<std::uint8_t>(mesh.core(), {3}, Sharding{{0}}, 1, 0.2, 0.8),
                         doctest::Contains("no distribution of uint8"), UsageError);

    auto m = full<Tensor<std::int8_t, data, _>>(mesh, {2, 2}, 3);
    const auto whole = full<Tensor<std::int8_t, _, _>>(mesh, {2, 2}, 1);
    CHECK_THROWS_WITH_AS((einsum_into<"ik,kj->ij">(m, whole, whole, 300, 0)),
                         doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS(
        (einsum_into<std::int8_t>("ik,kj->ij", DynamicTensor(m), DynamicTensor(whole),
                                  DynamicTensor(whole), 1, 300)),
        doctest::Contains(big), UsageError);
    CHECK_THROWS_WITH_AS((einsum<"ik,kj->ij">(whole, whole, epilogue().scale(300))),
                         doctest::Contains(big), UsageError);
    CHECK(to_host(m).values == std::vector<std::int8_t>(4, 3));

    // In a compiled function as outside, at its first call and at a later one.
    int number = 2;
    auto f = compile([&](const Bytes& a) { return where(a > 2 * number, a + number, a); });
    CHECK(to_host(f(x)).values == std::vector<std::int8_t>{102, -100, 1});
    number = 300;
    CHECK_THROWS_WITH_AS(f(x), doctest::Contains(big), UsageError);
    auto g = compile([](const Bytes& a) { return a + 300; });
    CHECK_THROWS_WITH_AS(g(x), doctest::Contains(big), UsageError);
  });
}

TEST_CASE("real and complex elements take the nearest number of their type") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const std::vector<half> ones{half(1.f), half(2.f)};
    const auto h = from_host<Tensor<half, data>>(mesh, {2}, ones);
    CHECK(std::isinf(static_cast<float>(to_host(h + 70000)(0))));
    CHECK(static_cast<float>(to_host(h * 0.1)(1)) == static_cast<float>(half(0.1)) * 2);
    gives<bool>(h, {true, false}, [](const auto& a) { return a < 1.5; });
  });
}
}  // namespace
