// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// Elementwise operators on tensors: every function once, a few of them over meshes, specs and
// ragged extents, and scalars on either side.
#include "op/elementwise_cases.hpp"

using namespace elementwise;

namespace {
/// The expression as a tensor of x (and y), and as a number of their elements.
#define SAME_OF(X, expression)                                       \
  if (const std::string text = differs(                              \
          #expression, [&](const auto& x) { return expression; }(X), \
          [](const auto& x) { return expression; }, X);              \
      !text.empty())                                                 \
  return text
#define SAME_OF_TWO(X, Y, expression)                                                  \
  if (const std::string text = differs(                                                \
          #expression, [&](const auto& x, const auto& y) { return expression; }(X, Y), \
          [](const auto& x, const auto& y) { return expression; }, X, Y);              \
      !text.empty())                                                                   \
  return text

// What the names mean on numbers, so that one expression is both: in double, and rounded.
template <class T>
concept Plain = Element<T>;
template <Plain T> T exp(T x) { return static_cast<T>(std::exp(static_cast<double>(x))); }
#define ON_NUMBERS(name, formula)                              \
  template <RealElement T> T name(T x_) {                      \
    [[maybe_unused]] const double x = static_cast<double>(x_); \
    return static_cast<T>(formula);                            \
  }
ON_NUMBERS(exp2, std::exp2(x))
ON_NUMBERS(expm1, std::expm1(x))
ON_NUMBERS(log, std::log(x))
ON_NUMBERS(log2, std::log2(x))
ON_NUMBERS(log10, std::log10(x))
ON_NUMBERS(log1p, std::log1p(x))
ON_NUMBERS(sqrt, std::sqrt(x))
ON_NUMBERS(rsqrt, 1 / std::sqrt(x))
ON_NUMBERS(cbrt, std::cbrt(x))
ON_NUMBERS(sin, std::sin(x))
ON_NUMBERS(cos, std::cos(x))
ON_NUMBERS(tan, std::tan(x))
ON_NUMBERS(asin, std::asin(x))
ON_NUMBERS(acos, std::acos(x))
ON_NUMBERS(atan, std::atan(x))
ON_NUMBERS(sinh, std::sinh(x))
ON_NUMBERS(cosh, std::cosh(x))
ON_NUMBERS(tanh, std::tanh(x))
ON_NUMBERS(asinh, std::asinh(x))
ON_NUMBERS(acosh, std::acosh(x))
ON_NUMBERS(atanh, std::atanh(x))
ON_NUMBERS(erf, std::erf(x))
ON_NUMBERS(sigmoid, 1 / (1 + std::exp(-x)))
ON_NUMBERS(silu, x / (1 + std::exp(-x)))
ON_NUMBERS(gelu, 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))))
ON_NUMBERS(relu, x > 0 ? x : 0)
ON_NUMBERS(floor, std::floor(x))
ON_NUMBERS(ceil, std::ceil(x))
ON_NUMBERS(round, std::rint(x))
ON_NUMBERS(trunc, std::trunc(x))
ON_NUMBERS(sign, x > 0 ? 1 : x < 0 ? -1 : x)
ON_NUMBERS(abs, std::fabs(x))
ON_NUMBERS(square, x* x)
ON_NUMBERS(reciprocal, 1 / x)
template <RealElement T> T pow(T x, double y) {
  return static_cast<T>(std::pow(static_cast<double>(x), y));
}
template <RealElement T> T pow(double x, T y) {
  return static_cast<T>(std::pow(x, static_cast<double>(y)));
}
template <RealElement T> T pow(T x, T y) {
  return static_cast<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
}
template <RealElement T> T atan2(T x, T y) {
  return static_cast<T>(std::atan2(static_cast<double>(x), static_cast<double>(y)));
}
template <RealElement T> T remainder(T x, T y) {
  const double a = static_cast<double>(x), b = static_cast<double>(y);
  return static_cast<T>(a - std::floor(a / b) * b);
}
template <RealElement T> T clamp(T x, double low, double high) {
  return static_cast<T>(std::min(std::max(static_cast<double>(x), low), high));
}
template <Plain T> T maximum(T x, T y) { return x < y ? y : x; }
template <Plain T> T minimum(T x, T y) { return x < y ? x : y; }
template <Plain T> bool equal(T x, T y) { return x == y; }
template <Plain T> bool not_equal(T x, T y) { return x != y; }
template <RealElement T> bool isnan(T x) { return x != x; }
template <RealElement T> bool isinf(T x) { return std::isinf(static_cast<double>(x)); }
template <RealElement T> bool isfinite(T x) { return std::isfinite(static_cast<double>(x)); }
}  // namespace

