// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The next token of each text: the one with the largest score, or one that is drawn.
///
///     auto next = next_token(scores, {.temperature = 0}, texts, places);                // greedy
///     auto drawn = next_token(scores, {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 7}, texts, places);
///
/// Laws: a draw is a function of the seed, the text's number, the token's place and the scores: the
/// same on every mesh, to the rounding of sums of probabilities, and whatever other texts are under
/// way. Half types are drawn in float.
#include <cstdint>
#include <limits>
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/kernel/random.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/rows/arg.hpp>
#include <tessera/op/rows/cumulative.hpp>
#include <tessera/op/rows/softmax.hpp>
#include <tessera/op/rows/statistics.hpp>
#include <tessera/op/rows/top_k.hpp>
#include <tessera/op/shape/dimensions.hpp>

namespace tessera {

/// How a token is chosen; first the scores are divided by the temperature, then those beyond the
/// top k are left out, and then those beyond the top p.
struct Sampling {
  double temperature = 1;  ///< 0: the token with the largest score
  Index top_k = 0;         ///< among so many with the largest scores, and their equals; 0: all
  double top_p =
      1;  ///< among the likeliest ones whose probabilities add up to this, and one at least
  std::uint64_t seed = 0;
};

namespace fn {
/// (x - the row's largest) / temperature: 0 for that one, whatever the temperature.
struct OverTemperature {
  static constexpr std::string_view name = "temperature";
  double temperature;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T most) const {
    return tessera::detail::from_double<T>((static_cast<double>(x) - static_cast<double>(most)) /
                                           temperature);
  }
};
/// x where it is no less than the least that is kept.
struct AtLeast {
  static constexpr std::string_view name = "kept tokens";
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T least) const {
    return x < least ? tessera::detail::from_double<T>(-std::numeric_limits<double>::infinity())
                     : x;
  }
};
/// x where the probabilities before it are less than p, else infinity.
struct WithinShare {
  static constexpr std::string_view name = "share of probability";
  double p;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T before) const {
    return static_cast<double>(before) < p
               ? x
               : tessera::detail::from_double<T>(std::numeric_limits<double>::infinity());
  }
};
/// x with a number of the Gumbel distribution added: where it is largest is a draw by softmax(x).
/// Source: Maddison, Tarlow and Minka, "A* Sampling" (2014), section 2.
struct WithGumbel {
  static constexpr std::string_view name = "draw";
  std::uint64_t seed;
  template <RealElement T>
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x, std::int32_t text,
                               std::int32_t place) const {
    const auto w = tessera::detail::philox(
        {{static_cast<std::uint32_t>(i[1]), static_cast<std::uint32_t>(text),
          static_cast<std::uint32_t>(place), 43}},
        static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    const double u =
        tessera::detail::unit_interval(tessera::detail::join_words(w.word[0], w.word[1]));
    const double late = -Kokkos::log1p(-u);
    const double g = -Kokkos::log(late > 0x1p-54 ? late : 0x1p-54);
    return tessera::detail::from_double<T>(static_cast<double>(x) + g);
  }
};
}  // namespace fn

/// Returns the next token of each text, (batch), int32: scores are (batch, vocabulary), `texts` and
/// `places`, (batch), int32, say for which text and place it is. Communication: where the
/// vocabulary is split that of argmax, and of top_k, or for top_p of a sort. Collective over the
/// mesh. Throws UsageError for a temperature or top_k below 0, and a top_p that is not in (0, 1].
/// Source: Holtzman et al., "The Curious Case of Neural Text Degeneration" (2019), section 3.1.
template <TypedTensor A, TypedTensor I>
auto next_token(const A& scores, const Sampling& how, const I& texts, const I& places,
                Where where = Where::here()) {
  static_assert(A::rank == 2 && I::rank == 1,
                "[tessera] next_token takes scores (batch, vocabulary), and the numbers of texts "
                "and of places (batch); give them these dimensions");
  if (!(how.temperature >= 0) || how.top_k < 0 || !(how.top_p > 0 && how.top_p <= 1))
    throw UsageError("next_token: a temperature of " + std::to_string(how.temperature) +
                         ", top_k of " + std::to_string(how.top_k) + " and top_p of " +
                         std::to_string(how.top_p) +
                         "; give at least 0, at least 0, and more than 0 up to 1",
                     where);
  if (how.temperature == 0) return cast<std::int32_t>(argmax<"bv->b">(scores, where), where);
  auto x = detail::widened(scores, where);
  using Wide = decltype(x);
  if (how.temperature != 1)
    x = map<"bv,b->bv", typename A::spec>(fn::OverTemperature{how.temperature}, x,
                                          max<"bv->b">(x, where), where);
  const auto keep = [&](const auto& kept) {
    x = map<"bv,b->bv", typename Wide::spec>(fn::AtLeast{}, x, min<"bv->b">(kept, where), where);
  };
  if (how.top_k > 0 && how.top_k < x.extent(1)) keep(top_k<"bv", 'v'>(x, how.top_k, where).values);
  if (how.top_p < 1) {
    const auto sorted = sort<"bv", 'v'>(x, {.descending = true}, where);
    const auto before =
        cumsum<"bv", 'v'>(softmax<"bv", 'v'>(sorted, where), {.exclusive = true}, where);
    keep(map(fn::WithinShare{how.top_p}, sorted, before, where));
  }
  const auto drawn = map_with_index(fn::WithGumbel{how.seed}, x, expand_dims<1>(texts, where),
                                    expand_dims<1>(places, where), where);
  return cast<std::int32_t>(argmax<"bv->b">(drawn, where), where);
}

}  // namespace tessera
