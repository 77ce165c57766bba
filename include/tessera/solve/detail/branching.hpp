// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Branch and bound: a node is a set of values for each variable; its bound is the relaxation's,
/// which also drops the values that no better assignment has. The children take one value each of
/// one variable, the most promising first (depth first; Land and Doig, 1960).
///
///     detail::Branching branching(network, timeline, pairs, relaxation, stop);
///     branching.offer(assignment);                 // what is known
///     const Cost bound = branching.search(costs, multipliers);
///     branching.best();
///
/// Laws: `search` returns a lower bound of all assignments; where the search was not stopped, it is
/// the least cost.
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/neighbourhood.hpp>
#include <tessera/solve/detail/relaxation.hpp>
#include <tessera/solve/detail/stop.hpp>

namespace tessera::detail {

class Branching {
 public:
  Branching(const CostNetwork& network, const Timeline& timeline, const PairsOf& pairs,
            Relaxation& relaxation, Stop& stop)
      : network_(&network),
        timeline_(&timeline),
        pairs_(&pairs),
        relaxation_(&relaxation),
        stop_(&stop) {}

  /// Keeps the assignment if it is feasible and the best so far, or as good and the first in the
  /// order of values.
  void offer(const Assignment& assignment) {
    const Cost cost = cost_of(*network_, assignment);
    if (!is_feasible(cost) || cost >= best_cost_) return;
    if (!timeline_->fits(timeline_->used(assignment))) return;
    best_cost_ = cost;
    best_ = assignment;
  }
  Cost best_cost() const { return best_cost_; }
  const Assignment& best() const { return best_; }
  std::uint64_t nodes() const { return nodes_; }

  Cost search(std::span<const Cost> costs, std::vector<Cost> multipliers) {
    const Cost bound = visit({costs.begin(), costs.end()}, std::move(multipliers), -infeasible, 60);
    return std::min(bound, best_cost_);
  }

 private:
  Cost visit(std::vector<Cost> costs, std::vector<Cost> multipliers, Cost known, int rounds);
  bool keep_limits(std::vector<Cost>& costs) const;
  int branching_variable(const std::vector<Cost>& costs, const std::vector<Cost>& marginals) const;

