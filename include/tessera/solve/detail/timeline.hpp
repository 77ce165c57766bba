// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The times at which a limit may be exceeded, and no others: of two times, one whose usages all
/// are the other's too is left out, and so is one at which the largest values together keep the
/// limit. What all values of a variable use is taken from the limits, so that usages here are those
/// above the least; what is above each limit counts as one more than the largest limit.
///
///     const detail::Timeline timeline(network);
///     std::vector<Cost> used = timeline.used(assignment);
///     timeline.fits(used);
///
/// Laws: an assignment keeps all limits of the network exactly when it keeps those of the points.
/// Multipliers are fixed-point numbers of `fraction` bits; penalties are rounded down and the
/// charge up, so that the least of costs plus penalties, minus the charge, is a lower bound
/// (Lagrange; Geoffrion, 1974). What all variables use together at a point is at most `most_cost`.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>

namespace tessera::detail {

class Timeline {
 public:
  static constexpr int fraction = 20;
  struct Row {
    int variable, begin, end;  // points
    std::size_t first;         // of its amounts
  };

  explicit Timeline(const CostNetwork& network);

  int points() const { return static_cast<int>(limits_.size()); }
  std::span<const Cost> limits() const { return limits_; }
  /// Returns the time that a point stands for.
  int time(int point) const { return times_[static_cast<std::size_t>(point)]; }
  /// Makes multipliers smaller, by halves, where penalties could sum up to more than costs may.
  void keep_small(std::vector<Cost>& multipliers) const {
    const auto largest = [&] {
      WideCost sum = 0;
      for (std::size_t p = 0; p < limits_.size(); ++p)
        sum += static_cast<WideCost>(multipliers[p]) * largest_[p] >> fraction;
      return sum;
    };
    while (largest() > most_cost / 4)
      for (Cost& multiplier : multipliers) multiplier /= 2;
  }
  /// The rows of a variable, which do not overlap.
  std::span<const Row> rows(int variable) const {
    return {rows_.data() + first_row_[variable], first_row_[variable + 1] - first_row_[variable]};
  }
  Cost amount(const Row& row, int value) const {
    return amounts_[row.first + static_cast<std::size_t>(value)];
  }

  std::vector<Cost> used(const Assignment& assignment) const {
    std::vector<Cost> used(limits_.size() + 1, 0);
    for (const Row& row : rows_) {
      const Cost amount = this->amount(row, assignment[row.variable]);
      used[row.begin] += amount;
      used[row.end] -= amount;
    }
    for (std::size_t p = 1; p < used.size(); ++p) used[p] += used[p - 1];
    used.pop_back();
    return used;
  }
  bool fits(std::span<const Cost> used) const {
    for (std::size_t p = 0; p < limits_.size(); ++p)
      if (used[p] > limits_[p]) return false;
    return true;
  }
  /// Adds to the costs of all values what their usages cost by the multipliers.
  void add_penalties(std::span<const Cost> multipliers, std::span<const std::size_t> first_value,
                     std::vector<Cost>& costs) const {
    std::vector<WideCost> sums(limits_.size() + 1, 0);
    for (std::size_t p = 0; p < limits_.size(); ++p) sums[p + 1] = sums[p] + multipliers[p];
    for (const Row& row : rows_) {
      const WideCost price = sums[row.end] - sums[row.begin];
      if (price == 0) continue;
      Cost* const out = costs.data() + first_value[row.variable];
      const std::size_t values = first_value[row.variable + 1] - first_value[row.variable];
      for (std::size_t i = 0; i < values; ++i)
        out[i] = add_costs(out[i], static_cast<Cost>(price * amounts_[row.first + i] >> fraction));
    }
  }
  Cost charge(std::span<const Cost> multipliers) const {
    WideCost sum = 0;
    for (std::size_t p = 0; p < limits_.size(); ++p)
      sum += static_cast<WideCost>(multipliers[p]) * limits_[p];
    return static_cast<Cost>((sum + (WideCost{1} << fraction) - 1) >> fraction);
  }

 private:
  void add_rows(const CostNetwork& network, int v, std::span<const int> usages, int times,
                Cost beyond, std::vector<WideCost>& common);

