// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
// Every elementwise function on every element type that it is defined for, against plain arithmetic
// in double or in 64 bits; what is not defined; and what each function claims of unfinished values.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>

#include "support/special_values.hpp"

using namespace tessera;
using support::special_values;

namespace {
using bf16 = tessera::bfloat16;

/// Same value, NaN equal to NaN, zeros by their sign.
template <class T> bool same(T a, T b) {
  if constexpr (RealElement<T>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return (x != x && y != y) || (x == y && std::signbit(x) == std::signbit(y));
  } else {
    return a == b;
  }
}
/// Within `ulps` units of T's last place, for functions that are computed in T or in float.
template <class T> bool close(T a, double exact, double units) {
  const T near = static_cast<T>(exact);
  const double x = static_cast<double>(a), y = static_cast<double>(near);
  if (x == y || (x != x && y != y)) return true;
  if (std::isinf(y) || std::isinf(x)) return false;
  const double eps = static_cast<double>(std::numeric_limits<T>::epsilon());
  const double least = static_cast<double>(std::numeric_limits<T>::min());
  return std::fabs(x - exact) <= units * eps * std::max(std::fabs(exact), least);
}

template <class T, class F, class G> void unary(const char* name, F f, G exact, double units = 3) {
  for (const T x : special_values<T>()) {
    INFO(name << " of " << name_of(dtype_of<T>) << " " << static_cast<double>(x));
    CHECK(close(f(x), exact(static_cast<double>(x)), units));
  }
}
template <class... T, class F> void for_types(F f) { (f(T{}), ...); }

template <class F, class... T> constexpr bool takes = std::is_invocable_v<const F&, T...>;
using C64 = complex<float>;
}  // namespace

