// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of all functions of elements, and their own, against central differences.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <tessera/grad.hpp>
#include <tessera/kernel/functions.hpp>

using namespace tessera;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

/// The intervals from which the operands are drawn.
template <int N> using Ranges = std::array<std::pair<double, double>, N>;

template <class F, class Values, std::size_t... K>
double call(const F& f, const Values& x, std::index_sequence<K...>) {
  return static_cast<double>(f(x[K]...));
}
template <int N, class F> double of(const F& f, const std::array<double, N>& x) {
  return call(f, x, std::make_index_sequence<N>{});
}

/// The derivative of f by operand I at x.
template <int I, int N, class F> double slope_of(const F& f, const std::array<double, N>& x) {
  using D = Derivative<F, I>;
  if constexpr (D::slope == Slope::zero) return 0;
  if constexpr (D::slope == Slope::one) return 1;
  if constexpr (D::slope == Slope::minus_one) return -1;
  if constexpr (D::slope == Slope::function) {
    constexpr int count = D::reads.size();
    std::array<double, count> values{};
    for (int k = 0; k < count; ++k)
      values[static_cast<std::size_t>(k)] =
          D::reads[k] == reads_result ? of<N>(f, x) : x[static_cast<std::size_t>(D::reads[k])];
    return of<count>(D::of(f), values);
  }
  return 0;
}

/// Compares the derivative by operand I with differences; then that derivative's own, as far as
/// there are any.
template <int I, int N, int Order, class F>
void check_operand(const F& f, const Ranges<N>& ranges, std::mt19937& random) {
  if constexpr (requires { Derivative<F, I>::slope; }) {
    CAPTURE(std::string(detail::function_name<F>()));
    CAPTURE(I);
    for (int n = 0; n < 50; ++n) {
      std::array<double, N> x{};
      for (std::size_t k = 0; k < N; ++k)
        x[k] = std::uniform_real_distribution<double>(ranges[k].first, ranges[k].second)(random);
      const double step = 1e-6;
      auto up = x, down = x;
      up[I] += step;
      down[I] -= step;
      const double wanted = (of<N>(f, up) - of<N>(f, down)) / (2 * step);
      const double got = slope_of<I, N>(f, x);
      CHECK(std::fabs(got - wanted) <= 1e-6 * (1 + std::fabs(wanted)));
    }
  } else {
    CHECK_MESSAGE(Order > 1, std::string(detail::function_name<F>()) << " has no derivative");
  }
}
template <int N, int Order, class F>
void check_all(const F& f, const Ranges<N>& ranges, std::mt19937& random);

/// The derivative of f's derivative by operand I, in the values that this one reads.
template <int I, int N, class F>
void check_second(const F& f, const Ranges<N>& ranges, std::mt19937& random) {
  using D = Derivative<F, I>;
  if constexpr (D::slope == Slope::function) {
    constexpr int count = D::reads.size();
    Ranges<count> own{};
    for (int k = 0; k < count; ++k) {
      const int read = D::reads[k];
      if (read >= 0) {
        own[static_cast<std::size_t>(k)] = ranges[static_cast<std::size_t>(read)];
      } else {  // what results there are
        auto& [low, high] = own[static_cast<std::size_t>(k)];
        low = infinity, high = -infinity;
        for (int n = 0; n < 40; ++n) {
          std::array<double, N> x{};
          for (std::size_t j = 0; j < N; ++j)
            x[j] =
                std::uniform_real_distribution<double>(ranges[j].first, ranges[j].second)(random);
          low = std::min(low, of<N>(f, x));
          high = std::max(high, of<N>(f, x));
        }
      }
    }
    if constexpr (count > 0) check_all<count, 2>(D::of(f), own, random);
  }
}
template <int N, int Order, class F, std::size_t... I>
void check_operands(const F& f, const Ranges<N>& ranges, std::mt19937& random,
                    std::index_sequence<I...>) {
  (check_operand<static_cast<int>(I), N, Order>(f, ranges, random), ...);
  if constexpr (Order == 1) (check_second<static_cast<int>(I), N>(f, ranges, random), ...);
}
template <int N, int Order, class F>
void check_all(const F& f, const Ranges<N>& ranges, std::mt19937& random) {
  check_operands<N, Order>(f, ranges, random, std::make_index_sequence<N>{});
}
template <class... F> void unary(double low, double high, const F&... f) {
  std::mt19937 random(3);
  (check_all<1, 1>(f, {{{low, high}}}, random), ...);
}
template <class... F> void binary(const Ranges<2>& ranges, const F&... f) {
  std::mt19937 random(4);
  (check_all<2, 1>(f, ranges, random), ...);
  (check_all<1, 1>(fn::Fixed<F, 0, double>{f, 1.25}, {{ranges[1]}}, random), ...);
  (check_all<1, 1>(fn::Fixed<F, 1, double>{f, 0.75}, {{ranges[0]}}, random), ...);
}
}  // namespace

