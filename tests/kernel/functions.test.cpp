// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>

#include "kernel/ulps.hpp"
#include "support/larger.hpp"

using namespace tessera;
using test::worst;

namespace {
const float infinity = std::numeric_limits<float>::infinity();
const float not_a_number = std::numeric_limits<float>::quiet_NaN();
const float least = std::numeric_limits<float>::denorm_min();

/// Returns the error in units in the last place of the nearest double.
double ulps(double value, long double exact) {
  const double nearest = static_cast<double>(exact);
  if (std::isnan(nearest)) return std::isnan(value) ? 0.0 : 1e9;
  if (std::isinf(nearest) || std::isinf(value)) return value == nearest ? 0.0 : 1e9;
  if (nearest == 0 && std::signbit(value) != std::signbit(nearest)) return 1e9;
  int exponent = 0;
  std::frexp(nearest, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent, -1021) - 53);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / unit);
}
}  // namespace

TEST_CASE("fast double functions against libm's long double, and their edges") {
  double of_exp = 0, of_tanh = 0, of_log = 0, of_erf = 0, of_expm1 = 0, of_log1p = 0, of_exp2 = 0;
  const auto at = [&](double x) {
    const auto wide = static_cast<long double>(x);
    of_exp = support::larger(of_exp, ulps(fn::Exp{}(x), std::exp(wide)));
    of_tanh = support::larger(of_tanh, ulps(fn::Tanh{}(x), std::tanh(wide)));
    of_log = support::larger(of_log, ulps(fn::Log{}(x), std::log(wide)));
    of_erf = support::larger(of_erf, ulps(fn::Erf{}(x), std::erf(wide)));
    of_expm1 = support::larger(of_expm1, ulps(fn::Expm1{}(x), std::expm1(wide)));
    of_log1p = support::larger(of_log1p, ulps(fn::Log1p{}(x), std::log1p(wide)));
    of_exp2 = support::larger(of_exp2, ulps(fn::Exp2{}(x), std::exp2(wide)));
  };
  for (int i = -760000; i <= 760000; ++i) at(0.001 * i + 1e-7 * (i % 97));
  for (int i = 0; i < 400000; ++i) at((i % 2 == 0 ? 1 : -1) * std::exp2(-0.0027 * i));
  for (int i = 0; i < 400000; ++i) at(std::exp2(0.00255 * i));
  for (int i = -400000; i < 500000; ++i) at(1 + 1e-6 * i + 1e-11 * (i % 97));
  for (int i = -310000; i < 310000; ++i) at(2e-5 * i + 1e-9 * (i % 97));
  const double far = std::numeric_limits<double>::infinity();
  for (const double x : {0.0, 1.0, 709.78, 709.79, 745.1, 745.14, 1023.9, 1024.0, 1074.9, 1075.1,
                         1e4, 1e300, far, 5e-324})
    for (const double sign : {1.0, -1.0}) at(sign * x);
  at(std::numeric_limits<double>::quiet_NaN());
  MESSAGE("largest errors in ulp: exp " << of_exp << ", tanh " << of_tanh << ", log " << of_log
                                        << ", erf " << of_erf << ", expm1 " << of_expm1
                                        << ", log1p " << of_log1p << ", exp2 " << of_exp2);
  CHECK(of_erf <= 2);
  CHECK(of_expm1 <= 3);
  CHECK(of_log1p <= 2);
  CHECK(of_exp <= 1.5);
  CHECK(of_exp2 <= 1.5);
  CHECK(of_tanh <= 3);
  CHECK(of_log <= 1);
}

