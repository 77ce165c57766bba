// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
// The float functions that loops vectorise, against double libm, and their edges.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>

#include "kernel/ulps.hpp"

using namespace tessera;
using test::ulps, test::worst;

namespace {
const float infinity = std::numeric_limits<float>::infinity();
const float not_a_number = std::numeric_limits<float>::quiet_NaN();
const float edges[] = {
    0.0f,  -0.0f, 1e-45f, -1e-45f,        1.17549435e-38f, 1e-20f,   0.5f,      -0.5f,       1.0f,
    -1.0f, 2.0f,  -3.0f,  3.40282347e38f, -1e30f,          infinity, -infinity, not_a_number};
}  // namespace

namespace {
/// The number of functions that do not keep the sign of zero.
template <class T, class... F> int other_zeros(F... f) {
  const auto sign = [](T x) { return std::signbit(static_cast<double>(x)); };
  return (0 + ... + (sign(f(T(0.0f))) || !sign(f(T(-0.0f))) || f(T(-0.0f)) != T(0.0f)));
}
}  // namespace

TEST_CASE_TEMPLATE("functions that are odd near zero keep its sign", T, float, double, half,
                   bfloat16) {
  CHECK(other_zeros<T>(fn::Sin{}, fn::Tan{}, fn::Asin{}, fn::Atan{}, fn::Cbrt{}, fn::Tanh{},
                       fn::Sinh{}, fn::Erf{}, fn::Expm1{}, fn::Log1p{}, fn::Gelu{}, fn::GeluTanh{},
                       fn::Silu{}) == 0);
}

namespace {
template <class T> T of_bits(int bits) {
  return std::bit_cast<T>(static_cast<std::uint16_t>(bits));
}
/// Compares f with libm for all numbers of a half type, and its map with f.
template <class T, class F, class G> void check_short(F f, G exact) {
  std::vector<T> x, y(65536);
  for (int bits = 0; bits < 65536; ++bits) x.push_back(of_bits<T>(bits));
  detail::map(f, detail::LocalMap{{65536}, {{1}}}, y.data(), x.data());
  const auto same = [](T a, T b) {
    return std::memcmp(&a, &b, sizeof a) == 0 ||
           (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b)));
  };
  int wrong = 0, other = 0, numbers = 0, not_nearest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T made = f(x[i]);
    other += !same(made, y[i]);
    const double wanted = exact(static_cast<double>(x[i]));
    const T nearest = static_cast<T>(wanted);
    if (std::isnan(wanted)) wrong += !std::isnan(static_cast<float>(made));
    if (std::isnan(wanted)) continue;
    ++numbers;
    if (same(made, nearest)) continue;
    ++not_nearest;
    // Neighbours, of which the other one is nearer, but hardly.
    const double a = static_cast<double>(made), b = static_cast<double>(nearest);
    const bool alike = std::signbit(a) == std::signbit(b) && std::isfinite(a) && std::isfinite(b);
    wrong += !(alike && std::abs(a - wanted) <= 0.52 * std::abs(a - b));
  }
  CHECK(other == 0);
  CHECK(wrong == 0);
  CHECK(not_nearest < numbers / 100);
}
}  // namespace

TEST_CASE_TEMPLATE("functions of half types give the nearest number, or one that is hardly less so",
                   T, half, bfloat16) {
  check_short<T>(fn::Exp{}, [](double x) { return std::exp(x); });
  check_short<T>(fn::Erf{}, [](double x) { return std::erf(x); });
  check_short<T>(fn::Sin{}, [](double x) { return std::sin(x); });
  check_short<T>(fn::Cos{}, [](double x) { return std::cos(x); });
  check_short<T>(fn::Gelu{}, [](double x) {
    return x < -1e9 ? -0.0 : 0.5 * x * std::erfc(-x * std::sqrt(0.5));
  });
  // In rows that are no whole vectors, to every second element.
  const Index rows = 9, columns = 77;
  std::vector<T> x, y(2 * rows * columns, T(7.0f));
  for (Index i = 0; i < rows * columns; ++i)
    x.push_back(static_cast<T>(0.02f * static_cast<float>(i) - 7));
  detail::map(fn::Gelu{},
              {.extents = {rows, columns}, .strides = {{columns, 1}}, .result = {2 * columns, 2}},
              y.data(), x.data());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const T wanted = i % 2 == 0 ? fn::Gelu{}(x[i / 2]) : T(7.0f);
    REQUIRE(y[i].bits() == wanted.bits());
  }
}

