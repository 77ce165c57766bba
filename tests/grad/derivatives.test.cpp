// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Derivatives of all functions of elements, and their own, against differences; in every precision;
// at kinks, at NaN and at extremes.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/kernel/functions.hpp>

using namespace tessera;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <std::size_t N, class T = double> using Point = std::array<T, N>;
template <std::size_t N> using Points = std::vector<Point<N>>;
/// The interval of each operand.
template <std::size_t N> using Domain = std::array<std::pair<double, double>, N>;

template <std::size_t N> Points<N> draw(const Domain<N>& domain, int count = 200) {
  std::mt19937_64 random(N + 17);
  Points<N> points(static_cast<std::size_t>(count));
  for (auto& x : points)
    for (std::size_t k = 0; k < N; ++k)
      x[k] = std::uniform_real_distribution<double>(domain[k].first, domain[k].second)(random);
  return points;
}

template <std::size_t N> std::string text(const Point<N>& x) {
  std::string all;
  for (const double part : x) all += std::to_string(part) + " ";
  return all;
}

template <class F, class T, std::size_t N> auto value(const F& f, const Point<N, T>& x) {
  return std::apply([&](const auto&... operand) { return f(operand...); }, x);
}
/// The derivative's functor.
template <class F, int I>
using FunctorOf = std::remove_cvref_t<decltype(Derivative<F, I>::of(std::declval<const F&>()))>;
template <class F, int I> constexpr std::size_t reads_of = Derivative<F, I>::reads.size();

/// What f's derivative by operand I reads at x.
template <int I, class F, class T, std::size_t N> auto read(const F& f, const Point<N, T>& x) {
  using D = Derivative<F, I>;
  Point<reads_of<F, I>, T> values{};
  for (int k = 0; k < D::reads.size(); ++k)
    values[static_cast<std::size_t>(k)] =
        D::reads[k] == reads_result ? value(f, x) : x[static_cast<std::size_t>(D::reads[k])];
  return values;
}
template <int I, class F, std::size_t N> double slope(const F& f, const Point<N>& x) {
  using D = Derivative<F, I>;
  if constexpr (D::slope == Slope::function)
    return static_cast<double>(value(D::of(f), read<I>(f, x)));
  else
    return D::slope == Slope::one ? 1 : D::slope == Slope::zero ? 0 : -1;
}
/// Returns the slope at operands that are written out.
template <int I, class F, class... T> double slope_at(const F& f, T... x) {
  return slope<I>(f, Point<sizeof...(T)>{x...});
}

/// Differences of two steps (Richardson), whose error has the order h^4.
template <class F, std::size_t N> double difference(const F& f, const Point<N>& x, int operand) {
  const auto i = static_cast<std::size_t>(operand);
  const auto central = [&](double h) {
    auto above = x, below = x;
    above[i] += h;
    below[i] -= h;
    return (value(f, above) - value(f, below)) / (above[i] - below[i]);
  };
  const double h = 1e-3 * std::max(std::abs(x[i]), 0.03);
  return (4 * central(h / 2) - central(h)) / 3;
}

/// Derivatives in element type T, of the same values as those in double.
template <class T, int I, class F, std::size_t N>
void check_precision(const F& f, const Points<N>& points) {
  if constexpr (reads_of < F,
                I >> 0 &&
                    std::is_same_v<decltype(value(Derivative<F, I>::of(f), read<I>(f, points[0]))),
                                   double>) {
    const auto d = Derivative<F, I>::of(f);
    const double unit = std::is_same_v<T, float>  ? 0x1p-23
                        : std::is_same_v<T, half> ? 0x1p-10
                                                  : 0x1p-7;
    for (const auto& x : points) {
      Point<N, T> rounded{};
      for (std::size_t k = 0; k < N; ++k) rounded[k] = static_cast<T>(x[k]);
      const auto values = read<I>(f, rounded);
      static_assert(std::is_same_v<decltype(value(d, values)), T>);
      Point<reads_of<F, I>> wide{};
      for (std::size_t k = 0; k < wide.size(); ++k) wide[k] = static_cast<double>(values[k]);
      const double wanted = value(d, wide), got = static_cast<double>(value(d, values));
      CAPTURE(text(wide));
      // Half types are rounded once, floats a few times.
      CHECK(std::abs(got - wanted) <=
            (sizeof(T) == 2 ? 0.51 : 8) * unit * (0.05 + std::abs(wanted)));
    }
  }
}