TEST_CASE("functions of real numbers, on each real type") {
  for_types<half, bf16, float, double>([](auto zero) {
    using T = decltype(zero);
    unary<T>("exp", fn::Exp{}, [](double x) { return std::exp(x); });
    unary<T>("exp2", fn::Exp2{}, [](double x) { return std::exp2(x); });
    unary<T>("expm1", fn::Expm1{}, [](double x) { return std::expm1(x); });
    unary<T>("log", fn::Log{}, [](double x) { return std::log(x); });
    unary<T>("log1p", fn::Log1p{}, [](double x) { return std::log1p(x); });
    unary<T>("log2", fn::Log2{}, [](double x) { return std::log2(x); });
    unary<T>("log10", fn::Log10{}, [](double x) { return std::log10(x); });
    unary<T>("sqrt", fn::Sqrt{}, [](double x) { return std::sqrt(x); });
    unary<T>("rsqrt", fn::Rsqrt{}, [](double x) { return 1 / std::sqrt(x); });
    unary<T>("cbrt", fn::Cbrt{}, [](double x) { return std::cbrt(x); });
    unary<T>("sin", fn::Sin{}, [](double x) { return std::sin(x); });
    unary<T>("cos", fn::Cos{}, [](double x) { return std::cos(x); });
    unary<T>("tan", fn::Tan{}, [](double x) { return std::tan(x); });
    unary<T>("asin", fn::Asin{}, [](double x) { return std::asin(x); });
    unary<T>("acos", fn::Acos{}, [](double x) { return std::acos(x); });
    unary<T>("atan", fn::Atan{}, [](double x) { return std::atan(x); });
    unary<T>("sinh", fn::Sinh{}, [](double x) { return std::sinh(x); });
    unary<T>("cosh", fn::Cosh{}, [](double x) { return std::cosh(x); });
    unary<T>("tanh", fn::Tanh{}, [](double x) { return std::tanh(x); });
    unary<T>("asinh", fn::Asinh{}, [](double x) { return std::asinh(x); });
    unary<T>("acosh", fn::Acosh{}, [](double x) { return std::acosh(x); });
    unary<T>("atanh", fn::Atanh{}, [](double x) { return std::atanh(x); });
    unary<T>("erf", fn::Erf{}, [](double x) { return std::erf(x); });
    unary<T>("sigmoid", fn::Sigmoid{}, [](double x) { return 1 / (1 + std::exp(-x)); });
    unary<T>(
        "silu", fn::Silu{},
        [](double x) { return std::isinf(x) && x < 0 ? -0.0 : x / (1 + std::exp(-x)); }, 4);
    unary<T>(
        "floor", fn::Floor{}, [](double x) { return std::floor(x); }, 0);
    unary<T>(
        "ceil", fn::Ceil{}, [](double x) { return std::ceil(x); }, 0);
    unary<T>(
        "round", fn::Round{}, [](double x) { return std::rint(x); }, 0);
    unary<T>(
        "trunc", fn::Trunc{}, [](double x) { return std::trunc(x); }, 0);
    unary<T>(
        "abs", fn::Abs{}, [](double x) { return std::fabs(x); }, 0);
    unary<T>(
        "negate", fn::Negate{}, [](double x) { return -x; }, 0);
    unary<T>(
        "square", fn::Square{}, [](double x) { return x * x; }, 1);
    unary<T>(
        "reciprocal", fn::Reciprocal{}, [](double x) { return 1 / x; }, 1);
    unary<T>(
        "sign", fn::Sign{}, [](double x) { return x > 0   ? 1.0
                                                  : x < 0 ? -1.0
                                                          : x; }, 0);
    unary<T>(
        "relu", fn::Relu{}, [](double x) { return x < 0 ? 0.0 : x; }, 0);
    unary<T>(
        "clamp", fn::ClampTo<T>{T(-1.0f), T(2.0f)},
        [](double x) { return x < -1  ? -1.0
                              : x > 2 ? 2.0
                                      : x; }, 0);
    for (const T x : special_values<T>())
      for (const T y : special_values<T>()) {
        const double a = static_cast<double>(x), b = static_cast<double>(y);
        INFO(name_of(dtype_of<T>) << " " << a << " and " << b);
        CHECK(close(fn::Add{}(x, y), a + b, 1));
        CHECK(close(fn::Subtract{}(x, y), a - b, 1));
        CHECK(close(fn::Multiply{}(x, y), a * b, 1));
        CHECK(close(fn::Divide{}(x, y), a / b, 1));
        CHECK(close(fn::Atan2{}(x, y), std::atan2(a, b), 2));
        CHECK(close(fn::Pow{}(x, y), std::pow(a, b), 2));
        CHECK(fn::Equal{}(x, y) == (a == b));
        CHECK(fn::NotEqual{}(x, y) == (a != b));
        CHECK(fn::Less{}(x, y) == (a < b));
        CHECK(fn::LessEqual{}(x, y) == (a <= b));
        CHECK(fn::Greater{}(x, y) == (a > b));
        CHECK(fn::GreaterEqual{}(x, y) == (a >= b));
        const bool nan = a != a || b != b;
        CHECK(close(fn::Maximum{}(x, y), nan ? std::nan("") : std::max(a, b), 0));
        CHECK(close(fn::Minimum{}(x, y), nan ? std::nan("") : std::min(a, b), 0));
        CHECK(same(fn::Select{}(true, x, y), x));
        CHECK(same(fn::Select{}(false, x, y), y));
      }
    for (const T x : special_values<T>()) {
      const double a = static_cast<double>(x);
      CHECK(fn::IsNan{}(x) == std::isnan(a));
      CHECK(fn::IsInf{}(x) == std::isinf(a));
      CHECK(fn::IsFinite{}(x) == std::isfinite(a));
    }
  });
}

TEST_CASE("the remainder has the sign of the divisor") {
  for_types<half, bf16, float, double>([](auto zero) {
    using T = decltype(zero);
    CHECK(same(fn::Remainder{}(T(-7.0f), T(3.0f)), T(2.0f)));
    CHECK(same(fn::Remainder{}(T(7.0f), T(-3.0f)), T(-2.0f)));
    CHECK(same(fn::Remainder{}(T(6.0f), T(-3.0f)), T(-0.0f)));
    CHECK(same(fn::Remainder{}(T(5.5f), T(2.0f)), T(1.5f)));
    CHECK(fn::IsNan{}(fn::Remainder{}(T(1.0f), T(0.0f))));
    CHECK(fn::IsNan{}(fn::Remainder{}(std::numeric_limits<T>::infinity(), T(2.0f))));
    CHECK(same(fn::Remainder{}(T(1.0f), std::numeric_limits<T>::infinity()), T(1.0f)));
  });
}