TEST_CASE("log2 and log10 of doubles, exact at powers of 2 and of 10") {
  double of_log2 = 0, of_log10 = 0;
  const auto at = [&](double x) {
    const auto wide = static_cast<long double>(x);
    of_log2 = support::larger(of_log2, ulps(fn::Log2{}(x), std::log2(wide)));
    of_log10 = support::larger(of_log10, ulps(fn::Log10{}(x), std::log10(wide)));
  };
  for (int i = 1; i <= 400000; ++i) at(1.3e-4 * i + 1e-9 * (i % 97));
  for (int i = -450000; i <= 450000; ++i) at(1 + 1e-6 * i + 1e-11 * (i % 97));
  for (int i = 0; i <= 400000; ++i) at(std::exp2(-0.00268 * i));
  for (int i = 0; i <= 400000; ++i) at(std::exp2(0.00255 * i));
  for (int i = 0; i < 200000; ++i) at(1 + (i % 2 == 0 ? 1 : -1) * std::exp2(-0.00026 * i));
  const double far = std::numeric_limits<double>::infinity();
  for (const double x : {0.0, 1.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, far})
    for (const double sign : {1.0, -1.0}) at(sign * x);
  at(std::numeric_limits<double>::quiet_NaN());
  int other = 0;
  for (int i = -1074; i <= 1023; ++i) other += fn::Log2{}(std::ldexp(1.0, i)) != i;
  double power = 1;
  for (int i = 0; i <= 22; ++i, power *= 10) other += fn::Log10{}(power) != i;
  CHECK(other == 0);
  MESSAGE("largest errors in ulp: log2 " << of_log2 << ", log10 " << of_log10);
  CHECK(of_log2 <= 1);
  CHECK(of_log10 <= 1);
}

TEST_CASE("sinh and cosh of doubles, up to where they overflow") {
  double of_sinh = 0, of_cosh = 0;
  const auto at = [&](double x) {
    const auto wide = static_cast<long double>(x);
    of_sinh = support::larger(of_sinh, ulps(fn::Sinh{}(x), std::sinh(wide)));
    of_cosh = support::larger(of_cosh, ulps(fn::Cosh{}(x), std::cosh(wide)));
  };
  for (int i = -720000; i <= 720000; ++i) at(0.001 * i + 1e-7 * (i % 97));
  for (int i = -400000; i <= 400000; ++i) at(1e-5 * i + 1e-10 * (i % 97));
  for (int i = 0; i <= 400000; ++i) at((i % 2 == 0 ? 1 : -1) * std::exp2(-0.0027 * i));
  for (int i = -50000; i <= 50000; ++i) at(1 + 1e-9 * i);
  for (int i = 0; i <= 200000; ++i) at(709.7 + 4e-6 * i);
  const double far = std::numeric_limits<double>::infinity();
  for (const double x :
       {0.0, 5e-324, 1e-308, 709.78, 709.79, 710.47586007394, 710.475860073944, 1e4, 1e300, far})
    for (const double sign : {1.0, -1.0}) at(sign * x);
  at(std::numeric_limits<double>::quiet_NaN());
  CHECK(fn::Sinh{}(710.4758600739439) < far);
  CHECK(fn::Cosh{}(-710.4758600739439) < far);
  CHECK(fn::Sinh{}(std::nextafter(710.4758600739439, far)) == far);
  CHECK(fn::Cosh{}(std::nextafter(710.4758600739439, far)) == far);
  MESSAGE("largest errors in ulp: sinh " << of_sinh << ", cosh " << of_cosh);
  CHECK(of_sinh <= 1.5);
  CHECK(of_cosh <= 1.5);
}

namespace {
double ulps_of(float value, long double exact) {
  return test::ulps(value, static_cast<double>(exact));
}
double ulps_of(double value, long double exact) { return ulps(value, exact); }

/// Pairs of bases and exponents, and their powers by a map.
template <class T> struct Powers {
  std::vector<T> x, y;
  void add(double base, double exponent) {
    x.push_back(static_cast<T>(base));
    y.push_back(static_cast<T>(exponent));
  }
  /// Returns the largest error; a map and fn::Pow have the same bits.
  double most_error() const {
    std::vector<T> z(x.size());
    const auto n = static_cast<Index>(x.size());
    detail::map(fn::Pow{}, detail::LocalMap{{n}, {{1}, {1}}}, z.data(), x.data(), y.data());
    double most = 0;
    int other = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto exact = std::pow(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
      const double error = ulps_of(z[i], exact);
      const T one = fn::Pow{}(x[i], y[i]);
      if (error > 1) MESSAGE(x[i] << " to the power of " << y[i] << " is not " << z[i]);
      most = support::larger(most, error);
      other += std::memcmp(&z[i], &one, sizeof one) != 0 && !(one != one && z[i] != z[i]);
    }
    CHECK(other == 0);
    return most;
  }
};
}  // namespace