/// What is known of a function: its derivatives by each operand, theirs, and those of theirs which
/// exist, are the differences.
template <int Order, class F, std::size_t N> void check_from(const F& f, const Points<N>& points);

template <int Order, int I, class F, std::size_t N>
void check_operand(const F& f, const Points<N>& points) {
  CAPTURE(std::string(detail::function_name<F>()));
  CAPTURE(I);
  CAPTURE(Order);
  if constexpr (detail::HasDerivative<F, I>) {
    for (const auto& x : points) {
      const double got = slope<I>(f, x), wanted = difference(f, x, I);
      CAPTURE(text(x));
      CHECK(std::abs(got - wanted) <=
            1e-6 * std::abs(wanted) + 1e-10 * (1 + std::abs(static_cast<double>(value(f, x)))));
    }
    if constexpr (Derivative<F, I>::slope == Slope::function && Order < 3) {
      Points<reads_of<F, I>> read_points;
      for (const auto& x : points) read_points.push_back(read<I>(f, x));
      check_from<Order + 1>(Derivative<F, I>::of(f), read_points);
    }
  } else {
    static_assert(Order > 2, "a function, or its derivative, has no derivative");
  }
}
template <int Order, class F, std::size_t N> void check_from(const F& f, const Points<N>& points) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (check_operand<Order, static_cast<int>(I)>(f, points), ...);
  }
  (std::make_index_sequence<N>{});
}
template <std::size_t N, class F> void check_in_types(const F& f, const Points<N>& points) {
  const auto of_operand = [&]<int I>(std::integral_constant<int, I>) {
    CAPTURE(std::string(detail::function_name<F>()));
    CAPTURE(I);
    if constexpr (Derivative<F, I>::slope == Slope::function) {
      check_precision<float, I>(f, points);
      check_precision<half, I>(f, points);
      check_precision<bfloat16, I>(f, points);
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (of_operand(std::integral_constant<int, static_cast<int>(I)>{}), ...);
  }
  (std::make_index_sequence<N>{});
}

/// Functions of N operands in a domain without kinks.
template <std::size_t N, class... F> void check(const Domain<N>& domain, const F&... f) {
  const auto points = draw(domain);
  (check_from<1>(f, points), ...);
  (check_in_types(f, points), ...);
}
template <class... F> void check(double low, double high, const F&... f) {
  check(Domain<1>{{{low, high}}}, f...);
}
/// Checks a function of two operands, also with each of them fixed.
template <class... F> void check_fixed(const Domain<2>& domain, const F&... f) {
  check(domain, f...);
  const auto mean = [](auto range) { return 0.4 * range.first + 0.6 * range.second; };
  const Points<1> first = draw(Domain<1>{{domain[0]}}), second = draw(Domain<1>{{domain[1]}});
  (check_from<1>(fn::Fixed<F, 0, double>{f, mean(domain[0])}, second), ...);
  (check_from<1>(fn::Fixed<F, 1, double>{f, mean(domain[1])}, first), ...);
}

/// x y^2 + sin(x) z, of three operands
struct Blend {
  template <class T> T operator()(T x, T y, T z) const { return x * y * y + std::sin(x) * z; }
};
/// The functors at the head of derivative.hpp.
struct Softplus {
  template <class T> T operator()(T x) const { return fn::Log1p{}(fn::Exp{}(x)); }
  template <class T> T derivative(T x) const { return fn::Sigmoid{}(x); }
};
struct Mix {
  template <class T> T operator()(T x, T y) const { return x * y * y; }
  template <int I, class T> T derivative(T x, T y) const { return I == 0 ? y * y : T(2) * x * y; }
};
/// A sum of three operands that brings one derivative for all.
struct MeanOfThree {
  template <class T> T operator()(T x, T y, T z) const { return (x + y + z) / T(3); }
  template <class T> T derivative(T, T, T) const { return T(1) / T(3); }
};

template <int I, class F, std::size_t N> void check_own(const F& f, const Points<N>& points) {
  for (const auto& x : points) {
    CAPTURE(text(x));
    const double wanted = difference(f, x, I), got = value(fn::OwnDerivative<F, I>{f}, x);
    CHECK(std::abs(got - wanted) <= 1e-6 * std::abs(wanted) + 1e-10);
  }
}

}  // namespace

