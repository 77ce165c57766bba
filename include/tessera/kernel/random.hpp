// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random blocks: each number is a function of the seed and the element's index in the whole tensor
/// (detail/philox.hpp), so every mesh makes the same tensor.
///
///     detail::random_uniform(p, {2, 3}, {4, 0}, {8, 3}, 17, -1.0, 1.0);   // rows 4 and 5 of an 8 x 3 tensor
///
/// Laws: a block equals the same block of the whole; floats and half types are the doubles of the
/// same seed, rounded (below hi).
#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/kernel/detail/philox.hpp>
#include <tessera/kernel/fill_index.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera::detail {

/// Returns four random words for an element; `stream` keeps distributions apart.
KOKKOS_INLINE_FUNCTION PhiloxWords random_words(Index element, std::uint32_t stream,
                                                std::uint64_t seed) {
  const std::uint64_t e = static_cast<std::uint64_t>(element);
  return philox({{static_cast<std::uint32_t>(e), static_cast<std::uint32_t>(e >> 32), stream, 0}},
                static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}
KOKKOS_INLINE_FUNCTION std::uint64_t join_words(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32) | low;
}

/// Returns the next number after `from` in the direction of `to`, which differs from it.
template <class T> KOKKOS_INLINE_FUNCTION T next_towards(T from, T to) {
  return Kokkos::nextafter(from, to);
}
template <class Format>
KOKKOS_INLINE_FUNCTION ShortFloat<Format> next_towards(ShortFloat<Format> from,
                                                       ShortFloat<Format> to) {
  const int sign = from.bits() & 0x8000, size = from.bits() & 0x7fff;
  if (size == 0) return ShortFloat<Format>::from_bits(to < from ? 0x8001 : 0x0001);
  const bool away = (from < to) == (sign == 0);
  return ShortFloat<Format>::from_bits(
      static_cast<std::uint16_t>(sign | (away ? size + 1 : size - 1)));
}

/// Returns a number in [lo, hi) from 64 random bits. Rounding may reach hi, which is excluded.
template <class T>
KOKKOS_INLINE_FUNCTION T uniform_number(std::uint64_t bits, double lo, double hi) {
  const T x = static_cast<T>(lo + (hi - lo) * unit_interval(bits));
  const T first = static_cast<T>(lo), end = static_cast<T>(hi);
  return x < end || !(first < end) ? x : next_towards(end, first);
}

/// Two independent normal numbers of mean 0 and deviation 1.
struct NormalPair {
  double x, y;
};
KOKKOS_INLINE_FUNCTION NormalPair normal_pair(const PhiloxWords& w) {
  const double u = 1.0 - unit_interval(join_words(w.word[0], w.word[1]));  // in (0, 1]
  const double angle = 6.283185307179586477 * unit_interval(join_words(w.word[2], w.word[3]));
  const double radius = Kokkos::sqrt(-2.0 * Kokkos::log(u));
  return {radius * Kokkos::cos(angle), radius * Kokkos::sin(angle)};
}

template <class T> struct Uniform {
  std::uint64_t seed;
  double lo, hi;
  template <class Told> void numbers(Told& told) const {
    told.add(seed), told.add(lo), told.add(hi);
  }
  KOKKOS_FUNCTION T operator()(const GlobalIndex& index) const {
    if constexpr (ComplexElement<T>) {
      using R = typename T::value_type;
      const PhiloxWords w = random_words(index.linear(), 2, seed);
      return {uniform_number<R>(join_words(w.word[0], w.word[1]), lo, hi),
              uniform_number<R>(join_words(w.word[2], w.word[3]), lo, hi)};
    } else {
      const PhiloxWords w = random_words(index.linear() / 2, 0, seed);
      const bool odd = index.linear() % 2 != 0;
      const std::uint64_t bits =
          odd ? join_words(w.word[2], w.word[3]) : join_words(w.word[0], w.word[1]);
      if constexpr (RealElement<T>) {
        return uniform_number<T>(bits, lo, hi);
      } else {
        const auto first = static_cast<std::int64_t>(from_double<T>(Kokkos::ceil(lo)));
        const auto last = static_cast<std::int64_t>(from_double<T>(Kokkos::floor(hi)));
        const std::uint64_t count =
            static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
        const std::uint64_t at = count == 0 ? bits : multiply_high(bits, count);
        return static_cast<T>(static_cast<std::uint64_t>(first) + at);
      }
    }
  }
};

template <class T> struct Normal {
  std::uint64_t seed;
  double mean, deviation;
  template <class Told> void numbers(Told& told) const {
    told.add(seed), told.add(mean), told.add(deviation);
  }
  KOKKOS_FUNCTION T operator()(const GlobalIndex& index) const {
    const NormalPair z = normal_pair(random_words(index.linear(), 1, seed));
    if constexpr (ComplexElement<T>) {
      using R = typename T::value_type;
      const double each = deviation * 0.70710678118654752440;
      return {static_cast<R>(mean + each * z.x), static_cast<R>(each * z.y)};
    } else {
      const double x = mean + deviation * z.x;
      return from_double<T>(RealElement<T> ? x : Kokkos::floor(x + 0.5));
    }
  }
};

/// Fills a block (see fill_index) with numbers uniform in [lo, hi); integers and bool are uniform
/// in [lo, hi], with hi included; for complex numbers, both parts are uniform in [lo, hi).
template <Element T>
void random_uniform(T* out, const Extents& extents, const Extents& offset,
                    const Extents& global_extents, std::uint64_t seed, double lo = 0,
                    double hi = 1) {
  fill_index(detail::Uniform<T>{seed, lo, hi}, out, extents, offset, global_extents);
}

/// Fills a block with normally distributed numbers, by Box and Muller's method (Ann. Math. Statist.
/// 29, 1958); integers are rounded to the nearest. The two parts of a complex number are
/// independent, and its distance from the mean has the given deviation.
template <NumberElement T>
void random_normal(T* out, const Extents& extents, const Extents& offset,
                   const Extents& global_extents, std::uint64_t seed, double mean = 0,
                   double deviation = 1) {
  fill_index(detail::Normal<T>{seed, mean, deviation}, out, extents, offset, global_extents);
}

/// These overloads take a type that is known at run time. They throw UsageError for normal numbers
/// of type bool.
template <int = dtypes>
void random_uniform(DType type, void* out, const Extents& extents, const Extents& offset,
                    const Extents& global_extents, std::uint64_t seed, double lo = 0,
                    double hi = 1) {
  with_type(type, [&](auto element) {
    random_uniform(static_cast<decltype(element)*>(out), extents, offset, global_extents, seed, lo,
                   hi);
  });
}
template <int = dtypes>
void random_normal(DType type, void* out, const Extents& extents, const Extents& offset,
                   const Extents& global_extents, std::uint64_t seed, double mean = 0,
                   double deviation = 1) {
  if (!is_number(type))
    throw UsageError("random_normal: truth values have no normal distribution; use random_uniform");
  with_number_type(type, [&](auto element) {
    random_normal(static_cast<decltype(element)*>(out), extents, offset, global_extents, seed, mean,
                  deviation);
  });
}
}  // namespace tessera::detail