TEST_CASE_TEMPLATE("powers, in all of their range and near its ends", T, float, double) {
  using Limits = std::numeric_limits<T>;
  constexpr bool single = sizeof(T) == sizeof(float);
  const double range = single ? 87 : 708, last = single ? 88.72 : 709.78;
  const double first_normal = single ? -87.3 : -708.4, first = single ? -103.9 : -745.1;
  const double longer = single ? 1 : 0x1p20;
  Powers<T> usual, wide, near_one, ends, negative, edges;
  for (int i = -150000; i < 150001; ++i) {
    const double a = std::sin(0.7 * i), b = std::sin(1.3 * i + 1), c = std::abs(std::cos(0.37 * i));
    usual.add(std::exp(4 * a), 5 * b);
    wide.add(std::exp(range * a), 1.05 * range * b / (1 + std::abs(range * a)));
    near_one.add(1 + 0.4 * a / longer / std::exp2(c), range * b * std::exp2(c) * longer);
    const double end = i % 3 == 0 ? last : i % 3 == 1 ? first_normal : first;
    // Infinite and denormal results, by exponents from 1 to 128
    const double exponent = (i % 2 == 0 ? 1.0 : -1.0) * std::exp2(7.0 * c);
    ends.add(std::exp((end + 0.7 * b) / exponent), exponent);
    negative.add(i % 7 == 0 ? -0.0 : -std::exp(5 * a), i % 50 + (i % 11 == 0 ? 0.5 : 0));
  }
  const T tiny = Limits::denorm_min(), normal = Limits::min(), most = Limits::max();
  const T step = Limits::epsilon(), whole = static_cast<T>(2) / step;  // from there on all are even
  std::vector<double> all, numbers = {0, 1e-17, 0.1, 0.5, 1, 1.5, 2, 3, 126, 127.5, 149, 150, 1e17};
  for (const double about : {88, 104, 128, 710, 746, 1023, 1075, 4096, 67108864})
    numbers.insert(numbers.end(), {about - 1, about, about + 0.5});
  for (const T number :
       {tiny, normal - tiny, normal, 1 - step / 2, 1 + step, whole / 4 - T(0.5), whole / 2 - 1,
        whole / 2 + 1, whole, most, Limits::infinity(), Limits::quiet_NaN()})
    numbers.push_back(static_cast<double>(number));
  for (const double number : numbers) all.insert(all.end(), {number, -number});
  // In rows of their own, so that a rare argument does not hide what the common way makes of
  // others.
  double of_edges = 0;
  for (const double base : all)
    for (const double exponent : all) {
      Powers<T> one;
      one.add(base, exponent);
      of_edges = support::larger(of_edges, one.most_error());
      edges.add(base, exponent);
    }
  const double errors[] = {usual.most_error(),   wide.most_error(), near_one.most_error(),
                           ends.most_error(),    of_edges,          edges.most_error(),
                           negative.most_error()};
  MESSAGE("largest errors of pow in ulp: usual " << errors[0] << ", wide " << errors[1]
                                                 << ", near 1 " << errors[2] << ", at the ends "
                                                 << errors[3] << ", negative " << errors[6]);
  for (const double error : errors) CHECK(error <= 1);
}

TEST_CASE_TEMPLATE("powers with one number have the bits of powers of two operands", T, float,
                   double, half, bfloat16) {
  const auto n = Index{1021};  // no whole vectors, nor tiles
  std::vector<T> x, y(1021), z(1021);
  for (int i = 0; i < 1021; ++i) x.push_back(static_cast<T>(0.01 * (i + 1)));
  const auto check = [&] {
    for (const double number : {2.0, 3.0, -1.0, 0.5, 1.7, -40.3, 300.0}) {
      const std::vector<T> same(1021, static_cast<T>(number));
      const auto by = [&](auto f, const std::vector<T>& left, const std::vector<T>& right) {
        detail::map(f, detail::LocalMap{{n}, {{1}}}, y.data(), x.data());
        detail::map(fn::Pow{}, detail::LocalMap{{n}, {{1}, {1}}}, z.data(), left.data(),
                    right.data());
        CHECK(std::memcmp(y.data(), z.data(), 1021 * sizeof(T)) == 0);
      };
      by(fn::Fixed<fn::Pow, 1, T>{{}, same[0]}, x, same);
      if (same[0] > T(0.0f)) by(fn::Fixed<fn::Pow, 0, T>{{}, same[0]}, same, x);
    }
  };
  check();
  for (int i = 0; i < 1021; i += 100) x[static_cast<std::size_t>(i)] = T(0.0f);  // not simple
  check();
}