TEST_CASE("derivatives of arithmetic are differences, and so are theirs") {
  check(-3, 3, fn::Negate{}, fn::Square{}, fn::Scale{-2.5}, fn::Shift{0.75});
  check(0.3, 3, fn::Reciprocal{}, fn::Abs{});
  check(-3, -0.3, fn::Reciprocal{}, fn::Abs{});
  check_fixed({{{-3, 3}, {-3, 3}}}, fn::Add{}, fn::Subtract{}, fn::Multiply{});
  check_fixed({{{-3, 3}, {0.3, 3}}}, fn::Divide{});
  check_fixed({{{-3, 3}, {-3, -0.3}}}, fn::Divide{});
  check_fixed({{{0.2, 1}, {1.5, 3}}}, fn::Maximum{}, fn::Minimum{});
  check_fixed({{{1.5, 3}, {0.2, 1}}}, fn::Maximum{}, fn::Minimum{});
  check_fixed({{{7.1, 7.4}, {1.5, 1.7}}}, fn::Remainder{});    // 4 y + r
  check_fixed({{{-7.4, -7.1}, {1.5, 1.7}}}, fn::Remainder{});  // -5 y + r
  check_fixed({{{7.1, 7.4}, {-1.7, -1.5}}}, fn::Remainder{});
}

TEST_CASE("derivatives of exponentials, logarithms and powers are differences") {
  check(-3, 3, fn::Exp{}, fn::Exp2{}, fn::Expm1{});
  check(0.2, 4, fn::Log{}, fn::Log2{}, fn::Log10{}, fn::Sqrt{}, fn::Rsqrt{}, fn::Cbrt{});
  check(-4, -0.2, fn::Cbrt{});
  check(-0.8, 4, fn::Log1p{});
  check_fixed({{{-3, 3}, {-3, 3}}}, fn::LogAddExp{});
  check_fixed({{{0.2, 3}, {-2.5, 3}}}, fn::Pow{});
  for (const double exponent : {-2.0, -1.0, 0.0, 1.0, 2.0, 3.0}) {
    const fn::Fixed<fn::Pow, 1, double> power{{}, exponent};
    check_from<1>(power, draw(Domain<1>{{{-2, -0.3}}}));
    check_from<1>(power, draw(Domain<1>{{{0.3, 2}}}));
  }
}

TEST_CASE("derivatives of circular and hyperbolic functions are differences") {
  check(-3, 3, fn::Sin{}, fn::Cos{}, fn::Atan{}, fn::Sinh{}, fn::Cosh{}, fn::Tanh{}, fn::Asinh{});
  check(-1.2, 1.2, fn::Tan{});
  check(-0.9, 0.9, fn::Asin{}, fn::Acos{}, fn::Atanh{});
  check(1.2, 4, fn::Acosh{});
  check_fixed({{{0.2, 3}, {0.2, 3}}}, fn::Atan2{});
  check_fixed({{{-3, -0.2}, {-3, -0.2}}}, fn::Atan2{});
  check_fixed({{{0.2, 3}, {-3, -0.2}}}, fn::Atan2{});
}