  const CostNetwork* network_;
  const Timeline* timeline_;
  const PairsOf* pairs_;
  Relaxation* relaxation_;
  Stop* stop_;
  Assignment best_;
  Cost best_cost_ = infeasible;
  std::uint64_t nodes_ = 0;
};

/// Drops values that exceed a limit even where all other variables use the least they can. False
/// where none is left.
inline bool Branching::keep_limits(std::vector<Cost>& costs) const {
  if (timeline_->points() == 0) return true;
  const auto least_of = [&](const Timeline::Row& row) {
    Cost least = infeasible;
    for (int i = 0; i < network_->values(row.variable); ++i)
      if (is_feasible(costs[network_->first(row.variable) + i]))
        least = std::min(least, timeline_->amount(row, i));
    return least;
  };
  std::vector<Cost> used(timeline_->points() + 1, 0);
  for (int v = 0; v < network_->variables(); ++v)
    for (const auto& row : timeline_->rows(v)) {
      const Cost least = least_of(row);
      if (!is_feasible(least)) return false;
      used[row.begin] += least;
      used[row.end] -= least;
    }
  Cost sum = 0;
  for (int p = 0; p < timeline_->points(); ++p) {
    sum += used[p];
    used[p] = timeline_->limits()[p] - sum;
    if (used[p] < 0) return false;
  }
  for (int v = 0; v < network_->variables(); ++v)
    for (const auto& row : timeline_->rows(v)) {
      const Cost least = least_of(row);
      Cost room = infeasible;
      for (int p = row.begin; p < row.end; ++p) room = std::min(room, used[p]);
      for (int i = 0; i < network_->values(v); ++i)
        if (timeline_->amount(row, i) - least > room) costs[network_->first(v) + i] = infeasible;
    }
  return true;
}

/// The variable whose values left differ most in what they use, or cost, relative to the room that
/// there is.
inline int Branching::branching_variable(const std::vector<Cost>& costs,
                                         const std::vector<Cost>& marginals) const {
  int found = -1;
  std::pair<Cost, Cost> most{-1, -1};
  for (int v = 0; v < network_->variables(); ++v) {
    Cost low = infeasible, high = -infeasible;
    int left = 0;
    for (int i = 0; i < network_->values(v); ++i) {
      const std::size_t at = network_->first(v) + static_cast<std::size_t>(i);
      if (!is_feasible(costs[at])) continue;
      ++left;
      low = std::min(low, marginals[at]);
      high = std::max(high, marginals[at]);
    }
    if (left < 2) continue;
    Cost spread = 0;
    for (const auto& row : timeline_->rows(v)) {
      Cost least = infeasible, largest = 0;
      for (int i = 0; i < network_->values(v); ++i)
        if (is_feasible(costs[network_->first(v) + static_cast<std::size_t>(i)])) {
          least = std::min(least, timeline_->amount(row, i));
          largest = std::max(largest, timeline_->amount(row, i));
        }
      spread = std::max(spread, largest - least);
    }
    const std::pair<Cost, Cost> weight{spread, high - low};
    if (weight > most) found = v, most = weight;
  }
  return found;
}

inline Cost Branching::visit(std::vector<Cost> costs, std::vector<Cost> multipliers, Cost known,
                             int rounds) {
  if (stop_->over()) return known;
  ++nodes_;
  if (!keep_limits(costs)) return infeasible;
  Cost bound = known;
  std::vector<Cost> direction, best_multipliers = multipliers;
  for (int round = 0; round < rounds; ++round) {
    const auto found = relaxation_->evaluate(costs, multipliers);
    if (found.bound > bound || round == 0) best_multipliers = multipliers;
    bound = std::max(bound, found.bound);
    if (!is_feasible(found.bound)) return infeasible;
    offer(found.assignment);
    if (round == 0 && timeline_->points() > 0 && best_cost_ == infeasible) {
      Neighbourhood here(*network_, *timeline_, *pairs_, found.assignment);
      if (here.fits()) {
        here.descend();
        offer(here.assignment());
      }
    }
    if (bound >= best_cost_) return bound;
    if (stop_->step()) return bound;
    if (timeline_->points() == 0) break;
    const Cost aim =
        is_feasible(best_cost_) ? best_cost_ : bound + std::max<Cost>(std::abs(bound) / 8, 16);
    const Cost missing = std::max<Cost>((aim - found.bound) / (1 + round / 8), 1);
    step_multipliers(*timeline_, timeline_->used(found.assignment), missing, direction,
                     multipliers);
  }
  relaxation_->evaluate(costs, best_multipliers);
  const std::vector<Cost> marginals = relaxation_->marginals();
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (marginals[i] >= best_cost_) costs[i] = infeasible;
  const int v = branching_variable(costs, marginals);
  if (v < 0) {  // at most one assignment is left
    Assignment only;
    for (int w = 0; w < network_->variables(); ++w)
      for (int i = 0; i < network_->values(w); ++i)
        if (is_feasible(costs[network_->first(w) + static_cast<std::size_t>(i)])) only.push_back(i);
    if (static_cast<int>(only.size()) == network_->variables()) offer(only);
    return infeasible;
  }
  std::vector<std::pair<Cost, int>> children;
  for (int i = 0; i < network_->values(v); ++i) {
    const std::size_t at = network_->first(v) + static_cast<std::size_t>(i);
    if (is_feasible(costs[at])) children.push_back({marginals[at], i});
  }
  std::ranges::sort(children);
  Cost least = infeasible;
  for (const auto& [marginal, value] : children) {
    std::vector<Cost> child = costs;
    for (int i = 0; i < network_->values(v); ++i)
      if (i != value) child[network_->first(v) + static_cast<std::size_t>(i)] = infeasible;
    least =
        std::min(least, visit(std::move(child), best_multipliers, std::max(bound, marginal), 8));
  }
  return std::max(bound, least);
}

}  // namespace tessera::detail
