// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a parameter is at the start: a function of a seed and the element's index in the whole
/// tensor, so that every mesh starts with the same numbers.
///
///     const auto weight = Initializer::fan_in(512);      // normal, of deviation 1 / sqrt(512)
///     const auto table = Initializer::truncated_normal(0.02);   // within two deviations of the normal it is cut from
///
/// Laws: elements are the same on every mesh; those of narrow types are the doubles, rounded.
#include <cmath>
#include <cstdint>

#include <tessera/kernel/random.hpp>

namespace tessera {

struct Initializer {
  enum class Kind : std::uint8_t { constant, uniform, normal, truncated_normal };
  Kind kind = Kind::constant;
  double first = 0, second = 0;  ///< the constant; the limits; 0 and the deviation

  static Initializer zeros() { return {}; }
  static Initializer ones() { return constant(1); }
  static Initializer constant(double value) { return {Kind::constant, value, 0}; }
  static Initializer uniform(double lo, double hi) { return {Kind::uniform, lo, hi}; }
  static Initializer normal(double deviation) { return {Kind::normal, 0, deviation}; }
  /// Of the given deviation once it is cut: 1 / 0.8796 of it before, as in JAX.
  static Initializer truncated_normal(double deviation) {
    return {Kind::truncated_normal, 0, deviation / 0.87962566103423978};
  }
  /// Normal, so that a sum over `inputs` products with elements of deviation 1 has the deviation
  /// `gain`. Source: LeCun et al., "Efficient BackProp" (1998), section 4.6; He et al. (2015) with
  /// gain sqrt(2).
  static Initializer fan_in(Index inputs, double gain = 1) {
    return normal(gain / std::sqrt(static_cast<double>(inputs < 1 ? 1 : inputs)));
  }
};

namespace fn {
/// The element at an index. `each`: how many elements one stage has, where all stages' lie behind
/// each other; the seeds of two are `apart`.
template <NumberElement T> struct InitialElement {
  Initializer how;
  std::uint64_t first_seed;
  Index each;
  std::uint64_t apart;

  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    const Index element = i.linear(), stage = element / each;
    return tessera::detail::from_double<T>(
        number(element % each, first_seed + static_cast<std::uint64_t>(stage) * apart));
  }

 private:
  KOKKOS_FUNCTION double number(Index element, std::uint64_t seed) const {
    using namespace tessera::detail;
    if (how.kind == Initializer::Kind::constant) return how.first;
    if (how.kind == Initializer::Kind::uniform) {
      const PhiloxWords w = random_words(element, 3, seed);
      return how.first + (how.second - how.first) * unit_interval(join_words(w.word[0], w.word[1]));
    }
    if (how.kind == Initializer::Kind::normal)
      return how.second * normal_pair(random_words(element, 4, seed)).x;
    for (std::uint32_t draw = 0; draw < 32; ++draw) {
      const NormalPair pair = normal_pair(random_words(element, 5 + draw, seed));
      if (Kokkos::abs(pair.x) < 2) return how.second * pair.x;
      if (Kokkos::abs(pair.y) < 2) return how.second * pair.y;
    }
    return 0;  // after 64 draws that lie outside, which has a probability of 1e-86
  }
};
}  // namespace fn

}  // namespace tessera