TEST_CASE("derivatives of activations are differences") {
  check(-4, 4, fn::Erf{}, fn::Gelu{}, fn::GeluTanh{}, fn::Sigmoid{}, fn::Silu{});
  check(0.2, 4, fn::Relu{}, fn::ReluGradient{});
  check(-4, -0.2, fn::ReluGradient{});
  // Not the derivative's own, which reads the result, 0: there it has its step.
  check_from<3>(fn::Relu{}, draw(Domain<1>{{{-4, -0.2}}}));
  check(-4, 4, fn::GeluGradient{});
}

TEST_CASE("derivatives of rounding and clamping are differences") {
  check(0.55, 0.95, fn::Floor{}, fn::Ceil{}, fn::Round{}, fn::Trunc{}, fn::Sign{});
  check(-1.45, -1.05, fn::Floor{}, fn::Ceil{}, fn::Round{}, fn::Trunc{}, fn::Sign{});
  const std::pair<double, double> below{-3, -1.2}, low{-1.1, -0.9}, inside{-0.5, 0.5},
      high{0.9, 1.1}, above{1.2, 3};
  for (const auto& x : {below, inside, above}) {
    check(Domain<3>{{x, low, high}}, fn::Clamp{});
    check(Domain<3>{{x, high, low}}, fn::Clamp{});
    check_from<1>(fn::ClampTo<double>{-1, 1}, draw(Domain<1>{{x}}));
    check_from<1>(fn::Fixed<fn::Clamp, 1, double>{{}, -1}, draw(Domain<2>{{x, high}}));
    check_from<1>(fn::Fixed<fn::Clamp, 2, double>{{}, 1}, draw(Domain<2>{{x, low}}));
    using Half = fn::Fixed<fn::Clamp, 2, double>;
    check_from<1>(fn::Fixed<Half, 1, double>{{{}, 1}, -1}, draw(Domain<1>{{x}}));
  }
}

