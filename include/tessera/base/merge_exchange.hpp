// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Batcher's merge exchange: which places are compared in which round, so that any n values are
/// sorted. (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M.)
///
///     detail::merge_exchange_rounds(8) == 6
///     detail::merge_exchange_round(8, 0).partner(3, 8) == 7       // and 7 is told 3
///
/// Laws: the partner of a place's partner is that place; after all rounds, in each of which the
/// lower place keeps the lesser of two values, the values are sorted. Places may also stand for
/// sorted blocks of equal size; then the lower place keeps the lesser half (ibid., exercise
/// 5.3.4-38).
#include <tessera/base/math.hpp>

namespace tessera::detail {

/// The comparisons of one round: i is compared with i + distance if i & mask == rest.
struct MergeRound {
  Index mask = 0;
  Index rest = 0;
  Index distance = 0;

  /// Returns whether place i of n is compared with i + distance.
  constexpr bool is_lower(Index i, Index n) const { return (i & mask) == rest && i + distance < n; }
  /// Returns the place that i of n is compared with, or -1 without a partner.
  constexpr Index partner(Index i, Index n) const {
    if (is_lower(i, n)) return i + distance;
    return i >= distance && is_lower(i - distance, n) ? i - distance : -1;
  }
  constexpr bool operator==(const MergeRound&) const = default;
};

/// Returns the number of rounds that sort n values: about half the square of log2 n.
constexpr int merge_exchange_rounds(Index n) {
  int log = 0;
  while ((Index{1} << log) < n) ++log;
  return log * (log + 1) / 2;
}

/// Returns round 0 <= round < merge_exchange_rounds(n).
constexpr MergeRound merge_exchange_round(Index n, int round) {
  Index top = 1;
  while (2 * top < n) top *= 2;
  for (Index mask = top; mask > 0; mask /= 2) {
    MergeRound now{mask, 0, mask};
    for (Index q = top;; q /= 2) {
      if (round-- == 0) return now;
      if (q == mask) break;
      now.distance = q - mask;
      now.rest = mask;
    }
  }
  return {};
}
}  // namespace tessera::detail
