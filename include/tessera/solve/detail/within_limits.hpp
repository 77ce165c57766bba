// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which values of a network some assignment may have that keeps the limits: a value goes that
/// exceeds a limit even where all other variables use the least they can (bounds consistency;
/// Dechter, "Constraint Processing", section 9).
///
///     std::vector<char> allowed(network.all_values(), 1);
///     if (!keep_within_limits(network, timeline, allowed)) { … no assignment keeps the limits … }
///
/// Laws: no assignment of allowed values that keeps the limits has a value that is dropped.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/timeline.hpp>

namespace tessera::detail {

/// The least of any range of numbers, from tables of ranges whose lengths are powers of two.
class LeastOfRange {
 public:
  explicit LeastOfRange(std::vector<Cost> numbers) {
    levels_.push_back(std::move(numbers));
    for (std::size_t half = 1; 2 * half <= levels_[0].size(); half *= 2) {
      const std::vector<Cost>& last = levels_.back();
      std::vector<Cost> next;
      for (std::size_t i = 0; i + 2 * half <= levels_[0].size(); ++i)
        next.push_back(std::min(last[i], last[i + half]));
      levels_.push_back(std::move(next));
    }
  }
  /// Returns the least of the numbers begin … end-1, of which there is one.
  Cost of(int begin, int end) const {
    const unsigned length = static_cast<unsigned>(end - begin);
    const std::vector<Cost>& level = levels_[static_cast<std::size_t>(std::bit_width(length)) - 1];
    return std::min(level[static_cast<std::size_t>(begin)],
                    level[static_cast<std::size_t>(end) - std::bit_floor(length)]);
  }

 private:
  std::vector<std::vector<Cost>> levels_;
};

/// Drops values, until none is to go; a value is allowed that is also feasible. Returns false where
/// no assignment is left.
inline bool keep_within_limits(const CostNetwork& network, const Timeline& timeline,
                               std::vector<char>& allowed) {
  if (timeline.points() == 0) return true;
  for (std::size_t i = 0; i < allowed.size(); ++i)
    if (!is_feasible(network.all_costs()[i])) allowed[i] = 0;
  const auto least_of = [&](const Timeline::Row& row) {
    Cost least = infeasible;
    for (int i = 0; i < network.values(row.variable); ++i)
      if (allowed[network.first(row.variable) + static_cast<std::size_t>(i)])
        least = std::min(least, timeline.amount(row, i));
    return least;
  };
  for (bool again = true; again;) {
    again = false;
    std::vector<Cost> room(static_cast<std::size_t>(timeline.points()) + 1, 0);
    for (int v = 0; v < network.variables(); ++v)
      for (const Timeline::Row& row : timeline.rows(v)) {
        const Cost least = least_of(row);
        if (!is_feasible(least)) return false;
        room[static_cast<std::size_t>(row.begin)] += least;
        room[static_cast<std::size_t>(row.end)] -= least;
      }
    room.pop_back();
    Cost used = 0;
    for (std::size_t p = 0; p < room.size(); ++p) {
      used += room[p];
      room[p] = timeline.limits()[p] - used;
      if (room[p] < 0) return false;
    }
    const LeastOfRange rooms(std::move(room));
    for (int v = 0; v < network.variables(); ++v)
      for (const Timeline::Row& row : timeline.rows(v)) {
        const Cost most = least_of(row) + rooms.of(row.begin, row.end);
        for (int i = 0; i < network.values(v); ++i) {
          char& value = allowed[network.first(v) + static_cast<std::size_t>(i)];
          if (!value || timeline.amount(row, i) <= most) continue;
          value = 0;
          again = true;
        }
      }
  }
  return true;
}

}  // namespace tessera::detail
