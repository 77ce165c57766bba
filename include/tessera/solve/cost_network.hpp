// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A cost network: variables with finite domains, costs of single values and of pairs of values,
/// and what each value uses of resources over time, with a limit. `solve` (solve/solve.hpp) finds
/// the cheapest assignment.
///
///     CostNetwork network;
///     const int x = network.add_variable({5, 0}), y = network.add_variable({0, 0, 2});
///     network.add_pair(x, y, {0, 9, infeasible,   // x = 0
///                             9, 0, 4});          // x = 1
///     network.add_usage(x, 0, 2, {8, 16});        // at times 0 and 1
///     network.set_limit(0, 2, 12);
///
/// Laws: the cost of an assignment is the sum of its variables' and pairs' costs; it is feasible
/// when no part of it is `infeasible` and no time's usage exceeds the time's limit. Sums of finite
/// costs are at most `most_cost`; so are, where a limit may be exceeded, those of all variables'
/// largest usages, of which each counts up to the largest limit.
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/solve/cost.hpp>

namespace tessera {

/// A value for each variable.
using Assignment = std::vector<int>;

class CostNetwork {
 public:
  struct Pair {
    int a, b;           // a < b
    std::size_t first;  // of its costs, one row for each value of a
  };
  /// A variable's usage at the times begin … end-1; a variable may have several.
  struct Usage {
    int variable, begin, end;
    std::size_t first;
  };
  static constexpr Cost no_limit = std::numeric_limits<Cost>::max();

  int variables() const { return static_cast<int>(first_.size()) - 1; }
  int values(int variable) const {
    return static_cast<int>(first_[variable + 1] - first_[variable]);
  }
  /// All values of all variables, one after the other: the place of a variable's first, and their
  /// number.
  std::size_t first(int variable) const { return first_[variable]; }
  std::span<const std::size_t> firsts() const { return first_; }
  std::span<const Cost> all_costs() const { return costs_; }
  std::size_t all_values() const { return costs_.size(); }
  std::span<const Cost> costs(int variable) const {
    return {costs_.data() + first_[variable], values_of(variable)};
  }
  std::span<const Pair> pairs() const { return pairs_; }
  std::span<const Cost> costs(const Pair& pair) const {
    return {pair_costs_.data() + pair.first, values_of(pair.a) * values_of(pair.b)};
  }
  std::span<const Usage> usages() const { return usages_; }
  std::span<const Cost> amounts(const Usage& usage) const {
    return {amounts_.data() + usage.first, values_of(usage.variable)};
  }
  /// Limits of times 0, 1, …; later times have none.
  std::span<const Cost> limits() const { return limits_; }

