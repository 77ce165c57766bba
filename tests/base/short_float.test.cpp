// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// half and bfloat16 against arithmetic that knows their values only: all patterns, and every
// boundary between two.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <tessera/base/short_float.hpp>

using namespace tessera;

namespace {

/// What a pattern stands for, by the definition of IEEE 754, section 3.4; exact in double.
template <class T> double meaning(std::uint16_t bits) {
  using Limits = std::numeric_limits<T>;
  const int mantissa_bits = Limits::digits - 1, bias = Limits::max_exponent - 1;
  const int exponent = (bits & 0x7fff) >> mantissa_bits,
            mantissa = bits & ((1 << mantissa_bits) - 1);
  double value = exponent == 2 * bias + 1 ? (mantissa == 0 ? INFINITY : NAN)
                 : exponent == 0
                     ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                     : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits & 0x8000 ? -value : value;
}

template <class T> std::vector<double> finite_values() {  // in order, from 0 up
  std::vector<double> values;
  for (unsigned bits = 0; std::isfinite(meaning<T>(static_cast<std::uint16_t>(bits))); ++bits)
    values.push_back(meaning<T>(static_cast<std::uint16_t>(bits)));
  return values;
}

template <class T> void check_all_patterns() {
  long wrong = 0;
  for (unsigned i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const T x = T::from_bits(bits);
    const double value = meaning<T>(bits);
    if (std::isnan(value)) {
      wrong += !std::isnan(static_cast<float>(x)) ||
               !std::isnan(static_cast<float>(T(static_cast<float>(x)))) || x == x;
    } else {
      wrong += static_cast<double>(static_cast<float>(x)) != value ||
               std::signbit(static_cast<float>(x)) != std::signbit(value);
      wrong += T(static_cast<float>(x)).bits() != bits || T(value).bits() != bits;
    }
    wrong += (-x).bits() != (bits ^ 0x8000);
  }
  CHECK(wrong == 0);
}

/// Between two neighbours: below the middle the lower, above it the upper, on it the one whose
/// pattern is even.
template <class T> void check_all_boundaries() {
  std::vector<double> values = finite_values<T>();
  values.push_back(2 * values.back() - values[values.size() - 2]);  // where infinity would be
  long wrong = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const double middle = (values[i] + values[i + 1]) / 2;
    const auto low = static_cast<std::uint16_t>(i), high = static_cast<std::uint16_t>(i + 1);
    const auto is = [&](auto x, std::uint16_t bits) {
      wrong += T(x).bits() != bits || T(-x).bits() != (bits | 0x8000);
    };
    is(middle, i % 2 == 0 ? low : high);
    is(std::nextafter(middle, 0.0), low);
    is(std::nextafter(middle, 1e300), high);
    const float exact = static_cast<float>(middle);
    if (static_cast<double>(exact) != middle) continue;  // beyond the largest float
    is(exact, i % 2 == 0 ? low : high);
    is(std::nextafter(exact, 0.0f), low);
    is(std::nextafter(exact, std::numeric_limits<float>::infinity()), high);
  }
  CHECK(wrong == 0);
}

/// Sums, differences, products and quotients of two are rounded once: all pairs of some, a few of
/// all.
template <class T> void check_arithmetic() {
  long wrong = 0;
  const auto same = [](T x, double exact) {
    const T y(exact);
    return x.bits() == y.bits() || (x != x && y != y);
  };
  for (unsigned i = 0; i < 65536; i += 7)
    for (unsigned j = i % 11; j < 65536; j += 997) {
      const T x = T::from_bits(static_cast<std::uint16_t>(i)),
              y = T::from_bits(static_cast<std::uint16_t>(j));
      const double a = x, b = y;  // 11 digits each: products are exact in double, sums of those
                                  // within 53 digits too
      wrong += !same(x * y, a * b);
      if (a == 0 || b == 0 || std::abs(std::log2(std::abs(a)) - std::log2(std::abs(b))) < 40)
        wrong += !same(x + y, a + b) + !same(x - y, a - b);
      wrong += !same(x / y, a / b);
      wrong += (x < y) != (a < b) || (x == y) != (a == b);
    }
  CHECK(wrong == 0);
}

template <class T> void check_integers() {
  using Limits = std::numeric_limits<T>;
  CHECK(static_cast<float>(T(std::int64_t{1} << 40)) ==
        (Limits::max_exponent > 40 ? 0x1p40f : std::numeric_limits<float>::infinity()));
  CHECK(T(-3).bits() == T(-3.0f).bits());
  CHECK(T(true).bits() == T(1.0f).bits());
  // One above a tie that a double cannot tell from it.
  const std::int64_t tie = (std::int64_t{1} << 62) + (std::int64_t{1} << (62 - Limits::digits));
  CHECK(T(tie).bits() == T(0x1p62).bits());
  CHECK((Limits::max_exponent < 62 || T(tie + 1) > T(tie)));
  CHECK(T(-tie - 1).bits() == (T(tie + 1).bits() | 0x8000));
  CHECK(T(static_cast<std::uint64_t>(tie + 1)).bits() == T(tie + 1).bits());
}

template <class T> void check_limits() {
  using Limits = std::numeric_limits<T>;
  const std::vector<double> values = finite_values<T>();
  CHECK(static_cast<double>(static_cast<float>(Limits::max())) == values.back());
  CHECK(static_cast<double>(static_cast<float>(Limits::lowest())) == -values.back());
  CHECK(static_cast<double>(static_cast<float>(Limits::denorm_min())) == values[1]);
  CHECK(static_cast<double>(static_cast<float>(Limits::min())) ==
        std::ldexp(1.0, Limits::min_exponent - 1));
  CHECK(static_cast<float>(Limits::epsilon()) ==
        static_cast<float>(T::from_bits(static_cast<std::uint16_t>(T(1).bits() + 1))) - 1);
  CHECK(std::isinf(static_cast<float>(Limits::infinity())));
  CHECK(Limits::quiet_NaN() != Limits::quiet_NaN());
  CHECK(static_cast<double>(static_cast<float>(Limits::max())) <
        std::ldexp(1.0, Limits::max_exponent));
}

}  // namespace

TEST_CASE_TEMPLATE(
    "a number of 16 bits is what its pattern says, and the nearest to what it is made of", T, half,
    bfloat16) {
  check_all_patterns<T>();
  check_all_boundaries<T>();
  check_arithmetic<T>();
  check_integers<T>();
  check_limits<T>();
}