TEST_CASE("integers wrap, on each integer type") {
  for_types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
            std::uint32_t, std::uint64_t>([](auto zero) {
    using T = decltype(zero);
    using U = std::make_unsigned_t<T>;
    const auto wrapped = [](std::uint64_t v) { return static_cast<T>(static_cast<U>(v)); };
    const int bits = static_cast<int>(sizeof(T)) * 8;
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    const auto wide = [](T v) { return static_cast<Wide>(v); };
    const auto all = [](T v) { return static_cast<std::uint64_t>(static_cast<Wide>(v)); };
    const auto negative = [](auto v) {
      if constexpr (std::is_signed_v<T>)
        return v < 0;
      else
        return v != v;
    };
    for (const T x : special_values<T>()) {
      INFO(name_of(dtype_of<T>) << " " << wide(x));
      CHECK(fn::Negate{}(x) == wrapped(0 - all(x)));
      CHECK(fn::Abs{}(x) == (negative(x) ? wrapped(0 - all(x)) : x));
      CHECK(fn::Square{}(x) == wrapped(all(x) * all(x)));
      CHECK(fn::Sign{}(x) == (x > 0 ? T(1) : negative(x) ? static_cast<T>(-1) : T{}));
      CHECK(fn::Relu{}(x) == (negative(x) ? T{} : x));
      CHECK(fn::Floor{}(x) == x);
      CHECK(fn::Ceil{}(x) == x);
      CHECK(fn::Round{}(x) == x);
      CHECK(fn::Trunc{}(x) == x);
      CHECK(fn::BitwiseNot{}(x) == wrapped(~all(x)));
      CHECK(!fn::IsNan{}(x));
      CHECK(!fn::IsInf{}(x));
      CHECK(fn::IsFinite{}(x));
      for (const T y : special_values<T>()) {
        INFO("and " << wide(y));
        CHECK(fn::Add{}(x, y) == wrapped(all(x) + all(y)));
        CHECK(fn::Subtract{}(x, y) == wrapped(all(x) - all(y)));
        CHECK(fn::Multiply{}(x, y) == wrapped(all(x) * all(y)));
        const bool overflows = std::is_signed_v<T> && wide(y) == static_cast<Wide>(-1);
        CHECK(fn::Divide{}(x, y) == (y == 0      ? T{}
                                     : overflows ? wrapped(0 - all(x))
                                                 : static_cast<T>(wide(x) / wide(y))));
        if (y == 0 || overflows) {
          CHECK(fn::Remainder{}(x, y) == 0);
        } else {
          const Wide rest = wide(x) % wide(y);
          CHECK(fn::Remainder{}(x, y) ==
                static_cast<T>(rest != 0 && negative(rest) != negative(y) ? rest + wide(y) : rest));
        }
        CHECK(fn::Maximum{}(x, y) == std::max(x, y));
        CHECK(fn::Minimum{}(x, y) == std::min(x, y));
        CHECK(fn::BitwiseAnd{}(x, y) == wrapped(all(x) & all(y)));
        CHECK(fn::BitwiseOr{}(x, y) == wrapped(all(x) | all(y)));
        CHECK(fn::BitwiseXor{}(x, y) == wrapped(all(x) ^ all(y)));
        const bool in_range = !negative(y) && wide(y) < static_cast<Wide>(bits);
        CHECK(fn::ShiftLeft{}(x, y) == (in_range ? wrapped(all(x) << wide(y)) : T{}));
        CHECK(fn::ShiftRight{}(x, y) == (in_range      ? static_cast<T>(wide(x) >> wide(y))
                                         : negative(x) ? static_cast<T>(-1)
                                                       : T{}));
        CHECK(fn::Less{}(x, y) == (x < y));
        CHECK(fn::LessEqual{}(x, y) == (x <= y));
        CHECK(fn::Greater{}(x, y) == (x > y));
        CHECK(fn::GreaterEqual{}(x, y) == (x >= y));
        CHECK(fn::Equal{}(x, y) == (x == y));
        CHECK(fn::NotEqual{}(x, y) == (x != y));
        CHECK(fn::Clamp{}(x, T(1), y) == std::min(std::max(x, T(1)), y));
        if (!negative(y) && y < 40) {
          std::uint64_t power = 1;
          for (T k = 0; k < y; ++k) power *= all(x);
          CHECK(fn::Pow{}(x, y) == wrapped(power));
        } else if (negative(y)) {
          CHECK(fn::Pow{}(x, y) == (x == 1 ? T(1)
                                    : wide(x) == static_cast<Wide>(-1)
                                        ? static_cast<T>(y % 2 == 0 ? 1 : -1)
                                        : T{}));
        }
      }
    }
  });
}

