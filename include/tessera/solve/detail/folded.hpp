// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A network of many units that are alike, without most of those in the middle: what a search finds
/// for it begins the search for the whole, each unit that was left out as one that was kept. The
/// units are guessed (detail/units.hpp): a wrong guess costs time alone, since moved costs are a
/// lower bound wherever they begin, and an assignment is priced by the whole network.
///
///     const detail::Folded folded(network);
///     if (folded.is_smaller()) { … search(folded.network()) …; folded.recovered(assignment) }
///
/// Laws: `network()` has variables and pairs of the first network, with their costs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/units.hpp>

namespace tessera::detail {

class Folded {
 public:
  explicit Folded(const CostNetwork& network) {
    find(network);
    if (is_smaller()) fold(network);
  }

  bool is_smaller() const { return units_ > first_ + last_ + 1; }
  const CostNetwork& network() const { return result_; }
  Assignment recovered(const Assignment& assignment) const {
    Assignment all;
    for (const int v : stands_) all.push_back(assignment[static_cast<std::size_t>(v)]);
    return all;
  }
  /// Which pair of the smaller network stands for each pair; -1: none.
  const std::vector<int>& pairs() const { return pairs_; }

 private:
  /// The units that are kept at either end.
  static constexpr int first_ = 4, last_ = 3;

  bool is_kept(int unit) const { return unit < first_ || unit >= units_ - last_; }
  int unit(int v) const { return unit_[static_cast<std::size_t>(v)]; }

  /// Numbers the variables of each unit, so that those that correspond have equal numbers; no units
  /// are known where the middle ones differ.
  void find(const CostNetwork& network) {
    const auto colours = colours_of(network);
    unit_ = find_units(network, colours);
    units_ = unit_.empty() ? 0 : 1 + *std::ranges::max_element(unit_);
    if (!is_smaller()) return;
    std::vector<std::vector<std::pair<std::uint64_t, int>>> all(static_cast<std::size_t>(units_));
    for (int v = 0; v < network.variables(); ++v)
      if (unit(v) >= 0)
        all[static_cast<std::size_t>(unit(v))].push_back({colours[static_cast<std::size_t>(v)], v});
    for (auto& one : all) std::ranges::sort(one);
    place_.resize(unit_.size());
    for (const auto& one : all) {
      members_.emplace_back();
      for (const auto& [colour, v] : one) {
        place_[static_cast<std::size_t>(v)] = static_cast<int>(members_.back().size());
        members_.back().push_back(v);
      }
    }
    const auto& middle = all[static_cast<std::size_t>(first_ - 1)];
    for (int u = first_; u <= units_ - last_; ++u)
      if (!std::ranges::equal(all[static_cast<std::size_t>(u)], middle,
                              [](const auto& a, const auto& b) { return a.first == b.first; })) {
        units_ = 0;
        return;
      }
  }
  /// Returns the variable of another unit that corresponds to a variable.
  int in_unit(int v, int u) const {
    return members_[static_cast<std::size_t>(u)]
                   [static_cast<std::size_t>(place_[static_cast<std::size_t>(v)])];
  }
  /// Returns the kept pair that stands for a pair, whose units may follow each other.
  std::pair<int, int> kept_pair(int a, int b) const {
    const int low = std::min(unit(a), unit(b)), high = std::max(unit(a), unit(b));
    if (low < 0 || (is_kept(low) && is_kept(high))) return {a, b};
    if (low == high) return {in_unit(a, first_ - 1), in_unit(b, first_ - 1)};
    const auto moved = [&](int v) {
      return in_unit(v, unit(v) == low ? first_ - 1 : units_ - last_);
    };
    return {moved(a), moved(b)};
  }
  void fold(const CostNetwork& network) {
    std::vector<int> number(unit_.size(), -1);
    for (int v = 0; v < network.variables(); ++v)
      if (unit(v) < 0 || is_kept(unit(v)))
        number[static_cast<std::size_t>(v)] = result_.add_variable(network.costs(v));
    for (int v = 0; v < network.variables(); ++v) {
      const int kept = number[static_cast<std::size_t>(v)] >= 0 ? v : in_unit(v, first_ - 1);
      stands_.push_back(number[static_cast<std::size_t>(kept)]);
    }
    std::map<std::pair<int, int>, int> known;
    const auto pair_of = [&](const CostNetwork::Pair& pair) {
      const auto [a, b] = kept_pair(pair.a, pair.b);
      return std::pair(number[static_cast<std::size_t>(a)], number[static_cast<std::size_t>(b)]);
    };
    for (const auto& pair : network.pairs()) {
      const auto [a, b] = pair_of(pair);
      const bool fits = a >= 0 && b >= 0 && a < b && network.values(pair.a) == result_.values(a) &&
                        network.values(pair.b) == result_.values(b);
      if (!fits) {
        pairs_.push_back(-1);
        continue;
      }
      const auto [at, fresh] = known.try_emplace({a, b}, static_cast<int>(result_.pairs().size()));
      if (fresh) result_.add_pair(a, b, network.costs(pair));
      pairs_.push_back(at->second);
    }
  }

  int units_ = 0;
  std::vector<int> unit_, place_;          ///< each variable's unit, and its number in the unit
  std::vector<std::vector<int>> members_;  ///< the variables of each unit
  std::vector<int> stands_;                ///< the smaller network's variable for each
  std::vector<int> pairs_;
  CostNetwork result_;
};

}  // namespace tessera::detail
