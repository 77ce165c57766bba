// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A network without the variables that have one or two neighbours and no usage: each is minimized
/// over, and leaves a cost of its neighbour's values, or of its two neighbours' pairs of values,
/// where that takes no more room than it did (bucket elimination; Dechter, Artificial Intelligence
/// 113, 1999). What is left is smaller and more tightly joined, so that bounds rise in fewer
/// passes.
///
///     const detail::Shortened shortened(network);
///     const Assignment best = shortened.recovered(assignment_of(shortened.network()));
///
/// Laws: the least cost of `network()` is that of the first network; a recovered assignment costs
/// what the smaller one did, and uses what it did.
#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>

namespace tessera::detail {

class Shortened {
 public:
  explicit Shortened(const CostNetwork& network)
      : costs_(static_cast<std::size_t>(network.variables())),
        neighbours_(costs_.size()),
        used_(costs_.size(), 0),
        gone_(costs_.size(), 0),
        number_(costs_.size(), -1) {
    for (int v = 0; v < network.variables(); ++v)
      costs_[at(v)].assign(network.costs(v).begin(), network.costs(v).end());
    for (const auto& usage : network.usages()) used_[at(usage.variable)] = 1;
    for (const auto& pair : network.pairs()) {
      const auto table = network.costs(pair);
      join(pair.a, pair.b, {table.begin(), table.end()});
    }
    for (bool again = true; again;) {
      again = false;
      for (int v = 0; v < network.variables(); ++v)
        if (!gone_[at(v)] && may_go(v)) {
          eliminate(v);
          again = true;
        }
    }
    finish(network);
  }

  const CostNetwork& network() const { return result_; }
  /// Which variable a variable of the smaller network was.
  int variable(int reduced) const { return variable_[at(reduced)]; }
  Assignment recovered(const Assignment& assignment) const {
    Assignment all(costs_.size(), 0);
    for (std::size_t v = 0; v < all.size(); ++v)
      if (number_[v] >= 0) all[v] = assignment[at(number_[v])];
    for (std::size_t s = steps_.size(); s-- > 0;) {
      const Step& step = steps_[s];
      std::vector<Cost> sums = costs_[at(step.variable)];
      for (const Edge& edge : step.edges)
        for (std::size_t j = 0; j < sums.size(); ++j)
          sums[j] = add_costs(sums[j], edge.costs[j * edge.values + at(all[at(edge.other)])]);
      all[at(step.variable)] = static_cast<int>(std::ranges::min_element(sums) - sums.begin());
    }
    return all;
  }
  /// The smaller network's part of an assignment.
  Assignment reduced(const Assignment& assignment) const {
    Assignment part;
    for (const int v : variable_) part.push_back(assignment[at(v)]);
    return part;
  }

 private:
  /// Costs of the values of a variable, row by row, with those of another.
  struct Edge {
    int other;
    std::size_t values;
    std::vector<Cost> costs;
  };
  struct Step {
    int variable;
    std::vector<Edge> edges;
  };
  /// The most operations of an elimination, so that none takes long.
  static constexpr std::size_t most_work = std::size_t{1} << 22;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::size_t values(int v) const { return costs_[at(v)].size(); }

  /// Adds to the costs of a pair, row by row of a.
  void join(int a, int b, std::vector<Cost> costs) {
    if (a > b) {
      std::vector<Cost> turned(costs.size());
      for (std::size_t i = 0; i < values(a); ++i)
        for (std::size_t j = 0; j < values(b); ++j)
          turned[j * values(a) + i] = costs[i * values(b) + j];
      return join(b, a, std::move(turned));
    }
    const auto [place, fresh] = pairs_.try_emplace({a, b}, std::move(costs));
    if (fresh) {
      neighbours_[at(a)].push_back(b);
      neighbours_[at(b)].push_back(a);
      return;
    }
    for (std::size_t i = 0; i < place->second.size(); ++i)
      place->second[i] = add_costs(place->second[i], costs[i]);
  }
  bool may_go(int v) const {
    const std::vector<int>& others = neighbours_[at(v)];
    if (used_[at(v)] || others.empty() || others.size() > 2) return false;
    if (others.size() == 1) return true;
    const std::size_t a = values(others[0]), b = values(others[1]), own = values(v);
    if (a * b > most_work / own) return false;
    const auto [low, high] = std::minmax(others[0], others[1]);
    return a * b <= own * (a + b) || pairs_.contains({low, high});
  }
  /// Takes an edge out of the network.
  Edge take(int v, int other) {
    std::erase(neighbours_[at(other)], v);
    const auto node = pairs_.extract({std::min(v, other), std::max(v, other)});
    Edge edge{other, values(other), std::move(node.mapped())};
    if (other < v) {
      std::vector<Cost> turned(edge.costs.size());
      for (std::size_t i = 0; i < edge.values; ++i)
        for (std::size_t j = 0; j < values(v); ++j)
          turned[j * edge.values + i] = edge.costs[i * values(v) + j];
      edge.costs = std::move(turned);
    }
    return edge;
  }
  void eliminate(int v) {
    Step step{v, {}};
    for (const int other : neighbours_[at(v)]) step.edges.push_back(take(v, other));
    neighbours_[at(v)].clear();
    gone_[at(v)] = 1;
    const Edge& a = step.edges.front();
    if (step.edges.size() == 1) {
      std::vector<Cost>& sum = costs_[at(a.other)];
      for (std::size_t i = 0; i < a.values; ++i) {
        Cost least = infeasible;
        for (std::size_t j = 0; j < values(v); ++j)
          least = std::min(least, add_costs(costs_[at(v)][j], a.costs[j * a.values + i]));
        sum[i] = add_costs(sum[i], least);
      }
    } else {
      const Edge& b = step.edges.back();
      std::vector<Cost> costs(a.values * b.values, infeasible);
      for (std::size_t j = 0; j < values(v); ++j)
        for (std::size_t i = 0; i < a.values; ++i) {
          const Cost with = add_costs(costs_[at(v)][j], a.costs[j * a.values + i]);
          if (!is_feasible(with)) continue;
          const Cost* const row = b.costs.data() + j * b.values;
          Cost* const least = costs.data() + i * b.values;
          for (std::size_t k = 0; k < b.values; ++k) least[k] = std::min(least[k], with + row[k]);
        }
      for (Cost& cost : costs)
        if (!is_feasible(cost)) cost = infeasible;
      join(a.other, b.other, std::move(costs));
    }
    steps_.push_back(std::move(step));
  }
  void finish(const CostNetwork& network) {
    for (std::size_t v = 0; v < costs_.size(); ++v) {
      if (gone_[v]) continue;
      number_[v] = result_.add_variable(costs_[v]);
      variable_.push_back(static_cast<int>(v));
    }
    for (const auto& usage : network.usages())
      result_.add_usage(number_[at(usage.variable)], usage.begin, usage.end,
                        network.amounts(usage));
    for (const auto& [pair, costs] : pairs_)
      result_.add_pair(number_[at(pair.first)], number_[at(pair.second)], costs);
    for (int time = 0; time < static_cast<int>(network.limits().size()); ++time)
      result_.set_limit(time, time + 1, network.limits()[at(time)]);
  }

  std::vector<std::vector<Cost>> costs_;
  std::vector<std::vector<int>> neighbours_;
  std::map<std::pair<int, int>, std::vector<Cost>> pairs_;  ///< a < b
  std::vector<char> used_, gone_;
  std::vector<int> number_;  ///< in the result, or -1
  std::vector<int> variable_;
  std::vector<Step> steps_;
  CostNetwork result_;
};

}  // namespace tessera::detail