  std::vector<Cost> limits_, amounts_;
  std::vector<int> times_;     ///< the time of each point
  std::vector<Cost> largest_;  ///< at each point, the most that all variables use
  std::vector<Row> rows_;
  std::vector<std::size_t> first_row_;
};

/// Writes a variable's usages as rows that do not overlap, without what all its values use, which
/// is added to `common` as a change at the time where it begins, and where it ends. `beyond`: an
/// amount that is above each limit.
inline void Timeline::add_rows(const CostNetwork& network, int v, std::span<const int> usages,
                               int times, Cost beyond, std::vector<WideCost>& common) {
  const std::size_t values = static_cast<std::size_t>(network.values(v));
  std::vector<std::pair<int, int>> events;  // a time, and a usage that begins or ends there
  for (const int u : usages) {
    const auto& usage = network.usages()[u];
    events.push_back({usage.begin, u});
    events.push_back({std::min(usage.end, times), u});
  }
  std::ranges::sort(events);
  std::vector<WideCost> sum(values, 0);
  for (std::size_t e = 0; e < events.size();) {
    const int time = events[e].first;
    for (; e < events.size() && events[e].first == time; ++e) {
      const auto& usage = network.usages()[events[e].second];
      const Cost sign = usage.begin == time ? 1 : -1;
      for (std::size_t i = 0; i < values; ++i) sum[i] += sign * network.amounts(usage)[i];
    }
    if (e == events.size()) break;
    const WideCost least = std::ranges::min(sum);
    common[time] += least;
    common[events[e].first] -= least;
    if (least == std::ranges::max(sum)) continue;
    rows_.push_back({v, time, events[e].first, amounts_.size()});
    for (const WideCost amount : sum)
      amounts_.push_back(static_cast<Cost>(std::min<WideCost>(amount - least, beyond)));
  }
}

inline Timeline::Timeline(const CostNetwork& network) {
  const int times = static_cast<int>(network.limits().size());
  std::vector<std::vector<int>> usages(static_cast<std::size_t>(network.variables()));
  for (std::size_t u = 0; u < network.usages().size(); ++u)
    if (network.usages()[u].begin < times)
      usages[network.usages()[u].variable].push_back(static_cast<int>(u));
  Cost beyond = 1;
  for (const Cost limit : network.limits())
    if (limit != CostNetwork::no_limit) beyond = std::max(beyond, limit + 1);
  std::vector<WideCost> common(times + 1, 0), most(times + 1, 0);
  for (int v = 0; v < network.variables(); ++v) {
    first_row_.push_back(rows_.size());
    add_rows(network, v, usages[v], times, beyond, common);
  }
  first_row_.push_back(rows_.size());
  std::vector<char> begins(times + 1, 0), ends(times + 1, 0);
  for (const Row& row : rows_) {
    Cost largest = 0;
    for (int i = 0; i < network.values(row.variable); ++i)
      largest = std::max(largest, amount(row, i));
    begins[row.begin] = ends[row.end] = 1;
    most[row.begin] += largest;
    most[row.end] -= largest;
  }
  std::vector<Cost> limits(network.limits().begin(), network.limits().end());
  WideCost used = 0, largest = 0;
  for (int time = 0; time < times; ++time) {
    used += common[time];
    if (limits[time] != CostNetwork::no_limit)
      limits[time] = static_cast<Cost>(std::max<WideCost>(limits[time] - used, -1));
  }
  std::vector<int> point(times + 1, 0);  // of each time, the first point at it or after it
  for (int time = 0; time < times; ++time) {
    largest += most[time];
    point[time] = points();
    const bool in_next = time + 1 < times && !ends[time + 1] && limits[time + 1] <= limits[time];
    const bool in_last =
        time > 0 && !begins[time] && ends[time] && limits[time - 1] <= limits[time];
    if (limits[time] == CostNetwork::no_limit || largest <= limits[time] || in_next || in_last)
      continue;
    if (largest > most_cost)
      throw ShapeError("the largest usages of all variables at time " + std::to_string(time) +
                       ", each up to the largest limit, sum up to more than 2^60, and the time's "
                       "limit is " +
                       std::to_string(network.limits()[static_cast<std::size_t>(time)]) +
                       "; divide usages and limits by a common factor");
    limits_.push_back(limits[time]);
    times_.push_back(time);
  }
  point[times] = points();
  std::size_t kept = 0;
  for (int v = 0; v < network.variables(); ++v) {
    std::size_t row = first_row_[v];
    first_row_[v] = kept;
    for (; row < first_row_[v + 1]; ++row) {
      const int begin = point[rows_[row].begin], end = point[rows_[row].end];
      if (begin < end) rows_[kept++] = {v, begin, end, rows_[row].first};
    }
  }
  first_row_.back() = kept;
  rows_.resize(kept);
  largest_.assign(limits_.size() + 1, 0);
  for (const Row& row : rows_) {
    Cost amount = 0;
    for (int i = 0; i < network.values(row.variable); ++i)
      amount = std::max(amount, this->amount(row, i));
    largest_[row.begin] += amount;
    largest_[row.end] -= amount;
  }
  for (std::size_t p = 1; p < largest_.size(); ++p) largest_[p] += largest_[p - 1];
}

}  // namespace tessera::detail
