// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An assignment under change: its cost, its usage at every point, and what another value of one
/// variable would change.
///
///     detail::Neighbourhood here(network, timeline, assignment);
///     if (here.fits(v, value)) here.set(v, value);
///     here.descend();   // until no single variable's change is a gain
///
/// Laws: `cost()` is the network's cost of `assignment()`; `descend` never makes a fitting
/// assignment dearer or unfit.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/timeline.hpp>

namespace tessera::detail {

/// For each variable, the pairs that have it.
class PairsOf {
 public:
  explicit PairsOf(const CostNetwork& network)
      : first_(static_cast<std::size_t>(network.variables()) + 1, 0) {
    for (const auto& pair : network.pairs()) ++first_[pair.a + 1], ++first_[pair.b + 1];
    for (std::size_t v = 1; v < first_.size(); ++v) first_[v] += first_[v - 1];
    list_.resize(first_.back());
    std::vector<int> next(first_.begin(), first_.end() - 1);
    for (std::size_t p = 0; p < network.pairs().size(); ++p) {
      list_[next[network.pairs()[p].a]++] = static_cast<int>(p);
      list_[next[network.pairs()[p].b]++] = static_cast<int>(p);
    }
  }
  std::span<const int> operator[](int v) const {
    return {list_.data() + first_[v], static_cast<std::size_t>(first_[v + 1] - first_[v])};
  }

 private:
  std::vector<int> first_, list_;
};

class Neighbourhood {
 public:
  Neighbourhood(const CostNetwork& network, const Timeline& timeline, const PairsOf& pairs,
                Assignment assignment)
      : network_(&network), timeline_(&timeline), pairs_(&pairs) {
    reset(std::move(assignment));
  }
  void reset(Assignment assignment) {
    assignment_ = std::move(assignment);
    cost_ = cost_of(*network_, assignment_);
    used_ = timeline_->used(assignment_);
  }

  const Assignment& assignment() const { return assignment_; }
  Cost cost() const { return cost_; }
  std::span<const Cost> used() const { return used_; }
  bool fits() const { return timeline_->fits(used_); }

  /// Adds to `costs`, one for each value of v, what v's pairs cost with the other variables as they
  /// are.
  void add_pairs(int v, std::vector<Cost>& costs) const {
    for (const int p : (*pairs_)[v]) {
      const auto& pair = network_->pairs()[p];
      const auto table = network_->costs(pair);
      const std::size_t columns = static_cast<std::size_t>(network_->values(pair.b));
      const bool is_a = pair.a == v;
      const std::size_t stride = is_a ? columns : 1;
      const std::size_t at = is_a ? static_cast<std::size_t>(assignment_[pair.b])
                                  : static_cast<std::size_t>(assignment_[pair.a]) * columns;
      for (std::size_t i = 0; i < costs.size(); ++i)
        costs[i] = add_costs(costs[i], table[at + i * stride]);
    }
  }
  /// Whether all limits that a change of v increases the usage of are kept after it.
  bool fits(int v, int value) const {
    for (const auto& row : timeline_->rows(v)) {
      if (timeline_->amount(row, value) <= timeline_->amount(row, assignment_[v])) continue;
      const Cost more = timeline_->amount(row, value) - timeline_->amount(row, assignment_[v]);
      for (int p = row.begin; p < row.end; ++p)
        if (used_[p] + more > timeline_->limits()[p]) return false;
    }
    return true;
  }
  void set(int v, int value) {
    std::vector<Cost> costs(network_->costs(v).begin(), network_->costs(v).end());
    add_pairs(v, costs);
    const bool counted = is_feasible(cost_) && is_feasible(costs[value]);
    if (counted) cost_ += costs[value] - costs[assignment_[v]];
    for (const auto& row : timeline_->rows(v)) {
      const Cost change = timeline_->amount(row, value) - timeline_->amount(row, assignment_[v]);
      if (change != 0)
        for (int p = row.begin; p < row.end; ++p) used_[p] += change;
    }
    assignment_[v] = value;
    if (!counted) cost_ = cost_of(*network_, assignment_);
  }
  /// Changes single variables while that makes the cost less and keeps limits. Returns whether it
  /// changed any.
  bool descend() {
    bool any = false, again = true;
    std::vector<Cost> costs;
    while (again) {
      again = false;
      for (int v = 0; v < network_->variables(); ++v) {
        costs.assign(network_->costs(v).begin(), network_->costs(v).end());
        add_pairs(v, costs);
        int best = assignment_[v];
        for (int i = 0; i < network_->values(v); ++i)
          if (costs[i] < costs[best] && fits(v, i)) best = i;
        if (best == assignment_[v]) continue;
        set(v, best);
        any = again = true;
      }
    }
    return any;
  }

 private:
  const CostNetwork* network_;
  const Timeline* timeline_;
  const PairsOf* pairs_;
  Assignment assignment_;
  Cost cost_ = 0;
  std::vector<Cost> used_;
};

}  // namespace tessera::detail