TEST_CASE("sizes of complex numbers, also where squares overflow or vanish") {
  double of_float = 0, of_double = 0;
  const auto at = [&](double x, double y) {
    const auto wide = std::hypot(static_cast<long double>(x), static_cast<long double>(y));
    of_double = support::larger(of_double, ulps(fn::Abs{}(complex<double>(x, y)), wide));
    const float a = static_cast<float>(x), b = static_cast<float>(y);
    of_float = support::larger(
        of_float, test::ulps(fn::Abs{}(complex<float>(a, b)),
                             std::hypot(static_cast<double>(a), static_cast<double>(b))));
  };
  for (int i = -1074; i <= 1023; i += 3)
    for (int k = -70; k <= 70; k += 7)
      at(std::ldexp(1.0 + 0.37 * (i & 1), i), -std::ldexp(1.234567890123, i + k));
  for (int i = 0; i < 200000; ++i) at(std::sin(0.7 * i), std::cos(1.3 * i) * (1 + i % 7));
  const double far = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double x : {0.0, -0.0, 1.0, 5e-324, 1.7e308, -1.3e308, 3.4e38, 1e-45, far, -far, nan})
    for (const double y : {0.0, -0.0, 1.0, 5e-324, 1.7e308, 1.1e-308, 3.4e38, 1e-40, far, nan})
      at(x, y);
  MESSAGE("largest errors in ulp: float " << of_float << ", double " << of_double);
  CHECK(of_float <= 1.5);
  CHECK(of_double <= 1.5);
}

TEST_CASE(
    "sin, cos and tan of doubles, near multiples of pi/2 too, where almost all digits cancel") {
  double of_sin = 0, of_cos = 0, of_tan = 0;
  const auto at = [&](double x) {
    const auto wide = static_cast<long double>(x);
    of_sin = support::larger(of_sin, ulps(fn::Sin{}(x), std::sin(wide)));
    of_cos = support::larger(of_cos, ulps(fn::Cos{}(x), std::cos(wide)));
    of_tan = support::larger(of_tan, ulps(fn::Tan{}(x), std::tan(wide)));
  };
  for (int i = -500000; i <= 500000; ++i) at(2e-5 * i + 1e-9 * (i % 97));
  for (int i = -500000; i <= 500000; ++i) at(1.05 * i + 1e-6 * (i % 89));
  for (int i = 0; i < 400000; ++i) at((i % 2 == 0 ? 1 : -1) * std::exp2(-0.0027 * i));
  for (int i = -340000; i <= 340000; ++i) {  // beyond common_angle too
    const double x = 1.57079632679489661923 * i;
    for (const double near : {x, std::nextafter(x, 1e9), std::nextafter(x, -1e9)}) at(near);
  }
  const double far = std::numeric_limits<double>::infinity();
  for (const double x : {0.0, 5e-324, 1e-308, 524287.9, 524288.0, 524288.1, 1e22, 1.7e308, far})
    for (const double sign : {1.0, -1.0}) at(sign * x);
  at(std::numeric_limits<double>::quiet_NaN());
  MESSAGE("largest errors in ulp: sin " << of_sin << ", cos " << of_cos << ", tan " << of_tan);
  CHECK(of_sin <= 1);
  CHECK(of_cos <= 1);
  CHECK(of_tan <= 1.5);
}