TEST_CASE("kinks and edges") {
  const auto nan = [](double x) { return std::isnan(x); };
  const auto is_near = [](double x, double wanted) {
    return std::abs(x / wanted - 1) <= 1e-14;  // relative, of any size
  };
  CHECK(slope_at<0>(fn::Maximum{}, 2.0, 2.0) == 0.5);
  CHECK(slope_at<1>(fn::Maximum{}, 2.0, 2.0) == 0.5);
  CHECK(slope_at<0>(fn::Minimum{}, 2.0, 2.0) == 0.5);
  CHECK(slope_at<1>(fn::Minimum{}, 0.0, -0.0) == 0.5);
  CHECK(slope_at<0>(fn::Maximum{}, infinity, 1.0) == 1);
  CHECK(slope_at<1>(fn::Maximum{}, infinity, 1.0) == 0);
  CHECK(slope_at<0>(fn::Abs{}, 0.0) == 0);
  CHECK(slope_at<0>(fn::Relu{}, 0.0) == 0);
  CHECK(slope_at<0>(fn::ClampTo<double>{-1, 1}, 1.0) == 1);
  CHECK(slope_at<0>(fn::ClampTo<double>{-1, 1}, -1.0) == 1);
  CHECK(slope_at<0>(fn::Clamp{}, 1.0, -1.0, 1.0) == 1);
  CHECK(slope_at<1>(fn::Clamp{}, -1.0, -1.0, 1.0) == 0);
  CHECK(slope_at<2>(fn::Clamp{}, 1.0, -1.0, 1.0) == 0);
  CHECK(slope_at<0>(fn::Clamp{}, 1.0, 1.0, 1.0) == 1);

  // Exactly one of x, low and high counts, for all of a few values.
  for (const double x : {-1.0, 0.0, 0.5, 1.0, 2.0})
    for (const double low : {-1.0, 0.0, 1.0})
      for (const double high : {-1.0, 0.0, 1.0})
        CHECK(slope_at<0>(fn::Clamp{}, x, low, high) + slope_at<1>(fn::Clamp{}, x, low, high) +
                  slope_at<2>(fn::Clamp{}, x, low, high) ==
              1);

  CHECK(slope_at<0>(fn::Pow{}, 0.0, 0.0) == 0);
  CHECK(slope_at<0>(fn::Pow{}, 0.0, 1.0) == 1);
  CHECK(slope_at<0>(fn::Pow{}, 0.0, 2.0) == 0);
  CHECK(slope_at<0>(fn::Pow{}, 0.0, 0.5) == infinity);
  CHECK(slope_at<0>(fn::Pow{}, -2.0, 3.0) == 12);
  for (const double y : {-1.0, 0.0, 0.5, 2.0}) CHECK(slope_at<1>(fn::Pow{}, 0.0, y) == 0);
  CHECK(nan(slope_at<1>(fn::Pow{}, -2.0, 2.0)));
  CHECK(fn::PowerCurvature{}(0.0, 2.0) == 2);
  CHECK(fn::PowerCurvature{}(0.0, 1.0) == 0);
  CHECK(fn::PowerCurvature{}(0.0, 0.0) == 0);
  CHECK(fn::PowerSlopeByPower{}(0.0, 2.0) == 0);
  CHECK(fn::QuotientOrZero{}(0.0, 0.0) == 0);

  CHECK(slope_at<0>(fn::Sqrt{}, 0.0) == infinity);
  CHECK(slope_at<0>(fn::Log{}, 0.0) == infinity);
  CHECK(slope_at<0>(fn::Cbrt{}, 0.0) == infinity);
  CHECK(slope_at<0>(fn::LogAddExp{}, -infinity, 1.0) == 0);
  CHECK(slope_at<1>(fn::LogAddExp{}, -infinity, 1.0) == 1);
  CHECK(slope_at<0>(fn::LogAddExp{}, -infinity, -infinity) == 0.5);
  CHECK(slope_at<0>(fn::LogAddExp{}, infinity, infinity) == 0.5);
  CHECK(slope_at<1>(fn::LogAddExp{}, infinity, 1.0) == 0);
  // What the rounded result does not show: the difference of the operands.
  const auto of_bfloat = [](float x, float y) {
    return static_cast<float>(fn::SigmoidOfDifference{}(bfloat16(x), bfloat16(y)));
  };
  CHECK(std::abs(of_bfloat(50, 50.25f) - 0.4378f) < 0.001f);
  CHECK(std::abs(of_bfloat(50.25f, 50) - 0.5622f) < 0.002f);
  CHECK(slope_at<0>(fn::Tanh{}, infinity) == 0);
  CHECK(slope_at<0>(fn::Sigmoid{}, -infinity) == 0);
  for (const double x : {50.0, 1e30, 1e300, infinity}) {
    CHECK(slope_at<0>(fn::Gelu{}, x) == 1);
    CHECK(slope_at<0>(fn::Gelu{}, -x) == 0);
    CHECK(slope_at<0>(fn::GeluTanh{}, x) == 1);
    CHECK(slope_at<0>(fn::GeluTanh{}, -x) == 0);
    CHECK(slope_at<0>(fn::Silu{}, x) == 1);
    CHECK(std::abs(fn::SiluSlope{}(-x)) < 1e-20);
    CHECK(std::abs(fn::GeluTanhCurvature{}(x)) == 0);
    CHECK(std::abs(fn::GeluCurvature{}(-x)) < 1e-300);
    CHECK(std::abs(fn::SiluCurvature{}(x)) < 1e-19);
    for (const double y : {x, -x}) {  // the second ones
      CHECK(std::abs(slope_at<0>(fn::ErfSlope{}, y)) == 0);
      CHECK(std::abs(slope_at<0>(fn::AtanSlope{}, y)) < 1e-4);
      CHECK(std::abs(slope_at<0>(fn::AsinhSlope{}, y)) < 1e-3);
    }
    CHECK(std::abs(slope_at<0>(fn::AcoshSlope{}, x)) < 1e-3);
  }
  CHECK(fn::Silu{}(-infinity) == 0);
  CHECK(std::signbit(fn::Silu{}(-infinity)));

  // The slopes hold at scales whose squares overflow or vanish.
  for (const double scale : {1e-200, 1.0, 1e200}) {
    CHECK(is_near(slope_at<0>(fn::Atan2{}, 3 * scale, 4 * scale), 0.16 / scale));
    CHECK(is_near(slope_at<1>(fn::Atan2{}, 3 * scale, 4 * scale), -0.12 / scale));
  }
  CHECK(is_near(slope_at<0>(fn::Asinh{}, 1e200), 1e-200));
  CHECK(is_near(slope_at<0>(fn::Acosh{}, 1e200), 1e-200));
  CHECK(nan(slope_at<0>(fn::Acosh{}, -2.0)));
  CHECK(nan(slope_at<0>(fn::Asin{}, 1.5)));
  CHECK(nan(slope_at<0>(fn::Sqrt{}, -1.0)));

  // Whole quotients: the derivative agrees with the remainder that was returned.
  for (int i = 1; i < 40; ++i)
    for (const float y : {0.1f, 0.3f, 0.7f}) {
      const float x = static_cast<float>(i) * y, rest = fn::Remainder{}(x, y);
      const double quotient = -static_cast<double>(fn::NegativeFloor{}(x, y, rest));
      CHECK(std::abs(static_cast<double>(x) - quotient * static_cast<double>(y) -
                     static_cast<double>(rest)) < 1e-5);
    }
}