TEST_CASE("every function is that function of each element") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto a = make<Float<data, model>>(mesh, {5, 7}, 1);
    const auto b = make<Float<model, _>>(mesh, {5, 7}, 2);
    const auto c = make<Float<Axes<model, data>>>(mesh, {7}, 3);
    SAME_OF(a, exp(x));
    SAME_OF(a, exp2(x));
    SAME_OF(a, expm1(x));
    SAME_OF(a, log(x));
    SAME_OF(a, log2(x));
    SAME_OF(a, log10(x));
    SAME_OF(a, log1p(x));
    SAME_OF(a, sqrt(x));
    SAME_OF(a, rsqrt(x));
    SAME_OF(a, cbrt(x));
    SAME_OF(a, sin(x));
    SAME_OF(a, cos(x));
    SAME_OF(a, tan(x));
    SAME_OF(a, asin(x));
    SAME_OF(a, acos(x));
    SAME_OF(a, atan(x));
    SAME_OF(a, sinh(x));
    SAME_OF(a, cosh(x));
    SAME_OF(a, tanh(x));
    SAME_OF(a, asinh(x));
    SAME_OF(a, acosh(x));
    SAME_OF(a, atanh(x));
    SAME_OF(a, erf(x));
    SAME_OF(a, sigmoid(x));
    SAME_OF(a, silu(x));
    SAME_OF(a, gelu(x));
    SAME_OF(a, relu(x));
    SAME_OF(a, floor(x));
    SAME_OF(a, ceil(x));
    SAME_OF(a, round(x));
    SAME_OF(a, trunc(x));
    SAME_OF(a, sign(x));
    SAME_OF(a, abs(x));
    SAME_OF(a, square(x));
    SAME_OF(a, reciprocal(x));
    SAME_OF(a, -x);
    SAME_OF(a, clamp(x, -1, 0.5));
    SAME_OF(a, pow(x, 2));
    SAME_OF(a, pow(2.5, x));
    SAME_OF(a, isnan(log(x)));
    SAME_OF(a, isinf(log(x)));
    SAME_OF(a, isfinite(log(x)));
    SAME_OF_TWO(a, b, x + y);
    SAME_OF_TWO(a, c, x - y);
    SAME_OF_TWO(c, a, x * y);
    SAME_OF_TWO(a, b, x / y);
    SAME_OF_TWO(a, b, pow(x, y));
    SAME_OF_TWO(a, c, atan2(x, y));
    SAME_OF_TWO(a, b, remainder(x, y));
    SAME_OF_TWO(a, b, maximum(x, y));
    SAME_OF_TWO(a, c, minimum(x, y));
    SAME_OF_TWO(a, b, equal(x, y));
    SAME_OF_TWO(a, c, not_equal(x, y));
    SAME_OF_TWO(a, b, x < y);
    SAME_OF_TWO(a, c, x <= y);
    SAME_OF_TWO(a, b, x > y);
    SAME_OF_TWO(c, a, x >= y);
    return "";
  });
}

