// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The values on which arithmetic goes wrong first, by element type: the sets that tests of
/// kernels, transports and operators share; and reductions of them by plain rules.
///
///     for (const float x : support::special_values<float>()) ...
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/base/reduction.hpp>

namespace support {

using namespace tessera;

/// Zeros of both signs, small numbers, the ends of the range, denormal numbers, infinities, NaN.
template <class T> std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  if constexpr (RealElement<T>)
    return {T(0.0f),
            -T(0.0f),
            T(0.25f),
            T(-0.25f),
            T(0.5f),
            T(1.0f),
            T(-1.0f),
            T(1.5f),
            T(2.5f),
            T(-2.5f),
            T(7.0f),
            T(-30.0f),
            Limits::max(),
            Limits::lowest(),
            Limits::min(),
            Limits::denorm_min(),
            Limits::infinity(),
            -Limits::infinity(),
            Limits::quiet_NaN()};
  else if constexpr (std::is_same_v<T, bool>)
    return {false, true};
  else if constexpr (std::is_signed_v<T>)
    return {0, 1, 2, 3, 7, 31, -1, -2, -5, Limits::max(), Limits::lowest(), Limits::max() - 1};
  else
    return {0,
            1,
            2,
            3,
            7,
            31,
            128,
            200,
            static_cast<T>(Limits::max() / 2),
            static_cast<T>(Limits::max() / 2 + 1),
            static_cast<T>(Limits::max() - 1),
            Limits::max()};
}

/// Those whose reductions have the same bits in any order of joining, so that plain loops say what
/// each must be: sums of small binary fractions, of denormal numbers, of what overflows; products
/// of powers of two. Maxima, minima and whole numbers take all.
template <class T> std::vector<std::vector<T>> special_sets(Reduction reduction) {
  using Limits = std::numeric_limits<T>;
  if constexpr (RealElement<T>) {
    const T infinity = Limits::infinity(), nan = Limits::quiet_NaN(), zero = T(0.0f);
    if (reduction == Reduction::sum)
      return {{zero, -zero, T(0.25f), T(-0.25f), T(1.0f), T(-2.5f), infinity, -infinity, nan},
              {zero, -zero, Limits::denorm_min(), -Limits::denorm_min(), nan},
              {zero, -zero, Limits::max(), infinity, nan},
              {zero, -zero, Limits::lowest(), -infinity}};
    if (reduction == Reduction::product)
      return {{T(1.0f), T(-2.0f), T(0.5f), T(-0.5f), zero, -zero, infinity, -infinity, nan}};
    std::vector<T> all = special_values<T>();
    all.push_back(-nan);
    return {all};
  } else {
    return {special_values<T>()};
  }
}

/// a joined with b, by the rules alone: a NaN is the greatest and the least, -0 is below +0,
/// integers wrap.
template <class T> T plain_join(Reduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return reduction == Reduction::any ? a || b : a && b;
  } else if constexpr (RealElement<T>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    if (reduction == Reduction::sum) return static_cast<T>(x + y);
    if (reduction == Reduction::product) return static_cast<T>(x * y);
    if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<T>::quiet_NaN();
    const bool below = x < y || (x == y && std::signbit(x) && !std::signbit(y));
    return below == (reduction == Reduction::max) ? b : a;
  } else {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    if (reduction == Reduction::sum) return static_cast<T>(x + y);
    if (reduction == Reduction::product) return static_cast<T>(x * y);
    return (a < b) == (reduction == Reduction::max) ? b : a;
  }
}
template <class T> T plain_reduce(Reduction reduction, const std::vector<T>& x) {
  T result = x.front();
  if constexpr (RealElement<T>)
    if (result != result) result = std::numeric_limits<T>::quiet_NaN();
  for (std::size_t i = 1; i < x.size(); ++i) result = plain_join<T>(reduction, result, x[i]);
  return result;
}

/// Returns whether two values have the same bits; in sums and products (`any_nan`) NaNs are alike,
/// since adding does not say which of two it returns.
template <class T> bool same_bits(T a, T b, bool any_nan = false) {
  if constexpr (RealElement<T>)
    if (any_nan && a != a && b != b) return true;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Element i of part `part` of `parts`: every pair of the set meets in every two neighbouring
/// parts, among values that repeat. i runs to pairs_of(set) * parts.
template <class T> Index pairs_of(const std::vector<T>& set) {
  return static_cast<Index>(set.size() * set.size());
}
template <class T> T special_element(const std::vector<T>& set, Index i, int part, int parts) {
  const auto n = static_cast<Index>(set.size());
  const Index first = i / n / n % parts;
  const Index which = part == first                 ? i % n
                      : part == (first + 1) % parts ? i / n % n
                                                    : (i % n + 3 * part) % min_of(n, Index{2});
  return set[static_cast<std::size_t>(which)];
}

}  // namespace support