TEST_CASE("derivatives of functions of one operand") {
  unary(-2, 2, fn::Negate{}, fn::Square{}, fn::Scale{2.5}, fn::Shift{1.5}, fn::Exp{}, fn::Exp2{},
        fn::Expm1{}, fn::Sin{}, fn::Cos{}, fn::Sinh{}, fn::Cosh{}, fn::Tanh{}, fn::Asinh{},
        fn::Atan{}, fn::Erf{}, fn::Gelu{}, fn::GeluTanh{}, fn::Sigmoid{}, fn::Silu{});
  unary(-1.2, 1.2, fn::Tan{});
  unary(-0.9, 0.9, fn::Asin{}, fn::Acos{}, fn::Atanh{});
  unary(1.2, 3, fn::Acosh{});
  unary(0.3, 3, fn::Reciprocal{}, fn::Log{}, fn::Log1p{}, fn::Log2{}, fn::Log10{}, fn::Sqrt{},
        fn::Rsqrt{}, fn::Cbrt{}, fn::Abs{}, fn::Relu{});
  unary(-3, -0.3, fn::Reciprocal{}, fn::Cbrt{}, fn::Abs{});
  unary(0.1, 0.4, fn::Floor{}, fn::Ceil{}, fn::Round{}, fn::Trunc{}, fn::Sign{});
  unary(-0.4, 0.4, fn::ClampTo<double>{-0.5, 0.5});
  unary(0.6, 0.9, fn::ClampTo<double>{-0.5, 0.5});
}

TEST_CASE("derivatives of functions of several operands, and with one fixed") {
  binary({{{-2, 2}, {-2, 2}}}, fn::Add{}, fn::Subtract{}, fn::Multiply{}, fn::LogAddExp{});
  binary({{{-2, 2}, {0.4, 2}}}, fn::Divide{});
  binary({{{0.3, 0.5}, {0.6, 0.7}}}, fn::Maximum{}, fn::Minimum{}, fn::Remainder{});
  binary({{{0.3, 2}, {0.3, 2}}}, fn::Atan2{});
  binary({{{0.4, 2}, {-1.5, 2.5}}}, fn::Pow{});
  std::mt19937 random(5);
  for (const double x : {0.0, 1.0, 2.0})
    check_all<3, 1>(fn::Clamp{}, {{{x, x + 0.3}, {0.5, 0.6}, {1.6, 1.7}}}, random);
}

TEST_CASE("derivatives at kinks and beyond") {
  const auto at = []<int I>(auto f, auto... x) {
    return slope_of<I, static_cast<int>(sizeof...(x))>(f, std::array<double, sizeof...(x)>{x...});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(at.operator()<0>(fn::Maximum{}, 2.0, 2.0) == 0.5);
  CHECK(at.operator()<1>(fn::Minimum{}, 2.0, 2.0) == 0.5);
  CHECK(at.operator()<0>(fn::Abs{}, 0.0) == 0);
  CHECK(at.operator()<0>(fn::Relu{}, 0.0) == 0);
  CHECK(at.operator()<0>(fn::Relu{}, -1.0) == 0);
  CHECK(at.operator()<0>(fn::Pow{}, 0.0, 2.0) == 0);
  CHECK(at.operator()<0>(fn::Pow{}, 0.0, 1.0) == 1);
  CHECK(at.operator()<0>(fn::Pow{}, 0.0, 0.0) == 0);
  CHECK(at.operator()<1>(fn::Pow{}, 0.0, 2.0) == 0);
  CHECK(at.operator()<0>(fn::Sqrt{}, 0.0) == infinity);
  CHECK(at.operator()<0>(fn::LogAddExp{}, -infinity, 1.0) == 0);
  CHECK(std::isnan(at.operator()<0>(fn::Exp{}, nan)));
  CHECK(std::isnan(at.operator()<0>(fn::Tanh{}, nan)));
  CHECK(at.operator()<0>(fn::Tanh{}, 50.0) == 0);
  CHECK(at.operator()<0>(fn::Gelu{}, -50.0) == 0);
  CHECK(fn::Times<fn::Same, 1>{}(3.0f, true) == 3.0f);  // a condition selects
  CHECK(fn::Times<fn::Not, 1>{}(3.0f, true) == 0.0f);
  CHECK(static_cast<float>(fn::Times<fn::OneMinusSquare, 1>{}(half(2.0f), half(0.5f))) == 1.5f);
}