  /// Returns the new variable's number. Throws ShapeError where it has no value.
  int add_variable(std::span<const Cost> costs) {
    if (costs.empty())
      throw ShapeError("a variable of a cost network has no values; it needs at least one");
    for (const Cost cost : costs) costs_.push_back(counted(cost));
    first_.push_back(costs_.size());
    return variables() - 1;
  }
  /// Adds to the costs of a variable's values.
  void add_costs(int variable, std::span<const Cost> costs) {
    check(variable);
    check_size(costs.size(), values_of(variable), "an addition to costs", "the variable's domain");
    for (std::size_t i = 0; i < costs.size(); ++i) {
      Cost& cost = costs_[first_[variable] + i];
      cost = counted(detail::add_costs(cost, counted(costs[i])));
    }
  }
  /// Adds a cost for each pair of values, (values of a) × (values of b), row by row. A pair may be
  /// added to again.
  void add_pair(int a, int b, std::span<const Cost> costs) {
    check(a);
    check(b);
    if (a == b)
      throw ShapeError("both variables of a pair are " + std::to_string(a) +
                       "; a pair has two variables: add the diagonal to the variable's own costs");
    check_size(costs.size(), values_of(a) * values_of(b), "a pair's costs",
               "the product of both domains");
    const std::size_t rows = values_of(a), columns = values_of(b);
    pairs_.push_back({a < b ? a : b, a < b ? b : a, pair_costs_.size()});
    if (a < b)
      for (const Cost cost : costs) pair_costs_.push_back(counted(cost));
    else
      for (std::size_t j = 0; j < columns; ++j)
        for (std::size_t i = 0; i < rows; ++i)
          pair_costs_.push_back(counted(costs[i * columns + j]));
  }
  /// Adds what each value of a variable uses at the times begin … end-1: zero or more.
  void add_usage(int variable, int begin, int end, std::span<const Cost> amounts) {
    check(variable);
    check_size(amounts.size(), values_of(variable), "a usage", "the variable's domain");
    for (const Cost amount : amounts)
      if (amount < 0 || amount > detail::most_cost)
        throw ShapeError("a usage of " + std::to_string(amount) +
                         "; usages lie between 0 and 2^60");
    if (begin < 0)
      throw ShapeError("a usage begins at time " + std::to_string(begin) + "; times begin at 0");
    if (begin >= end) return;
    usages_.push_back({variable, begin, end, amounts_.size()});
    amounts_.insert(amounts_.end(), amounts.begin(), amounts.end());
  }
  /// The usage at each of the times begin … end-1 may be at most `limit`.
  void set_limit(int begin, int end, Cost limit) {
    if (begin < 0)
      throw ShapeError("a limit begins at time " + std::to_string(begin) + "; times begin at 0");
    if (end > static_cast<int>(limits_.size())) limits_.resize(end, no_limit);
    for (int time = begin; time < end; ++time) limits_[time] = limit;
  }

  int add_variable(std::initializer_list<Cost> costs) {
    return add_variable(std::span(costs.begin(), costs.size()));
  }
  void add_pair(int a, int b, std::initializer_list<Cost> costs) {
    add_pair(a, b, std::span(costs.begin(), costs.size()));
  }
  void add_usage(int variable, int begin, int end, std::initializer_list<Cost> amounts) {
    add_usage(variable, begin, end, std::span(amounts.begin(), amounts.size()));
  }

 private:
  std::size_t values_of(int variable) const { return first_[variable + 1] - first_[variable]; }
  void check(int variable) const {
    if (variable < 0 || variable >= variables())
      throw ShapeError("there is no variable " + std::to_string(variable) + "; the network has " +
                       std::to_string(variables()) + ", added before what speaks of them");
  }
  static void check_size(std::size_t size, std::size_t wanted, const char* what, const char* rule) {
    if (size != wanted)
      throw ShapeError(std::string(what) + " has " + std::to_string(size) + " entries and needs " +
                       std::to_string(wanted) + ", " + rule);
  }
  static Cost counted(Cost cost) {
    if (is_feasible(cost) && (cost > detail::most_cost || cost < -detail::most_cost))
      throw ShapeError(
          "a cost of " + std::to_string(cost) +
          "; finite costs are at most 2^60 in magnitude, and `infeasible` what is not allowed");
    return is_feasible(cost) ? cost : infeasible;
  }

  std::vector<std::size_t> first_{0};
  std::vector<Cost> costs_, pair_costs_, amounts_, limits_;
  std::vector<Pair> pairs_;
  std::vector<Usage> usages_;
};

/// Returns what an assignment costs, without regard to limits.
inline Cost cost_of(const CostNetwork& network, const Assignment& assignment) {
  Cost cost = 0;
  for (int v = 0; v < network.variables(); ++v)
    cost = detail::add_costs(cost, network.costs(v)[assignment[v]]);
  for (const auto& pair : network.pairs())
    cost = detail::add_costs(
        cost,
        network.costs(pair)[static_cast<std::size_t>(assignment[pair.a]) * network.values(pair.b) +
                            assignment[pair.b]]);
  return is_feasible(cost) ? cost : infeasible;
}

}  // namespace tessera