namespace {
/// How many elements of a loop of f are not f of the element, bit by bit; NaNs are alike.
template <class T, class F> int other_bits(const std::vector<T>& x, const F& f) {
  std::vector<T> y(x.size());
  detail::map_loop(f, static_cast<Index>(x.size()), y.data(), x.data());
  int other = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T wanted = f(x[i]);
    if (y[i] != y[i] && wanted != wanted) continue;
    other += std::memcmp(&y[i], &wanted, sizeof wanted) != 0;
  }
  return other;
}
/// A function of the caller's, of several others.
struct Several {
  template <class T> T operator()(T x) const {
    return static_cast<T>(fn::Exp{}(x)*fn::Sin{}(x) + x * fn::Gelu{}(x)-fn::Log{}(x * x));
  }
};
}  // namespace

TEST_CASE_TEMPLATE("loops give the bits of calls, of functions that fuse and of the caller's", T,
                   float, double) {
  std::vector<T> x;
  for (const float edge : edges) x.push_back(static_cast<T>(edge));
  for (int i = 0; i < 4000; ++i) x.push_back(static_cast<T>(0.00713 * (i - 1900)));
  for (int i = 0; i < 600; ++i) x.push_back(static_cast<T>(std::pow(1.4, i - 300)));
  CHECK(other_bits(x, fn::Exp{}) == 0);
  CHECK(other_bits(x, fn::Exp2{}) == 0);
  CHECK(other_bits(x, fn::Expm1{}) == 0);
  CHECK(other_bits(x, fn::Log{}) == 0);
  CHECK(other_bits(x, fn::Log1p{}) == 0);
  CHECK(other_bits(x, fn::Log2{}) == 0);
  CHECK(other_bits(x, fn::Log10{}) == 0);
  CHECK(other_bits(x, fn::Sin{}) == 0);
  CHECK(other_bits(x, fn::Cos{}) == 0);
  CHECK(other_bits(x, fn::Tan{}) == 0);
  CHECK(other_bits(x, fn::Asin{}) == 0);
  CHECK(other_bits(x, fn::Acos{}) == 0);
  CHECK(other_bits(x, fn::Atan{}) == 0);
  CHECK(other_bits(x, fn::Cbrt{}) == 0);
  CHECK(other_bits(x, fn::Sinh{}) == 0);
  CHECK(other_bits(x, fn::Cosh{}) == 0);
  CHECK(other_bits(x, fn::Tanh{}) == 0);
  CHECK(other_bits(x, fn::Erf{}) == 0);
  CHECK(other_bits(x, fn::Gelu{}) == 0);
  CHECK(other_bits(x, fn::GeluTanh{}) == 0);
  CHECK(other_bits(x, fn::GeluGradient{}) == 0);
  CHECK(other_bits(x, fn::Sigmoid{}) == 0);
  CHECK(other_bits(x, fn::Silu{}) == 0);
  CHECK(other_bits(x, Several{}) == 0);
  // Products and sums that are written one by one are not fused.
  CHECK(other_bits(x, [](T a) { return a * a + T(0.1) * a; }) == 0);
  CHECK(other_bits(x, [](auto a) { return fn::Tanh{}(a)*fn::Erf{}(a) + fn::Cos{}(a)*a; }) == 0);
}

