// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Costs: 64-bit integers, and one value for what is not allowed.
///
///     static_assert(detail::add_costs(3, infeasible) == infeasible);
///
/// Laws: sums of finite costs are exact; whatever is added to `infeasible`, it stays `infeasible`.
#include <cstdint>

namespace tessera {

using Cost = std::int64_t;

/// What is not allowed. The finite costs of a network sum up to at most 2^60 in magnitude, so
/// that a sum of which one term is infeasible stays above 2^61, in any order of its terms.
inline constexpr Cost infeasible = (Cost{1} << 62) - 1;

namespace detail {
__extension__ using WideCost = __int128;  // products of two 64-bit integers, and sums of many

inline constexpr Cost least_infeasible = Cost{1} << 61;
inline constexpr Cost most_cost = Cost{1} << 60;

/// Returns the sum of two costs, infeasible where one of them is.
constexpr Cost add_costs(Cost a, Cost b) {
  const Cost sum = a + b;
  return sum < infeasible ? sum : infeasible;
}
}  // namespace detail

/// Returns whether a cost is that of something that is allowed.
constexpr bool is_feasible(Cost cost) { return cost < detail::least_infeasible; }

}  // namespace tessera
