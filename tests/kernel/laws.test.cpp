// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
// Every function of real elements keeps its stated error on the whole line: all numbers of half
// types, floats and doubles of every exponent and both signs, zeros, denormals, infinities, NaN.
// With TESSERA_TEST_CASES=all ten million floats, and four million doubles.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/kernel/functions.hpp>

using namespace tessera;

namespace {
using Wide = long double;

/// A bound of |f(x) - exact|: so many units in the last place of the exact result, or so many times
/// the type's epsilon, or so many of its smallest numbers.
struct Law {
  double ulps, epsilons = 0, smallest = 0;
};
/// The laws for floats and doubles. Half types are computed in float and rounded: then a float's
/// error is at most a thousandth of a unit more than the nearest number's half.
struct Laws {
  Law single, twofold;
};

template <class T> struct Format {
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  static constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  static constexpr int exponents = 1 << (static_cast<int>(sizeof(T)) * 8 - 1 - mantissa);
};
/// All numbers of a half type; of the others `each` random ones for every exponent and sign, and
/// the ends of each.
template <class T> std::vector<T> numbers(int each) {
  using Bits = typename Format<T>::Bits;
  std::vector<T> all;
  if constexpr (sizeof(T) == 2) {
    for (int bits = 0; bits < 65536; ++bits)
      all.push_back(std::bit_cast<T>(static_cast<Bits>(bits)));
  } else {
    std::mt19937_64 random(20);
    constexpr Bits below = (Bits{1} << Format<T>::mantissa) - 1;
    for (Bits head = 0; head < static_cast<Bits>(2 * Format<T>::exponents); ++head) {
      const auto put = [&](Bits tail) {
        all.push_back(std::bit_cast<T>(head << Format<T>::mantissa | (tail & below)));
      };
      for (const Bits tail : {Bits{0}, Bits{1}, below}) put(tail);
      for (int i = 0; i < each; ++i) put(static_cast<Bits>(random()));
    }
  }
  return all;
}
bool long_run() {
  const char* const cases = std::getenv("TESSERA_TEST_CASES");
  return cases != nullptr && std::string_view(cases) == "all";
}
template <class T> const std::vector<T>& all_numbers() {
  static const std::vector<T> all =
      numbers<T>(sizeof(T) == 4 ? (long_run() ? 20000 : 30) : (long_run() ? 1000 : 6));
  return all;
}

/// By how much y, a value of f, is beyond the law: 1 is the bound itself.
template <class T> double beyond(T value, Wide exact, const Law& law) {
  using Limits = std::numeric_limits<T>;
  const Wide y = static_cast<Wide>(static_cast<ComputeType<T>>(value));
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) == std::isnan(y) ? 0 : 1e9;
  const Wide most = static_cast<Wide>(static_cast<ComputeType<T>>(Limits::max()));
  const Wide smallest = static_cast<Wide>(static_cast<ComputeType<T>>(Limits::denorm_min()));
  if (exact == 0 || (y == 0 && law.epsilons == 0))
    if (std::signbit(y) != std::signbit(exact)) return 1e9;
  int exponent = 0;
  std::frexp(std::isinf(exact) ? most : exact, &exponent);
  const Wide unit = std::fmax(std::ldexp(Wide{1}, exponent - Limits::digits), smallest);
  if (std::isinf(exact) && std::isinf(y)) return y == exact ? 0 : 1e9;
  if (std::isinf(y)) return std::fabs(exact) + law.ulps * unit > most ? 0 : 1e9;
  if (std::isinf(exact)) return 1e9;
  const Wide bound =
      law.ulps * unit + law.smallest * smallest +
      law.epsilons * static_cast<Wide>(static_cast<ComputeType<T>>(Limits::epsilon()));
  const Wide error = std::fabs(y - exact);
  return error == 0 ? 0 : bound > 0 ? static_cast<double>(error / bound) : 1e9;
}
template <class T, class F> void keeps(const char* name, const F& f, Wide (*exact)(Wide), Law law) {
  double worst = 0;
  T at{};
  for (const T x : all_numbers<T>()) {
    const double ratio =
        beyond(f(x), exact(static_cast<Wide>(static_cast<ComputeType<T>>(x))), law);
    if (ratio > worst) worst = ratio, at = x;
  }
  if (worst > 1 || std::getenv("TESSERA_SHOW") != nullptr)
    MESSAGE(std::string(name) << " of " << std::string(name_of(dtype_of<T>)) << ": " << worst
                              << " of its bound of " << law.ulps << " ulp, at "
                              << static_cast<double>(at));
  CHECK(worst <= 1);
}
template <class F> void keeps(const char* name, const F& f, Wide (*exact)(Wide), Laws laws) {
  keeps<float>(name, f, exact, laws.single);
  keeps<double>(name, f, exact, laws.twofold);
  const Law rounded{0.52, laws.single.epsilons / 1024, laws.single.smallest > 0 ? 1.0 : 0.0};
  keeps<half>(name, f, exact, rounded);
  keeps<bfloat16>(name, f, exact, rounded);
}
template <class F>
void keeps(const char* name, const F& f, Wide (*exact)(Wide), double single, double twofold) {
  keeps(name, f, exact, Laws{{single}, {twofold}});
}
/// Compares a function of two arguments: special values and some of each size with each other.
template <class T, class F>
void keeps_of_two(const char* name, const F& f, Wide (*exact)(Wide, Wide), Law law) {
  std::vector<T> some;
  const std::vector<T>& all = all_numbers<T>();
  for (std::size_t i = 0; i < all.size(); i += all.size() / 331)
    if (all[i] == all[i]) some.push_back(all[i]);
  for (const double x : {0.0, 1.0, 0.5, 3.0, 7.25, 88.0, 1e-3, 700.0, HUGE_VAL})
    for (const double sign : {1.0, -1.0}) some.push_back(static_cast<T>(sign * x));
  some.push_back(std::numeric_limits<T>::quiet_NaN());
  some.push_back(std::numeric_limits<T>::denorm_min());
  some.push_back(std::numeric_limits<T>::max());
  double worst = 0;
  T at{}, with{};
  const auto wide = [](T x) { return static_cast<Wide>(static_cast<ComputeType<T>>(x)); };
  for (const T x : some)
    for (const T y : some) {
      const double ratio = beyond(f(x, y), exact(wide(x), wide(y)), law);
      if (ratio > worst) worst = ratio, at = x, with = y;
    }
  if (worst > 1 || std::getenv("TESSERA_SHOW") != nullptr)
    MESSAGE(std::string(name) << " of " << std::string(name_of(dtype_of<T>)) << ": " << worst
                              << " of its bound of " << law.ulps << " ulp, at "
                              << static_cast<double>(at) << " and " << static_cast<double>(with));
  CHECK(worst <= 1);
}
template <class F>
void keeps_of_two(const char* name, const F& f, Wide (*exact)(Wide, Wide), Law law,
                  Law rounded = {0.52}) {
  keeps_of_two<float>(name, f, exact, law);
  keeps_of_two<double>(name, f, exact, law);
  keeps_of_two<half>(name, f, exact, rounded);
  keeps_of_two<bfloat16>(name, f, exact, rounded);
}
Wide log_add_exp(Wide x, Wide y) {
  if (x == y) return x + std::log(2.0L);
  if (std::isnan(x) || std::isnan(y)) return x + y;
  return std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y)));
}
Wide remainder_of(Wide a, Wide b) {
  const Wide rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(Wide{0}, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
Wide larger(Wide a, Wide b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return a == b ? (std::signbit(a) ? b : a) : a > b ? a : b;
}
Wide gelu(Wide x) {
  return std::isinf(x) && x < 0
             ? -0.0L
             : 0.5L * x * std::erfc(-x * 0.707106781186547524400844362104849039L);
}
Wide sigmoid(Wide x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
Wide gelu_tanh(Wide x) {
  const Wide u = 0.797884560802865355879892119868763737L * (x + 0.044715L * x * x * x);
  return std::isinf(x) && x < 0 ? -0.0L : x * sigmoid(2 * u);
}
/// f of x where Sign x is at least a number, elsewhere NaN.
template <class F, int Sign = 1> struct From {
  F f;
  double least;
  template <class T> T operator()(T x) const {
    return Sign * static_cast<double>(x) < least ? std::numeric_limits<T>::quiet_NaN() : f(x);
  }
};
Wide gelu_slope(Wide x) {
  const Wide density =
      std::isinf(x) ? 0 : x * 0.398942280401432677939946059934381868L * std::exp(-0.5L * x * x);
  return 0.5L * std::erfc(-x * 0.707106781186547524400844362104849039L) + density;
}
}  // namespace

TEST_CASE("functions of elements keep their stated errors on the whole line") {
#define EXACT(expression) [](Wide x) -> Wide { return expression; }
  keeps("exp", fn::Exp{}, EXACT(std::exp(x)), 2, 1.5);
  keeps("exp2", fn::Exp2{}, EXACT(std::exp2(x)), 2, 1.5);
  keeps("expm1", fn::Expm1{}, EXACT(std::expm1(x)), 2, 3);
  keeps("log", fn::Log{}, EXACT(std::log(x)), 2, 1);
  keeps("log1p", fn::Log1p{}, EXACT(std::log1p(x)), 2, 2);
  keeps("log2", fn::Log2{}, EXACT(std::log2(x)), 1, 1);
  keeps("log10", fn::Log10{}, EXACT(std::log10(x)), 1, 1);
  keeps("sqrt", fn::Sqrt{}, EXACT(std::sqrt(x)), 0.5, 0.5);
  keeps("rsqrt", fn::Rsqrt{}, EXACT(1 / std::sqrt(x)), 1.5, 1.5);
  keeps("cbrt", fn::Cbrt{}, EXACT(std::cbrt(x)), 1, 4);
  keeps("sin", fn::Sin{}, EXACT(std::sin(x)), 1.5, 1.5);
  keeps("cos", fn::Cos{}, EXACT(std::cos(x)), 1.5, 1.5);
  keeps("tan", fn::Tan{}, EXACT(std::tan(x)), 3.5, 1.5);
  keeps("asin", fn::Asin{}, EXACT(std::asin(x)), 1, 1);
  keeps("acos", fn::Acos{}, EXACT(std::acos(x)), 1, 1);
  keeps("atan", fn::Atan{}, EXACT(std::atan(x)), 1, 1);
  keeps("sinh", fn::Sinh{}, EXACT(std::sinh(x)), 3, 1.5);
  keeps("cosh", fn::Cosh{}, EXACT(std::cosh(x)), 2, 1.5);
  keeps("tanh", fn::Tanh{}, EXACT(std::tanh(x)), 3, 3);
  keeps("asinh", fn::Asinh{}, EXACT(std::asinh(x)), 2, 2);
  keeps("acosh", fn::Acosh{}, EXACT(std::acosh(x)), 2, 2);
  keeps("atanh", fn::Atanh{}, EXACT(std::atanh(x)), 2, 2);
  keeps("erf", fn::Erf{}, EXACT(std::erf(x)), 3, 2);
  keeps("sigmoid", fn::Sigmoid{}, sigmoid, 3, 3);
  keeps("silu", fn::Silu{}, EXACT(std::isinf(x) && x < 0 ? -0.0L : x * sigmoid(x)),
        Laws{{4, 0, 128}, {4, 0, 1024}});
  keeps("gelu", fn::Gelu{}, gelu, 64, 8);

  keeps("gelu from -1 on", From<fn::Gelu>{{}, -1}, EXACT(x < -1 ? NAN : gelu(x)), 3, 8);
  keeps("gelu from 0 on", From<fn::Gelu>{{}, 0}, EXACT(x < 0 ? NAN : gelu(x)), 3, 2);
  keeps("gelu to -5.6", From<fn::Gelu, -1>{{}, 5.6}, EXACT(x > -5.6L ? NAN : gelu(x)), 4, 8);
  keeps("gelu_tanh", fn::GeluTanh{}, gelu_tanh, Laws{{2, 8}, {2, 8}});
  keeps("gelu's derivative", fn::GeluGradient{}, gelu_slope, Laws{{0, 4}, {0, 4}});
  keeps("relu's derivative", fn::ReluGradient{}, EXACT(x > 0 ? 1 : 0), 0, 0);
  keeps("abs", fn::Abs{}, EXACT(std::fabs(x)), 0, 0);
  keeps("negate", fn::Negate{}, EXACT(-x), 0, 0);
  keeps("square", fn::Square{}, EXACT(x * x), 0.5, 0.5);
  keeps("reciprocal", fn::Reciprocal{}, EXACT(1 / x), 0.5, 0.5);
  keeps("floor", fn::Floor{}, EXACT(std::floor(x)), 0, 0);
  keeps("ceil", fn::Ceil{}, EXACT(std::ceil(x)), 0, 0);
  keeps("round", fn::Round{}, EXACT(std::rint(x)), 0, 0);
  keeps("trunc", fn::Trunc{}, EXACT(std::trunc(x)), 0, 0);
  keeps("sign", fn::Sign{}, EXACT(x > 0 ? 1 : x < 0 ? -1 : x), 0, 0);
  keeps("relu", fn::Relu{}, EXACT(x < 0 ? 0 : x), 0, 0);
#undef EXACT
}

TEST_CASE("functions of two elements keep their stated errors") {
  keeps_of_two("atan2", fn::Atan2{}, [](Wide a, Wide b) -> Wide { return std::atan2(a, b); }, {2});
  keeps_of_two("pow", fn::Pow{}, [](Wide a, Wide b) -> Wide { return std::pow(a, b); }, {1});
  keeps_of_two("log_add_exp", fn::LogAddExp{}, log_add_exp, {2, 2}, {0.52, 0.01});
  keeps_of_two("remainder", fn::Remainder{}, remainder_of, {0.5});
  keeps_of_two("maximum", fn::Maximum{}, larger, {0});
  keeps_of_two("minimum", fn::Minimum{}, [](Wide a, Wide b) { return -larger(-a, -b); }, {0});
  keeps_of_two("add", fn::Add{}, [](Wide a, Wide b) { return a + b; }, {0.5});
  keeps_of_two("multiply", fn::Multiply{}, [](Wide a, Wide b) { return a * b; }, {0.5});
  keeps_of_two("divide", fn::Divide{}, [](Wide a, Wide b) { return a / b; }, {0.5});
}
