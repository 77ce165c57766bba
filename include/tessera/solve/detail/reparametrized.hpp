// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A network whose costs are moved between variables and pairs, so that the sum of their smallest
/// entries, a lower bound, grows: each variable in turn takes what its pairs hold for its values,
/// and gives equal shares to the pairs that lead onwards (sequential reweighted message passing;
/// Kolmogorov, PAMI 28, 2006 and PAMI 37, 2015), in integers.
///
///     detail::Reparametrized moved(network, pairs);
///     for (int i = 0; i < 10; ++i) moved.pass();
///     moved.bound();
///
/// Laws: every assignment costs in the moved network what it did before.
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/neighbourhood.hpp>

namespace tessera::detail {

class Reparametrized {
 public:
  Reparametrized(const CostNetwork& network, const PairsOf& pairs)
      : network_(&network),
        pairs_(&pairs),
        costs_(network.all_costs().begin(), network.all_costs().end()) {
    first_.push_back(0);
    for (const auto& pair : network.pairs()) {
      const auto table = network.costs(pair);
      tables_.insert(tables_.end(), table.begin(), table.end());
      first_.push_back(tables_.size());
    }
  }

  /// The costs of all values; adding to them changes the network by that.
  std::vector<Cost>& costs() { return costs_; }

  /// Once forward and once backward. Time: four readings of all pairs.
  void pass() {
    for (int v = 0; v < network_->variables(); ++v) update(v, true);
    for (int v = network_->variables(); v-- > 0;) update(v, false);
  }
  Cost bound() const {
    Cost bound = 0;
    for (int v = 0; v < network_->variables(); ++v)
      bound =
          add_costs(bound, *std::min_element(costs_.begin() + at(v), costs_.begin() + at(v + 1)));
    for (std::size_t p = 0; p + 1 < first_.size(); ++p)
      bound = add_costs(
          bound, *std::min_element(tables_.begin() + static_cast<std::ptrdiff_t>(first_[p]),
                                   tables_.begin() + static_cast<std::ptrdiff_t>(first_[p + 1])));
    return bound;
  }
  /// Each variable in turn takes the value that costs least with those before it, and what later
  /// ones hold for it.
  Assignment decode() const {
    Assignment assignment(static_cast<std::size_t>(network_->variables()), 0);
    std::vector<Cost> sums;
    for (int v = 0; v < network_->variables(); ++v) {
      sums.assign(costs_.begin() + at(v), costs_.begin() + at(v + 1));
      for (const int p : (*pairs_)[v]) {
        const auto& pair = network_->pairs()[p];
        const std::size_t columns = static_cast<std::size_t>(network_->values(pair.b));
        const Cost* const table = tables_.data() + first_[p];
        for (std::size_t i = 0; i < sums.size(); ++i) {
          Cost cost = infeasible;
          if (pair.b == v)
            cost = table[static_cast<std::size_t>(assignment[pair.a]) * columns + i];
          else
            for (std::size_t j = 0; j < columns; ++j) cost = std::min(cost, table[i * columns + j]);
          sums[i] = add_costs(sums[i], cost);
        }
      }
      assignment[v] = static_cast<int>(std::ranges::min_element(sums) - sums.begin());
    }
    return assignment;
  }
  /// The network with its costs as they were moved.
  CostNetwork network() const {
    CostNetwork moved;
    for (int v = 0; v < network_->variables(); ++v)
      moved.add_variable(std::span(costs_).subspan(network_->first(v), network_->costs(v).size()));
    for (std::size_t p = 0; p + 1 < first_.size(); ++p)
      moved.add_pair(network_->pairs()[p].a, network_->pairs()[p].b,
                     std::span(tables_).subspan(first_[p], first_[p + 1] - first_[p]));
    return moved;
  }

 private:
  std::ptrdiff_t at(int v) const {
    return static_cast<std::ptrdiff_t>(v < network_->variables() ? network_->first(v)
                                                                 : costs_.size());
  }
  void update(int v, bool forward);
  void add(int p, bool rows, std::span<const Cost> change);

  const CostNetwork* network_;
  const PairsOf* pairs_;
  std::vector<Cost> costs_, tables_, least_;
  std::vector<std::size_t> first_;
};

/// Adds a cost to each row, or each column, of a pair's table.
inline void Reparametrized::add(int p, bool rows, std::span<const Cost> change) {
  const auto& pair = network_->pairs()[p];
  const std::size_t count = network_->costs(pair.a).size(),
                    columns = network_->costs(pair.b).size();
  Cost* table = tables_.data() + first_[p];
  for (std::size_t i = 0; i < count; ++i, table += columns)
    for (std::size_t j = 0; j < columns; ++j) {
      const Cost sum = table[j] + (rows ? change[i] : change[j]);
      table[j] = is_feasible(sum) ? sum : infeasible;
    }
}

inline void Reparametrized::update(int v, bool forward) {
  const std::span<Cost> own(costs_.data() + network_->first(v), network_->costs(v).size());
  int onwards = 0, others = 0;
  for (const int p : (*pairs_)[v]) {
    const auto& pair = network_->pairs()[p];
    const bool is_a = pair.a == v;
    ++(is_a == forward ? onwards : others);
    const std::size_t rows = network_->costs(pair.a).size(),
                      columns = network_->costs(pair.b).size();
    least_.assign(own.size(), infeasible);
    const Cost* table = tables_.data() + first_[p];
    for (std::size_t i = 0; i < rows; ++i, table += columns)
      if (is_a)
        for (std::size_t j = 0; j < columns; ++j) least_[i] = std::min(least_[i], table[j]);
      else
        for (std::size_t j = 0; j < columns; ++j) least_[j] = std::min(least_[j], table[j]);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = add_costs(own[i], least_[i]);
      least_[i] = is_feasible(least_[i]) ? -least_[i] : 0;
    }
    add(p, is_a, least_);
  }
  if (onwards == 0) return;
  const Cost shares = std::max(onwards, others);
  least_.resize(own.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    least_[i] = is_feasible(own[i]) ? own[i] / shares : 0;
  for (const int p : (*pairs_)[v]) {
    const bool is_a = network_->pairs()[p].a == v;
    if (is_a != forward) continue;
    add(p, is_a, least_);
    for (std::size_t i = 0; i < own.size(); ++i)
      if (is_feasible(own[i])) own[i] -= least_[i];
  }
}

}  // namespace tessera::detail