TEST_CASE("a number may stand on either side of every operator") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto v = make<Tensor<double, data, model>>(mesh, {5, 3}, 1);
    const auto n = make<Tensor<std::int32_t, model>>(mesh, {9}, 2);
    SAME_OF(v, x + 2);
    SAME_OF(v, 2 + x);
    SAME_OF(v, x - 2.5);
    SAME_OF(v, 2.5 - x);
    SAME_OF(v, x * 3);
    SAME_OF(v, 3 * x);
    SAME_OF(v, x / 4);
    SAME_OF(v, 4 / x);
    SAME_OF(v, x < 0.5);
    SAME_OF(v, 0.5 < x);
    SAME_OF(v, x <= 0.5);
    SAME_OF(v, 0.5 <= x);
    SAME_OF(v, x > 0.5);
    SAME_OF(v, 0.5 > x);
    SAME_OF(v, x >= 0.5);
    SAME_OF(v, 0.5 >= x);
    SAME_OF(n, x + 2);
    SAME_OF(n, 2 - x);
    SAME_OF(n, x * 3);
    SAME_OF(n, x / 2);
    SAME_OF(n, x > 1);
    SAME_OF(n, equal(x, 3));
    SAME_OF(n, not_equal(3, x));
    SAME_OF(n, maximum(x, 1));
    return "";
  });
}

TEST_CASE("comparisons, logic and choices") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = make<Float<data, model>>(mesh, {5, 7}, 1);
    const auto y = make<Float<_, data>>(mesh, {5, 7}, 2);
    const auto row = make<Tensor<bool, model>>(mesh, {7}, 3);
    const auto t = x > 0.25f;
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(t)>, Tensor<bool, data, model>>);
    const auto text = [&]() -> std::string {
      if (auto s = differs(
              "and", logical_and(t, row), [](bool a, bool b) { return a && b; }, t, row);
          !s.empty())
        return s;
      if (auto s = differs(
              "or", logical_or(row, t), [](bool a, bool b) { return a || b; }, row, t);
          !s.empty())
        return s;
      if (auto s = differs(
              "xor", logical_xor(t, row), [](bool a, bool b) { return a != b; }, t, row);
          !s.empty())
        return s;
      if (auto s = differs(
              "not", logical_not(t), [](bool a) { return !a; }, t);
          !s.empty())
        return s;
      if (auto s = differs(
              "where", where(row, x, y), [](bool c, float a, float b) { return c ? a : b; }, row, x,
              y);
          !s.empty())
        return s;
      if (auto s = differs(
              "where 0", where(t, x, 0), [](bool c, float a) { return c ? a : 0; }, t, x);
          !s.empty())
        return s;
      if (auto s = differs(
              "where 1", where(row, 1, y), [](bool c, float b) { return c ? 1 : b; }, row, y);
          !s.empty())
        return s;
      return differs(
          "where 1 0", where(t, 1.5, -0.5), [](bool c) { return c ? 1.5 : -0.5; }, t);
    };
    return text();
  });
}