TEST_CASE("logic, and what has no order") {
  for (const bool a : {false, true}) {
    CHECK(fn::LogicalNot{}(a) == !a);
    for (const bool b : {false, true}) {
      CHECK(fn::LogicalAnd{}(a, b) == (a && b));
      CHECK(fn::LogicalOr{}(a, b) == (a || b));
      CHECK(fn::LogicalXor{}(a, b) == (a != b));
      CHECK(fn::Equal{}(a, b) == (a == b));
      CHECK(fn::Select{}(a, b, !b) == (a ? b : !b));
    }
  }
  const C64 z{3, -4}, w{0.5f, 2};
  CHECK(fn::Add{}(z, w) == C64{3.5f, -2});
  CHECK(fn::Multiply{}(z, w) == C64{9.5f, 4});
  CHECK(fn::Divide{}(fn::Multiply{}(z, w), w) == z);
  CHECK(fn::Abs{}(z) == 5.0f);
  CHECK(fn::Real{}(z) == 3.0f);
  CHECK(fn::Imag{}(z) == -4.0f);
  CHECK(fn::Conj{}(z) == C64{3, 4});
  CHECK(fn::Arg{}(z) == std::atan2(-4.0f, 3.0f));
  CHECK(fn::MakeComplex{}(3.0f, -4.0f) == z);
  CHECK(fn::Negate{}(z) == C64{-3, 4});
  CHECK(fn::Square{}(z) == C64{-7, -24});
  CHECK(fn::Equal{}(z, z));
  CHECK(fn::NotEqual{}(z, w));
  CHECK(fn::IsNan{}(C64{1, std::nanf("")}));

  static_assert(!takes<fn::Sin, int> && !takes<fn::Sin, C64> && takes<fn::Sin, half>);
  static_assert(!takes<fn::Less, C64, C64> && !takes<fn::Maximum, C64, C64>);
  static_assert(!takes<fn::Add, bool, bool> && !takes<fn::Add, float, double>);
  static_assert(!takes<fn::LogicalAnd, int, int> && !takes<fn::BitwiseAnd, float, float>);
  static_assert(!takes<fn::BitwiseAnd, bool, bool>);
  static_assert(!takes<fn::Select, int, float, float> && !takes<fn::Select, bool, float, double>);
  static_assert(!takes<fn::Floor, C64> && takes<fn::Floor, int> && !takes<fn::Floor, bool>);
  static_assert(!takes<fn::Real, float> && !takes<fn::MakeComplex, half, half>);
  static_assert(!takes<fn::Cast<float>, C64> && takes<fn::Cast<bool>, C64>);
  static_assert(!takes<fn::Fixed<fn::Sin, 0, float>, float>);
}

namespace {
template <class T, class U> void check_cast() {
  for (const T x : special_values<T>()) {
    const U y = fn::Cast<U>{}(x);
    if constexpr (std::is_same_v<T, U>) {
      CHECK(same(y, x));
    } else {
      const double value = static_cast<double>(x);
      INFO(name_of(dtype_of<T>) << " " << value << " to " << name_of(dtype_of<U>));
      if constexpr (std::is_same_v<U, bool>) {
        CHECK(y == (value != 0));
      } else if constexpr (RealElement<U>) {
        if constexpr (IntegerElement<T>)
          CHECK(same(y, static_cast<U>(x)));  // rounded once, from all 64 bits
        else
          CHECK(same(y, static_cast<U>(value)));
      } else if constexpr (RealElement<T>) {
        using Limits = std::numeric_limits<U>;
        const double cut = std::trunc(value);
        if (value != value)
          CHECK(y == 0);
        else if (cut >= static_cast<double>(Limits::max()))
          CHECK(y == Limits::max());
        else if (cut <= static_cast<double>(Limits::lowest()))
          CHECK(y == Limits::lowest());
        else
          CHECK(static_cast<double>(y) == cut);
      } else {
        CHECK(y == static_cast<U>(static_cast<std::int64_t>(x)));  // modulo 2 to its bits
      }
    }
  }
}
template <class T> void check_casts() {
  for_types<half, bf16, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
            std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>(
      [](auto zero) { check_cast<T, decltype(zero)>(); });
  CHECK(fn::Cast<complex<double>>{}(static_cast<T>(1)) == complex<double>{1, 0});
}
}  // namespace

TEST_CASE("casts between all element types") {
  for_types<half, bf16, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
            std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>(
      [](auto zero) { check_casts<decltype(zero)>(); });
  CHECK(fn::Cast<C64>{}(complex<double>{1.5, -2}) == C64{1.5f, -2});
  CHECK(fn::Cast<complex<double>>{}(C64{1.5f, -2}) == complex<double>{1.5, -2});
  CHECK(fn::Cast<bool>{}(C64{0, 1}));
  CHECK(!fn::Cast<bool>{}(C64{0, 0}));
}

