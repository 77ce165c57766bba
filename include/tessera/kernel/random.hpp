// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random blocks: each number is a function of the seed and the element's index in the whole tensor
/// (detail/philox.hpp), so every mesh makes the same tensor.
///
///     random_uniform(DType::f32, p, {2, 3}, {4, 0}, {8, 3}, 17, -1.0, 1.0);   // rows 4 and 5 of
///     an 8 x 3 tensor
///
/// Laws: blocks equal the same blocks of the whole; floats are the doubles of the same seed,
/// rounded (below hi).
#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/philox.hpp>
#include <tessera/kernel/fill_index.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera {
namespace detail {

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

template <class T> struct Uniform {
  std::uint64_t seed;
  double lo, hi;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& index) const {
    const PhiloxWords w = random_words(index.linear() / 2, 0, seed);
    const bool odd = index.linear() % 2 != 0;
    const std::uint64_t bits =
        odd ? join_words(w.word[2], w.word[3]) : join_words(w.word[0], w.word[1]);
    if constexpr (is_real<T>) {
      // Rounding may reach hi, which is excluded.
      const T x = static_cast<T>(lo + (hi - lo) * unit_interval(bits));
      const T first = static_cast<T>(lo), end = static_cast<T>(hi);
      return x < end || !(first < end) ? x : Kokkos::nextafter(end, first);
    } else {
      const std::int64_t first = from_double<T>(lo), last = from_double<T>(hi);
      const std::uint64_t count =
          static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
      const std::uint64_t at = count == 0 ? bits : multiply_high(bits, count);
      return static_cast<T>(static_cast<std::uint64_t>(first) + at);
    }
  }
};

template <class T> struct Normal {
  std::uint64_t seed;
  double mean, deviation;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& index) const {
    const PhiloxWords w = random_words(index.linear(), 1, seed);
    const double u = 1.0 - unit_interval(join_words(w.word[0], w.word[1]));  // in (0, 1]
    const double v = unit_interval(join_words(w.word[2], w.word[3]));
    const double z = Kokkos::sqrt(-2.0 * Kokkos::log(u)) * Kokkos::cos(6.283185307179586477 * v);
    const double x = mean + deviation * z;
    return from_double<T>(is_real<T> ? x : Kokkos::floor(x + 0.5));
  }
};
}  // namespace detail

/// Fills a block (see fill_index) with numbers uniform in [lo, hi); integers uniform in [lo, hi],
/// hi included.
inline void random_uniform(DType type, void* out, const Extents& extents, const Extents& offset,
                           const Extents& global_extents, std::uint64_t seed, double lo = 0,
                           double hi = 1) {
  detail::with_basic_type(type, [&](auto element) {
    using T = decltype(element);
    fill_index(detail::Uniform<T>{seed, lo, hi}, static_cast<T*>(out), extents, offset,
               global_extents);
  });
}

/// Fills a block with normally distributed numbers, by Box and Muller's method (Ann. Math. Statist.
/// 29, 1958); integers are rounded to the nearest.
inline void random_normal(DType type, void* out, const Extents& extents, const Extents& offset,
                          const Extents& global_extents, std::uint64_t seed, double mean = 0,
                          double deviation = 1) {
  detail::with_basic_type(type, [&](auto element) {
    using T = decltype(element);
    fill_index(detail::Normal<T>{seed, mean, deviation}, static_cast<T*>(out), extents, offset,
               global_extents);
  });
}

}  // namespace tessera