TEST_CASE("asin, acos and atan of doubles") {
  double of_asin = 0, of_acos = 0, of_atan = 0;
  const auto at = [&](double x) {
    const auto wide = static_cast<long double>(x);
    of_asin = support::larger(of_asin, ulps(fn::Asin{}(x), std::asin(wide)));
    of_acos = support::larger(of_acos, ulps(fn::Acos{}(x), std::acos(wide)));
    of_atan = support::larger(of_atan, ulps(fn::Atan{}(x), std::atan(wide)));
  };
  for (int i = -500000; i <= 500000; ++i) at(2e-6 * i + 1e-11 * (i % 97));
  for (int i = -400000; i <= 400000; ++i) at(1.2e-5 * i + 1e-10 * (i % 89));
  for (int i = 0; i <= 400000; ++i) at((i % 2 == 0 ? 1 : -1) * std::exp2(-0.0027 * i));
  for (int i = 0; i <= 200000; ++i) at((i % 2 == 0 ? 1 : -1) * std::exp2(0.0051 * i));
  for (int i = 0; i <= 200000; ++i) at((i % 2 == 0 ? 1 : -1) * (1 - std::exp2(-0.00026 * i)));
  const double far = std::numeric_limits<double>::infinity();
  for (const double about : {0.0, 0.5, 1.0, 2.0, 0x1p100, 1e300, far})
    for (const double x : {about, std::nextafter(about, 0.0), std::nextafter(about, far)})
      for (const double sign : {1.0, -1.0}) at(sign * x);
  at(std::numeric_limits<double>::quiet_NaN());
  MESSAGE("largest errors in ulp: asin " << of_asin << ", acos " << of_acos << ", atan "
                                         << of_atan);
  CHECK(of_asin <= 1);
  CHECK(of_acos <= 1);
  CHECK(of_atan <= 1);
}

TEST_CASE("cbrt of doubles, exact at cubes where products and sums are fused") {
  double of_cbrt = 0;
  int other = 0;
  const auto at = [&](double x) {
    of_cbrt = support::larger(of_cbrt, ulps(fn::Cbrt{}(x), std::cbrt(static_cast<long double>(x))));
  };
  for (int i = -400000; i <= 400000; ++i) at(2e-5 * i + 1e-10 * (i % 97));
  for (int i = -420000; i <= 400000; ++i) at((i % 2 == 0 ? 1 : -1) * std::exp2(0.00255 * i));
  for (int i = 0; i < 100000; ++i) other += fn::Cbrt{}(static_cast<double>(i) * i * i) != i;
  const double far = std::numeric_limits<double>::infinity();
  for (const double x :
       {0.0, 5e-324, 2.2250738585072014e-308, 0x1p-900, 0x1p900, 1.7976931348623157e308, far})
    for (const double sign : {1.0, -1.0}) at(sign * x);
  at(std::numeric_limits<double>::quiet_NaN());
  MESSAGE("largest error of cbrt in ulp: " << of_cbrt);
#if defined(TESSERA_FUSED)
  constexpr bool by_hand = true;
#else
  constexpr bool by_hand = false;
#endif
  CHECK(of_cbrt <= (by_hand ? 1 : 4));
  CHECK((other == 0 || !by_hand));
}

TEST_CASE("the edges of the float functions") {
  CHECK(fn::Exp{}(infinity) == infinity);
  CHECK(fn::Exp{}(-infinity) == 0.0f);
  CHECK(std::isnan(fn::Exp{}(not_a_number)));
  CHECK(fn::Exp{}(0.0f) == 1.0f);
  CHECK(fn::Exp{}(88.722f) < infinity);
  CHECK(fn::Exp{}(88.723f + 0.01f) == infinity);
  CHECK(fn::Exp{}(-103.0f) == least);
  CHECK(fn::Exp{}(-87.5f) > 0.0f);
  CHECK(fn::Tanh{}(infinity) == 1.0f);
  CHECK(fn::Tanh{}(-infinity) == -1.0f);
  CHECK(fn::Tanh{}(least) == least);
  CHECK(std::signbit(fn::Tanh{}(-0.0f)));
  CHECK(std::isnan(fn::Tanh{}(not_a_number)));
  CHECK(fn::Erf{}(infinity) == 1.0f);
  CHECK(fn::Erf{}(-4.0f) == -1.0f);
  CHECK(std::signbit(fn::Erf{}(-0.0f)));
  CHECK(std::isnan(fn::Erf{}(not_a_number)));
  CHECK(fn::Log{}(infinity) == infinity);
  CHECK(fn::Log{}(0.0f) == -infinity);
  CHECK(fn::Log{}(-0.0f) == -infinity);
  CHECK(fn::Log{}(1.0f) == 0.0f);
  CHECK(std::isnan(fn::Log{}(-1.0f)));
  CHECK(std::isnan(fn::Log{}(not_a_number)));
}

