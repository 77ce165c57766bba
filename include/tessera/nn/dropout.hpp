// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Dropout: elements become zero with a probability, the others grow so that the mean stays.
/// Whether one does is a function of a seed, a step and the element's index in the whole tensor.
///
///     const Dropout drop{.rate = 0.1, .seed = 7, .step = 3};
///     auto y = dropout(x, drop.at(2));         // the third place of the model that drops
///
/// Laws: the same elements on every mesh, and on the way back, where nothing was kept for it;
/// with rate 0 it is x itself. Rows of a batch that come by themselves, from row `first_row` on,
/// lose the elements that they lose within the batch.
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/grad/custom_gradient.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/kernel/random.hpp>
#include <tessera/op/elements/map.hpp>

namespace tessera {

struct Dropout {
  double rate = 0;
  std::uint64_t seed = 0, step = 0;
  Index first_row = 0;  ///< the row of the batch that is x's first, where x is a part of a batch
  /// Returns the same for another place: of one seed and step, each place drops other elements.
  Dropout at(std::uint64_t place) const {
    return {rate, mixed(seed ^ mixed(place + 1)), step, first_row};
  }

  /// Returns a well-mixed number. Source: Steele, Lea and Flood (2014), SplitMix64.
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E37'79B9'7F4A'7C15u;
    x = (x ^ x >> 30) * 0xBF58'476D'1CE4'E5B9u;
    x = (x ^ x >> 27) * 0x94D0'49BB'1331'11EBu;
    return x ^ x >> 31;
  }
};

namespace fn {
/// x / (1 - rate), or 0.
struct Dropped {
  static constexpr std::string_view name = "dropout";
  static constexpr Linearity linearity = Linearity::linear;
  static constexpr bool reads_linear_index = true;
  template <class> static constexpr bool computes_much = true;
  std::uint64_t least;  ///< an element stays if its random 53 bits are at least that: rate * 2^53
  double scale;
  std::uint64_t key;
  Index first = 0;  ///< the number of x's first element in the batch
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return kept(i, static_cast<ComputeType<T>>(x) * static_cast<ComputeType<T>>(scale), x);
  }
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T derivative(const GlobalIndex& i, T x) const {
    return kept(i, static_cast<ComputeType<T>>(scale), x);
  }

 private:
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T kept(const GlobalIndex& i, ComputeType<T> value, T) const {
    const auto w = tessera::detail::random_words(first + i.linear(), 40, key);
    const bool stays = tessera::detail::join_words(w.word[0], w.word[1]) >> 11 >= least;
    return static_cast<T>(tessera::detail::choose(stays, value, ComputeType<T>{}));
  }
};
}  // namespace fn

namespace detail {
/// Returns how many elements have one index of the first dimension.
inline Index row_volume(const Extents& extents) {
  Index row = 1;
  for (int d = 1; d < extents.size(); ++d) row *= extents[d];
  return row;
}
/// Returns the function of a place that drops, of rows of so many elements. Throws UsageError
/// unless 0 <= rate < 1.
inline fn::Dropped dropped(const Dropout& drop, Index row, Where where) {
  if (!(drop.rate >= 0 && drop.rate < 1))
    throw UsageError("dropout: the rate " + std::to_string(drop.rate) +
                         " is no probability below 1; give one of at least 0 and less than 1",
                     where);
  return {static_cast<std::uint64_t>(std::ceil(drop.rate * 0x1p53)), 1 / (1 - drop.rate),
          Dropout::mixed(drop.seed ^ Dropout::mixed(drop.step)), drop.first_row * row};
}
}  // namespace detail

/// Returns x with elements dropped, under x's spec. Communication: none. Collective over the mesh.
/// Throws UsageError unless 0 <= rate < 1. Source: Srivastava et al. (2014); GShard, appendix A.2,
/// has rate 0.1 on the input, residuals and attention.
template <TypedTensor A> A dropout(const A& x, const Dropout& drop, Where where = Where::here()) {
  static_assert(RealElement<typename A::value_type>,
                "[tessera] dropout is for floating-point tensors, and this one is not; use cast "
                "first");
  const fn::Dropped f = detail::dropped(drop, detail::row_volume(x.extents()), where);
  if (drop.rate == 0) return x;
  return custom_gradient([f](const A& v) { return with_saved(A(map_with_index(f, v))); },
                         [f](const A& dy) { return A(map_with_index(f, dy)); }, where)(x);
}

}  // namespace tessera