TEST_CASE("powers of floats") {
  // As elsewhere, a part of the cases but where all are asked for.
  const std::uint64_t step = std::getenv("TESSERA_TEST_CASES") != nullptr ? 1009 : 8009;
  for (const float y : {2.0f, 3.0f, 0.5f, -1.5f, 0.3f, 17.0f, -7.0f, 1e-10f, -1e-30f, 1e5f, 4.1e6f,
                        -4.2e6f, -100.25f, 4194303.5f, 8388607.0f}) {
    CAPTURE(y);
    CHECK(worst([y](float x) { return fn::Pow{}(x, y); },
                [y](double x) { return std::pow(x, static_cast<double>(y)); }, step) <= 1);
  }
  for (const float x : {2.0f, 0.3f, -1.5f, 1.0000001f, -1.0f, 1e-30f}) {
    CAPTURE(x);
    CHECK(worst([x](float y) { return fn::Pow{}(x, y); },
                [x](double y) { return std::pow(static_cast<double>(x), y); }, step) <= 1);
  }
  for (const float x : edges)
    for (const float y : edges) {
      CAPTURE(x);
      CAPTURE(y);
      CHECK(ulps(fn::Pow{}(x, y), std::pow(static_cast<double>(x), static_cast<double>(y))) <= 1);
    }
}

TEST_CASE("a map by the common way is the function of each element, also of rare arguments") {
  std::vector<float> x;
  for (int i = 0; i < 5000; ++i)
    x.push_back(0.003f * static_cast<float>(i) - 5);  // whole tiles are common
  x[600] = 1e30f;
  x[1200] = not_a_number;
  x.insert(x.end(), std::begin(edges), std::end(edges));
  const Index n = static_cast<Index>(x.size());
  std::vector<float> y(x.size());
  const auto check = [&](auto f) {
    detail::map(f, detail::LocalMap{{n}, {{1}}}, y.data(), x.data());
    Index wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float expected = f(x[i]);
      wrong += !(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)));
    }
    CHECK(wrong == 0);
  };
  check(fn::Sin{});
  check(fn::Cos{});
  check(fn::Tan{});
  check(fn::Log2{});
  check(fn::Log10{});
  check(fn::Fixed<fn::Pow, 1, float>{{}, 1.7f});
  check(fn::Fixed<fn::Pow, 0, float>{{}, 1.7f});
  std::vector<float> z(x.rbegin(), x.rend());
  detail::map(fn::Pow{}, detail::LocalMap{{n}, {{1}, {1}}}, y.data(), x.data(), z.data());
  Index wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float expected = fn::Pow{}(x[i], z[i]);
    wrong += !(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)));
  }
  CHECK(wrong == 0);
  detail::map(fn::Sin{}, detail::LocalMap{{n}, {{1}}}, x.data(), x.data());  // onto itself
  CHECK(x[1] == fn::Sin{}(0.003f - 5));
  CHECK(x[600] == fn::Sin{}(1e30f));
}

namespace {
/// How many elements of a map have other bits than f of each; the last ones are no whole vector.
template <class T, class F> Index other_bits(F f) {
  std::vector<T> x;
  for (int i = 0; i < 1021; ++i) x.push_back(static_cast<T>(0.017 * i - 9));
  for (const float edge : edges) x.push_back(static_cast<T>(edge));
  std::vector<T> y(x.size());
  detail::map(f, detail::LocalMap{{static_cast<Index>(x.size())}, {{1}}}, y.data(), x.data());
  Index other = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T expected = f(x[i]);
    other += std::memcmp(&y[i], &expected, sizeof(T)) != 0 && !(y[i] != y[i]);
  }
  return other;
}
template <class T, class... F> void check_bits(F... f) {
  Index at = 0;
  for (const Index other : {other_bits<T>(f)...}) {
    CAPTURE(at++);
    CHECK(other == 0);
  }
}
}  // namespace

TEST_CASE_TEMPLATE("a map by the widest vectors has the bits of the function of each element", T,
                   float, double) {
  check_bits<T>(fn::Exp{}, fn::Expm1{}, fn::Log{}, fn::Log1p{}, fn::Log2{}, fn::Log10{}, fn::Tanh{},
                fn::Sinh{}, fn::Cosh{}, fn::Erf{}, fn::Gelu{}, fn::GeluTanh{}, fn::Sigmoid{},
                fn::Silu{}, fn::Sin{}, fn::Cos{}, fn::Tan{}, fn::Asin{}, fn::Acos{}, fn::Atan{},
                fn::Cbrt{}, fn::Sqrt{}, fn::Rsqrt{}, fn::Floor{}, fn::Round{}, fn::Relu{});
}