TEST_CASE("compound functions follow their formulas") {
  for (double x = -12; x <= 12; x += 0.037) {
    const double phi = 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    const double gelu = x * phi;
    const double slope = phi + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    const double by_tanh =
        0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    CHECK(std::abs(fn::Gelu{}(x)-gelu) <= 1e-15 * (1 + std::abs(x)));
    CHECK(std::abs(fn::GeluGradient{}(x)-slope) <= 2e-15);
    CHECK(std::abs(fn::GeluTanh{}(x)-by_tanh) <= 1e-15 * (1 + std::abs(x)));
    const float f = static_cast<float>(x);
    CHECK(std::abs(static_cast<double>(fn::Gelu{}(f)) - gelu) <= 5e-7 * (1 + std::abs(x)));
    CHECK(std::abs(static_cast<double>(fn::GeluGradient{}(f)) - slope) <= 1e-6);
    CHECK(std::abs(static_cast<double>(fn::GeluTanh{}(f)) - by_tanh) <= 5e-7 * (1 + std::abs(x)));
  }
}

TEST_CASE("plain functions") {
  CHECK(fn::Add{}(1.5, 2.0) == 3.5);
  CHECK(fn::Subtract{}(1, 3) == -2);
  CHECK(fn::Divide{}(7, 2) == 3);
  CHECK(fn::Divide{}(7.0, 2.0) == 3.5);
  CHECK(fn::Negate{}(2.0f) == -2.0f);
  CHECK(fn::Abs{}(-3) == 3);
  CHECK(fn::Abs{}(-3.5f) == 3.5f);
  CHECK(fn::Square{}(-3) == 9);
  CHECK(fn::Reciprocal{}(4.0) == 0.25);
  CHECK(fn::Sqrt{}(9.0f) == 3.0f);
  CHECK(fn::Relu{}(-1.0f) == 0.0f);
  CHECK(fn::Relu{}(2) == 2);
  CHECK(std::isnan(fn::Relu{}(not_a_number)));
  CHECK(fn::ReluGradient{}(0.0) == 0.0);
  CHECK(fn::ReluGradient{}(0.1) == 1.0);
  CHECK(fn::Maximum{}(1.0f, 2.0f) == 2.0f);
  CHECK(std::isnan(fn::Maximum{}(not_a_number, 2.0f)));
  CHECK(std::isnan(fn::Minimum{}(2.0f, not_a_number)));
  CHECK(fn::Scale{0.5}(3.0f) == 1.5f);
  CHECK(fn::Scale{0.5}(3) == 1);
  CHECK(fn::Scale{3}(std::int64_t{1} << 61) == (std::int64_t{3} << 61));
  CHECK(fn::Shift{-1}(3) == 2);
  CHECK(fn::Shift{-1}(std::uint64_t{9'007'199'254'740'993}) == 9'007'199'254'740'992);
  CHECK(fn::Shift{-1}(~std::uint64_t{0}) == ~std::uint64_t{1});
  CHECK(fn::Shift{-6}(std::uint8_t{5}) == 0);
  CHECK(fn::Shift{-4}(std::uint8_t{5}) == 1);
  CHECK(fn::Shift{-0.5}(std::uint8_t{5}) == 4);
  CHECK(fn::Shift{-1e300}(~std::uint64_t{0}) == 0);
  CHECK(fn::Shift{0.5}(3.0) == 3.5);
}

TEST_CASE("integers neither trap nor overflow") {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max(),
                     lowest = std::numeric_limits<std::int32_t>::lowest();
  CHECK(fn::Divide{}(5, 0) == 0);
  CHECK(fn::Divide{}(lowest, -1) == lowest);
  CHECK(fn::Reciprocal{}(0) == 0);
  CHECK(fn::Add{}(most, 1) == lowest);
  CHECK(fn::Multiply{}(most, 2) == -2);
  CHECK(fn::Negate{}(lowest) == lowest);
  CHECK(fn::Abs{}(lowest) == lowest);
  CHECK(fn::Scale{1.5}(most) == most);
  CHECK(fn::Scale{std::nan("")}(5) == 0);
}