// What functions claim of unfinished values (base/linearity.hpp), enumerated over all pairs of
// samples.
namespace {
template <class T> T larger(T a, T b) { return fn::Maximum{}(a, b); }
template <class T> T smaller(T a, T b) { return fn::Minimum{}(a, b); }

/// Equal, or as near as a function's own error may bring neighbours out of order.
template <class R> bool nearly(R a, R b) {
  if (same(a, b) || a == b) return true;
  if constexpr (RealElement<R>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    const double eps = static_cast<double>(std::numeric_limits<R>::epsilon());
    return std::fabs(x - y) <= 4 * eps * std::max(std::fabs(x), std::fabs(y));
  }
  return false;
}

template <class T, class F> bool is_monotone(F f) {
  for (const T x : special_values<T>())
    for (const T y : special_values<T>())
      if (!nearly(f(larger(x, y)), larger(f(x), f(y))) ||
          !nearly(f(smaller(x, y)), smaller(f(x), f(y))))
        return false;
  return true;
}
/// Whether f(x + y) is f(x) + f(y), to rounding; of floats whose sums stay finite.
template <class T, class F> bool is_linear(F f) {
  for (const T x : special_values<T>())
    for (const T y : special_values<T>()) {
      using R = decltype(f(x));
      const T sum = fn::Add{}(x, y);
      const R left = f(sum), right = fn::Add{}(f(x), f(y));
      if constexpr (RealElement<T> && RealElement<R>) {
        if (!fn::IsFinite{}(sum) || !fn::IsFinite{}(right) || !fn::IsFinite{}(left)) continue;
        const double size =
            std::fabs(static_cast<double>(f(x))) + std::fabs(static_cast<double>(f(y)));
        const double eps = std::max(static_cast<double>(std::numeric_limits<T>::epsilon()),
                                    static_cast<double>(std::numeric_limits<R>::epsilon()));
        const double least = 4 * static_cast<double>(std::numeric_limits<R>::denorm_min());
        if (!(std::fabs(static_cast<double>(left) - static_cast<double>(right)) <=
              4 * eps * size + least))
          return false;
      } else if (!same(left, right)) {
        return false;
      }
    }
  return true;
}

/// Whether f(x y) is f(x) f(y), to rounding; of floats whose products stay within their range.
template <class T, class F> bool is_multiplicative(F f) {
  for (const T x : special_values<T>())
    for (const T y : special_values<T>()) {
      using R = decltype(f(x));
      const T product = fn::Multiply{}(x, y);
      const R left = f(product), right = fn::Multiply{}(f(x), f(y));
      if constexpr (RealElement<T>) {
        const auto ordinary = [](auto v) {
          const double size = std::fabs(static_cast<double>(v));
          return size >= static_cast<double>(std::numeric_limits<R>::min()) &&
                 size <= static_cast<double>(std::numeric_limits<R>::max());
        };
        if (!ordinary(product) || !ordinary(left) || !ordinary(right) || !ordinary(f(x)) ||
            !ordinary(f(y)) || !ordinary(x) || !ordinary(y))
          continue;
        const double eps = static_cast<double>(std::numeric_limits<R>::epsilon());
        if (!(std::fabs(static_cast<double>(left) - static_cast<double>(right)) <=
              4 * eps * std::fabs(static_cast<double>(right))))
          return false;
      } else if (!same(left, right)) {
        return false;
      }
    }
  return true;
}

template <class... T> bool has_nan(T... x) { return (!(x == x) || ...); }

/// A claim is true: what may act on a maximum or minimum is monotone, on a sum linear.
template <class T, class F> void check_claim(F f) {
  constexpr Linearity claim = detail::stated_linearity<F, T>();
  INFO(detail::function_name<F>() << " of " << name_of(dtype_of<T>));
  if constexpr (has(claim, Linearity::monotone)) CHECK(is_monotone<T>(f));
  if constexpr (has(claim, Linearity::linear)) CHECK(is_linear<T>(f));
  if constexpr (has(claim, Linearity::multiplicative)) CHECK(is_multiplicative<T>(f));
}
template <class T, class... F> void check_claims() { (check_claim<T>(F{}), ...); }
template <class T, class... U> void check_casts_of() { (check_claim<T>(fn::Cast<U>{}), ...); }
}  // namespace