TEST_CASE("NaN stays NaN") {
  const auto stays = [](const auto&... f) {
    const auto check_one = [](const auto& one) {
      CAPTURE(std::string(detail::function_name<std::remove_cvref_t<decltype(one)>>()));
      CHECK(std::isnan(slope_at<0>(one, not_a_number)));
    };
    (check_one(f), ...);
  };
  stays(fn::Abs{}, fn::Square{}, fn::Reciprocal{}, fn::Exp{}, fn::Exp2{}, fn::Expm1{}, fn::Log{},
        fn::Log1p{}, fn::Log2{}, fn::Log10{}, fn::Sqrt{}, fn::Rsqrt{}, fn::Cbrt{}, fn::Sin{},
        fn::Cos{}, fn::Tan{}, fn::Asin{}, fn::Acos{}, fn::Atan{}, fn::Sinh{}, fn::Cosh{},
        fn::Tanh{}, fn::Asinh{}, fn::Acosh{}, fn::Atanh{}, fn::Erf{}, fn::Gelu{},
        fn::GeluGradient{}, fn::GeluTanh{}, fn::GeluTanhSlope{}, fn::Sigmoid{}, fn::Silu{},
        fn::SiluSlope{});
  for (const auto& [x, y] : {std::pair{not_a_number, 2.0}, {2.0, not_a_number}}) {
    CHECK(std::isnan(slope_at<1>(fn::Divide{}, x, y)));
    CHECK(std::isnan(slope_at<0>(fn::Pow{}, x, y)));
    CHECK(std::isnan(slope_at<1>(fn::Pow{}, x, y)));
    CHECK(std::isnan(slope_at<0>(fn::Atan2{}, x, y)));
    CHECK(std::isnan(slope_at<1>(fn::Atan2{}, x, y)));
    CHECK(std::isnan(slope_at<0>(fn::LogAddExp{}, x, y)));
    CHECK(std::isnan(slope_at<1>(fn::Remainder{}, x, y)));
  }
  // As in JAX, what chooses chooses nothing.
  CHECK(slope_at<0>(fn::Maximum{}, not_a_number, 1.0) == 0);
  CHECK(slope_at<0>(fn::Relu{}, not_a_number) == 0);
  CHECK(slope_at<0>(fn::ClampTo<double>{-1, 1}, not_a_number) == 0);
}