namespace {
struct Place {
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i, float x, std::int32_t y) const {
    std::int64_t value = i.linear();
    for (int d = 0; d < i.size(); ++d) value = value * 11 + i[d];
    return value + static_cast<std::int64_t>(4 * x) + y;
  }
};
template <class X, class Y>
std::string check_index(const ProcessMesh<Grid>& mesh, const Extents& extents) {
  const auto x = make<X>(mesh, extents, 1);
  const auto y = make<Y>(mesh, Extents{extents.back()}, 2);
  const auto z = map_with_index(Place{}, x, y);
  static_assert(std::is_same_v<typename decltype(z)::value_type, std::int64_t>);
  const auto got = to_host(z);
  const auto first = to_host(x);
  const auto second = to_host(y);
  for (Index i = 0; i < volume(extents); ++i) {
    GlobalIndex at{{}, i, extents.size()};
    Index rest = i;
    for (int d = extents.size() - 1; d >= 0; --d)
      at.coordinate[d] = rest % extents[d], rest /= extents[d];
    if (got.values[static_cast<std::size_t>(i)] !=
        Place{}(at, first.values[static_cast<std::size_t>(i)], element(second, extents, i)))
      return "map_with_index: element " + std::to_string(i) + " of " + to_string(extents);
  }
  return "";
}
/// Tells its operands apart; of any two or three element types.
struct Weigh {
  template <class A, class B> KOKKOS_FUNCTION double operator()(A a, B b) const {
    return static_cast<double>(a) + 100 * static_cast<double>(b);
  }
  template <class A, class B, class C> KOKKOS_FUNCTION double operator()(A a, B b, C c) const {
    return (*this)(a, b) + 10000 * static_cast<double>(c);
  }
};
template <class X, class Y> std::string check_specs(const ProcessMesh<Grid>& mesh) {
  for (const Extents& wide :
       {Extents{5, 7}, Extents{1, 7}, Extents{4, 1}, Extents{1, 1}, Extents{0, 3}, Extents{8, 2}}) {
    const auto x = make<X>(mesh, wide, 1);
    for (const Extents& other : {wide, Extents{1, wide[1]}, Extents{wide[0], 1}, Extents{1, 1}}) {
      const auto y = make<Y>(mesh, other, 2);
      if (auto s = differs("Weigh", map(Weigh{}, x, y), Weigh{}, x, y); !s.empty())
        return s + " and " + to_string(other);
      if (auto s = differs("Weigh", map(Weigh{}, y, x), Weigh{}, y, x); !s.empty())
        return s + " and " + to_string(other);
    }
  }
  return "";
}
}  // namespace

TEST_CASE("maps over specs, ragged and empty blocks, stretched extents and mixed element types") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    using I = std::int32_t;
    for (const std::string& text :
         {check_specs<Float<data, model>, Tensor<I, data, model>>(mesh),
          check_specs<Float<data, model>, Tensor<I, model, data>>(mesh),
          check_specs<Float<_, _>, Tensor<I, Axes<data, model>, _>>(mesh),
          check_specs<Float<_, Axes<model, data>>, Tensor<I, data, _>>(mesh),
          check_specs<Float<model, _>, Tensor<I, _, model>>(mesh)})
      if (!text.empty()) return text;
    const auto x = make<Float<data, _, model>>(mesh, {3, 4, 5}, 1);
    const auto y = make<Tensor<std::int8_t, model>>(mesh, {5}, 2);
    const auto z = make<Tensor<double>>(mesh, Extents{}, 3);
    if (auto s = differs("three", map(Weigh{}, x, y, z), Weigh{}, x, y, z); !s.empty()) return s;
    const float shift = 2.5f;  // a lambda that captures
    return differs(
        "lambda",
        map([shift](float a, std::int8_t b) { return a * static_cast<float>(b) + shift; }, x, y),
        [shift](float a, std::int8_t b) { return a * static_cast<float>(b) + shift; }, x, y);
  });
}

TEST_CASE("a function of the place and the elements") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    using I = std::int32_t;
    for (const std::string& text :
         {check_index<Float<data, model>, Tensor<I, model>>(mesh, {5, 7}),
          check_index<Float<_, Axes<data, model>>, Tensor<I, _>>(mesh, {3, 5}),
          check_index<Float<model, _, data>, Tensor<I, data>>(mesh, {3, 2, 4}),
          check_index<Float<data>, Tensor<I, data>>(mesh, {3}),
          check_index<Float<_, _>, Tensor<I, data>>(mesh, {0, 3})})
      if (!text.empty()) return text;
    const auto x = make<Float<data, model>>(mesh, {5, 7}, 1);
    const auto turned = to_host(map_with_index<"ij->ji", P<data, model>>(
        [](const GlobalIndex& i, float v) {
          return v + 100 * static_cast<float>(i[0]) + 1000 * static_cast<float>(i[1]);
        },
        x));
    const auto whole = to_host(x);
    for (Index i = 0; i < 5; ++i)
      for (Index j = 0; j < 7; ++j)
        if (turned(j, i) !=
            whole(i, j) + 100 * static_cast<float>(j) + 1000 * static_cast<float>(i))
          return "by letters";
    return "";
  });
}