TEST_CASE("what functions claim of unfinished values is so") {
  for_types<half, bf16, float, double>([](auto zero) {
    using T = decltype(zero);
    check_claims<T, fn::Exp, fn::Exp2, fn::Expm1, fn::Log, fn::Log1p, fn::Log2, fn::Log10, fn::Sqrt,
                 fn::Rsqrt, fn::Cbrt, fn::Sin, fn::Cos, fn::Tan, fn::Asin, fn::Acos, fn::Atan,
                 fn::Sinh, fn::Cosh, fn::Tanh, fn::Asinh, fn::Acosh, fn::Atanh, fn::Erf, fn::Gelu,
                 fn::GeluTanh, fn::Sigmoid, fn::Silu>();
  });
  for_types<half, bf16, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
            std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>([](auto zero) {
    using T = decltype(zero);
    check_claims<T, fn::Relu, fn::ReluGradient, fn::Floor, fn::Ceil, fn::Round, fn::Trunc, fn::Sign,
                 fn::Abs, fn::Negate, fn::Square, fn::Reciprocal>();
    check_casts_of<T, half, bf16, float, double, std::int8_t, std::int16_t, std::int32_t,
                   std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>();
    for (const T value : special_values<T>()) {
      check_claim<T>(fn::Fixed<fn::Maximum, 1, T>{{}, value});
      check_claim<T>(fn::Fixed<fn::Minimum, 0, T>{{}, value});
      check_claim<T>(fn::Fixed<fn::Multiply, 1, T>{{}, value});
      check_claim<T>(fn::Fixed<fn::Multiply, 0, T>{{}, value});
      check_claim<T>(fn::Fixed<fn::Divide, 1, T>{{}, value});
      for (const T high : special_values<T>()) check_claim<T>(fn::ClampTo<T>{value, high});
    }
    // Two maxima that are both open: the larger of the two on each process, and then over
    // processes.
    bool maxima = true, minima = true;
    for (const T a : special_values<T>())
      for (const T b : special_values<T>())
        for (const T c : special_values<T>()) {
          const T d = T(1);
          maxima = maxima && (larger(larger(a, b), larger(c, d)) ==
                              larger(larger(a, c), larger(b, d))) == !has_nan(a, b, c);
          minima = minima && (smaller(smaller(a, b), smaller(c, d)) ==
                              smaller(smaller(a, c), smaller(b, d))) == !has_nan(a, b, c);
        }
    CHECK(maxima);
    CHECK(minima);
  });
  // The enumeration can tell: these are neither.
  CHECK(!is_monotone<float>(fn::Sin{}));
  CHECK(!is_monotone<float>(fn::Log{}));
  CHECK(!is_monotone<float>(fn::Cast<std::int32_t>{}));
  CHECK(!is_monotone<std::int64_t>(fn::Cast<std::int32_t>{}));
  CHECK(!is_monotone<std::int32_t>(fn::Negate{}));
  CHECK(!is_linear<std::int32_t>(fn::Cast<std::int64_t>{}));
  CHECK(!is_linear<std::int32_t>(fn::Fixed<fn::Divide, 1, std::int32_t>{{}, 2}));
  CHECK(!is_linear<double>(fn::Fixed<fn::Add, 1, double>{{}, 1.0}));
  CHECK(!is_multiplicative<double>(fn::Negate{}));
  CHECK(!is_multiplicative<std::int8_t>(fn::Abs{}));
  CHECK(!is_multiplicative<std::int32_t>(fn::Fixed<fn::Multiply, 1, std::int32_t>{{}, 2}));

  static_assert(detail::stated_linearity<fn::Cast<double>, float>() == Linearity::linear_monotone);
  static_assert(detail::stated_linearity<fn::Cast<std::int64_t>, std::int32_t>() ==
                Linearity::monotone);
  static_assert(detail::stated_linearity<fn::Cast<std::int32_t>, std::int64_t>() ==
                Linearity::linear);
  static_assert(detail::stated_linearity<fn::Cast<std::int32_t>, float>() == Linearity::pointwise);
  static_assert(detail::stated_linearity<fn::Cast<complex<double>>, float>() == Linearity::linear);
  static_assert(detail::stated_linearity<fn::Fixed<fn::Divide, 1, double>, double>() ==
                Linearity::linear);
  static_assert(detail::stated_linearity<fn::Fixed<fn::Divide, 0, double>, double>() ==
                Linearity::pointwise);
  static_assert(detail::stated_linearity<fn::Fixed<fn::Divide, 1, int>, int>() ==
                Linearity::pointwise);
  static_assert(detail::stated_linearity<fn::Fixed<fn::Add, 1, double>, double>() ==
                Linearity::pointwise);
}