TEST_CASE("derivatives that select, and those that are 0 or 1") {
  using D = Derivative<fn::Select, 1>;
  using E = Derivative<fn::Select, 2>;
  static_assert(D::reads == Reads{0} && E::reads == Reads{0});
  for (const bool condition : {false, true}) {
    CHECK(D::of(fn::Select{})(condition) == condition);
    CHECK(E::of(fn::Select{})(condition) == !condition);
    using WithElse = fn::Fixed<fn::Select, 2, float>;
    using WithBoth = fn::Fixed<WithElse, 1, float>;
    using WithThen = fn::Fixed<fn::Select, 1, float>;
    CHECK(Derivative<WithElse, 1>::of(WithElse{})(condition) == condition);
    CHECK(Derivative<WithThen, 1>::of(WithThen{})(condition) == !condition);
    static_assert(Derivative<WithElse, 0>::slope == Slope::zero);
    static_assert(Derivative<WithBoth, 0>::slope == Slope::zero);
    static_assert(Derivative<WithThen, 1>::reads == Reads{0});
  }
  const auto is_zero = []<class... F>(const F&...) {
    return ((Derivative<F, 0>::slope == Slope::zero) && ...);
  };
  CHECK(is_zero(fn::Floor{}, fn::Ceil{}, fn::Round{}, fn::Trunc{}, fn::Sign{}, fn::Select{}));
  static_assert(Derivative<fn::Cast<half>, 0>::slope == Slope::one);
  static_assert(Derivative<fn::Same, 0>::slope == Slope::one);
}

TEST_CASE("what has no derivative") {
  const auto none = []<class... F>(const F&...) { return (!detail::HasDerivative<F, 0> && ...); };
  CHECK(none(fn::Real{}, fn::Imag{}, fn::Conj{}, fn::Arg{}, fn::MakeComplex{}, Blend{},
             fn::Fixed<Blend, 1, double>{}));
  static_assert(!std::is_invocable_v<FunctorOf<fn::Abs, 0>, complex<float>>);
}

TEST_CASE("derivatives of holomorphic functions of complex numbers") {
  using C = complex<double>;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform(0.4, 2);
  const auto near = [](C a, C b) {
    return std::hypot(a.re - b.re, a.im - b.im) <= 1e-8 * (1 + std::hypot(b.re, b.im));
  };
  const auto slope_of = []<int I, std::size_t N, class F>(const F& f, const Point<N, C>& z) {
    using D = Derivative<F, I>;
    if constexpr (D::slope == Slope::function)
      return C(value(D::of(f), read<I>(f, z)));
    else
      return C(D::slope == Slope::one ? 1.0 : -1.0);
  };
  const auto check_one = [&]<int I, std::size_t N, class F>(const F& f) {
    CAPTURE(std::string(detail::function_name<F>()));
    for (int n = 0; n < 50; ++n) {
      Point<N, C> z{};
      for (auto& part : z)
        part = C(uniform(random), n % 2 == 0 ? uniform(random) : -uniform(random));
      for (const C h : {C(1e-5, 0), C(0, 1e-5)}) {  // the same along both axes
        auto above = z, below = z;
        above[I] += h;
        below[I] -= h;
        const C wanted = (value(f, above) - value(f, below)) / (h + h);
        CHECK(near(slope_of.template operator()<I, N>(f, z), wanted));
      }
    }
  };
  check_one.operator()<0, 1>(fn::Negate{});
  check_one.operator()<0, 1>(fn::Square{});
  check_one.operator()<0, 1>(fn::Reciprocal{});
  check_one.operator()<0, 1>(fn::Scale{1.5});
  check_one.operator()<0, 1>(fn::Shift{1.5});
  check_one.operator()<0, 2>(fn::Add{});
  check_one.operator()<1, 2>(fn::Subtract{});
  check_one.operator()<0, 2>(fn::Multiply{});
  check_one.operator()<1, 2>(fn::Multiply{});
  check_one.operator()<0, 2>(fn::Divide{});
  check_one.operator()<1, 2>(fn::Divide{});
  check_one.operator()<0, 2>(fn::NegativeQuotient{});
  check_one.operator()<1, 2>(fn::NegativeQuotient{});
  check_one.operator()<0, 1>(fn::Fixed<fn::Divide, 0, C>{{}, C(1, 2)});
  check_one.operator()<0, 1>(fn::Fixed<fn::Multiply, 1, C>{{}, C(1, 2)});
  using F = complex<float>;
  static_assert(std::is_same_v<decltype(fn::NegativeQuotient{}(F{}, F{})), F>);
}

