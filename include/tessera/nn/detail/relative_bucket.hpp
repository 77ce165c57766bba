// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Buckets of distances between a key and a query: near distances have one each, farther ones share
/// one, by the logarithm.
///
///     const fn::RelativeBucket bucket{.buckets = 8, .farthest = 20, .both_ways = true};
///     bucket.of(-1) == 1; bucket.of(1) == 5; bucket.of(-100) == 3;
///
/// Source: Raffel et al., "Exploring the Limits of Transfer Learning" (T5, 2020), section 2.1, with
/// the arithmetic of Hugging Face's T5Attention, in float.
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>
#include <tessera/kernel/fill_index.hpp>
#include <tessera/kernel/functions/exponential.hpp>

namespace tessera {
namespace fn {

struct RelativeBucket {
  static constexpr std::string_view name = "relative bucket";
  Index buckets = 32, farthest = 128;
  bool both_ways = true;     ///< else keys after the query are in the bucket of distance 0
  Index query = 0, key = 0;  ///< the places of element (0, 0)

  /// The bucket of key i[1] for query i[0].
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return of(i[1] + key - i[0] - query);
  }
  /// The bucket of a key at `place` for the query at place `of_query`.
  KOKKOS_FUNCTION std::int32_t operator()(std::int32_t of_query, std::int32_t place) const {
    return of(Index{place} - of_query);
  }
  /// The bucket of a key that comes so far after the query.
  KOKKOS_FUNCTION std::int32_t of(Index distance) const {
    const Index own = both_ways ? buckets / 2 : buckets;
    const Index begin = both_ways && distance > 0 ? own : 0;
    const Index n = distance < 0 ? -distance : both_ways ? distance : 0;
    const Index exact = own / 2;
    if (n < exact) return static_cast<std::int32_t>(begin + n);
    if (exact == 0) return static_cast<std::int32_t>(begin);
    const auto of_all = static_cast<float>(
        tessera::detail::log_of(static_cast<double>(farthest) / static_cast<double>(exact)));
    const float share =
        tessera::detail::log_of(static_cast<float>(n) / static_cast<float>(exact)) / of_all;
    const auto more = static_cast<Index>(share * static_cast<float>(own - exact));
    return static_cast<std::int32_t>(begin + min_of(exact + more, own - 1));
  }
};

}  // namespace fn

namespace detail {
/// Throws UsageError where the distances that share buckets, from half of a side's buckets on, do
/// not end farther away.
inline void require_farthest(const char* call, const fn::RelativeBucket& bucket, Where where) {
  const Index own = bucket.both_ways ? bucket.buckets / 2 : bucket.buckets;
  if (bucket.farthest > own / 2) return;
  throw UsageError(std::string(call) + ": the farthest distance of a relative bias is " +
                       std::to_string(bucket.farthest) + ", and of " + std::to_string(own) +
                       " buckets of keys on one side of a query " + std::to_string(own / 2) +
                       " are for one distance each; give a larger AttentionOptions::farthest, or "
                       "a table with fewer buckets",
                   where);
}
}  // namespace detail

}  // namespace tessera