TEST_CASE("what a derivative reads of a function with a fixed argument") {
  using Product = fn::Fixed<fn::Multiply, 1, float>;
  static_assert(Derivative<Product, 0>::reads == Reads{});
  static_assert(std::is_same_v<decltype(Derivative<Product, 0>::of(Product{})()), float>);
  CHECK(Derivative<Product, 0>::of(Product{{}, 2.5f})() == 2.5f);
  using Quotient = fn::Fixed<fn::Divide, 0, float>;  // v / x
  static_assert(Derivative<Quotient, 0>::reads == Reads{reads_result, 0});
  using Power = fn::Fixed<fn::Pow, 0, float>;  // v^x: log(v) r
  static_assert(Derivative<Power, 0>::reads == Reads{reads_result});
  using Low = fn::Fixed<fn::Clamp, 1, double>;
  static_assert(Derivative<Low, 1>::reads == Reads{0, 1});
  static_assert(Derivative<fn::Fixed<fn::Subtract, 0, double>, 0>::slope == Slope::minus_one);
  static_assert(Derivative<fn::Fixed<fn::Subtract, 1, double>, 0>::slope == Slope::one);
}

TEST_CASE("functors that bring their derivatives") {
  static_assert(detail::BringsDerivative<Softplus, float>);
  static_assert(detail::BringsDerivative<Mix, float, float>);
  static_assert(!detail::BringsDerivative<Mix, float>);
  static_assert(detail::BringsDerivative<MeanOfThree, double, double, double>);
  static_assert(!detail::BringsDerivative<Blend, double, double, double>);
  static_assert(!detail::BringsDerivative<fn::Sin, double>);
  check_own<0>(Softplus{}, draw(Domain<1>{{{-3, 3}}}));
  const auto two = draw(Domain<2>{{{-3, 3}, {-3, 3}}});
  check_own<0>(Mix{}, two);
  check_own<1>(Mix{}, two);
  check_own<2>(MeanOfThree{}, draw(Domain<3>{{{-3, 3}, {-3, 3}, {-3, 3}}}));

  using First = fn::Fixed<Mix, 0, double>;
  using Second = fn::Fixed<Mix, 1, double>;
  static_assert(detail::BringsDerivative<First, double> &&
                detail::BringsDerivative<Second, double>);
  static_assert(!detail::BringsDerivative<fn::Fixed<fn::Add, 1, double>, double>);
  check_own<0>(First{{}, 1.5}, draw(Domain<1>{{{-3, 3}}}));
  check_own<0>(Second{{}, 1.5}, draw(Domain<1>{{{-3, 3}}}));
  check_own<1>(fn::Fixed<MeanOfThree, 1, double>{{}, 1.5}, two);
  check_own<0>(fn::Fixed<MeanOfThree, 2, double>{{}, 1.5}, two);
}
