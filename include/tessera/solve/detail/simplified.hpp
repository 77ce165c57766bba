// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A network made smaller without changing its least cost: values that no solution has are dropped
/// (arc consistency), a variable that another one determines becomes part of it, costs that
/// separate move to the variables, and a value goes that another one beats whatever the neighbours
/// are (Goldstein, Biophysical Journal 66, 1994), with no more usage at any time.
///
///     const detail::Simplified simplified(network, {.scale = 1});
///     const Assignment best = simplified.recovered(assignment_of(simplified.network()));
///
/// Laws: the least cost of `network()` plus `constant()` is the first network's times `scale`; a
/// recovered assignment costs what the smaller one did, and uses what it did.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>

namespace tessera::detail {

struct SimplifyOptions {
  Cost scale = 1;                  // each cost is multiplied by it, and then
  Assignment preferred = {};       // 1 is added for each variable that has another value than here,
                                   // where this is given
  std::vector<char> allowed = {};  // of all values of all variables, those that may be taken, if
                                   // this is given
};

class Simplified {
 public:
  Simplified(const CostNetwork& network, const SimplifyOptions& options);

  const CostNetwork& network() const { return result_; }
  Cost constant() const { return constant_; }
  /// False where no assignment is feasible, which is seen without a search; `network()` is then not
  /// to be solved.
  bool feasible() const { return feasible_; }
  /// Which variable a variable of the smaller network was.
  int variable(int reduced) const { return variable_[reduced]; }
  Assignment recovered(const Assignment& assignment) const;
  /// The smaller network's assignment that a given one recovers to, as far as there is one.
  Assignment reduced(const Assignment& assignment) const;

 private:
  struct Pair {
    int a, b;
    std::vector<Cost> costs;
    bool gone = false;
  };
  struct Usage {
    int begin, end;
    std::vector<Cost> amounts;
  };
  struct Variable {
    std::vector<Cost> costs;
    std::vector<char> on;
    std::vector<int> pairs;
    std::vector<Usage> usages;
    int left = 0;
  };
  /// A variable's values as a function of another's.
  struct Step {
    int variable, of;
    std::vector<int> values;
  };

  int other(const Pair& pair, int v) const { return pair.a == v ? pair.b : pair.a; }
  Cost& at(Pair& pair, int v, int i, int j) {
    return pair
        .costs[pair.a == v ? static_cast<std::size_t>(i) * variables_[pair.b].costs.size() + j
                           : static_cast<std::size_t>(j) * variables_[pair.b].costs.size() + i];
  }
  void add_pair(int a, int b, std::vector<Cost> costs);
  void drop(int v, int i);
  void make_consistent();
  bool separate(Pair& pair);
  bool contract(Pair& pair, int v);
  void remove_dominated(int v);
  void touch(int v) {
    if (!queued_[v]) queue_.push_back(v);
    queued_[v] = 1;
  }
  void finish(std::span<const Cost> limits);

  std::vector<Variable> variables_;
  std::vector<Pair> pairs_;
  std::vector<Step> steps_;
  std::vector<char> merged_, queued_;
  std::vector<int> queue_;
  std::vector<int> number_;              // in the result, or -1
  std::vector<std::vector<int>> value_;  // of each variable of the result: its values before
  std::vector<int> variable_;
  CostNetwork result_;
  Cost constant_ = 0;
  bool feasible_ = true;
};

inline void Simplified::add_pair(int a, int b, std::vector<Cost> costs) {
  const int rarer = variables_[a].pairs.size() < variables_[b].pairs.size() ? a : b;
  for (const int p : variables_[rarer].pairs) {
    Pair& pair = pairs_[p];
    if (pair.gone || other(pair, rarer) != (rarer == a ? b : a)) continue;
    for (int i = 0, k = 0; i < static_cast<int>(variables_[a].costs.size()); ++i)
      for (int j = 0; j < static_cast<int>(variables_[b].costs.size()); ++j, ++k)
        at(pair, a, i, j) = add_costs(at(pair, a, i, j), costs[k]);
    return;
  }
  variables_[a].pairs.push_back(static_cast<int>(pairs_.size()));
  variables_[b].pairs.push_back(static_cast<int>(pairs_.size()));
  pairs_.push_back({a, b, std::move(costs), false});
}

inline void Simplified::drop(int v, int i) {
  variables_[v].on[i] = 0;
  if (--variables_[v].left == 0) feasible_ = false;
  touch(v);
}

/// Drops the values that are infeasible alone or with all values of a neighbour (AC-3; Mackworth,
/// 1977).
inline void Simplified::make_consistent() {
  while (!queue_.empty() && feasible_) {
    const int v = queue_.back();
    queue_.pop_back();
    queued_[v] = 0;
    std::erase_if(variables_[v].pairs, [&](int p) { return pairs_[p].gone; });
    for (const int p : variables_[v].pairs) {
      const int w = other(pairs_[p], v);
      for (int j = 0; j < static_cast<int>(variables_[w].on.size()); ++j) {
        if (!variables_[w].on[j]) continue;
        bool supported = false;
        for (int i = 0; i < static_cast<int>(variables_[v].on.size()) && !supported; ++i)
          supported = variables_[v].on[i] && is_feasible(at(pairs_[p], v, i, j));
        if (!supported) drop(w, j);
      }
    }
  }
}

/// Moves a pair's costs to its variables where they are a sum of one cost for each.
inline bool Simplified::separate(Pair& pair) {
  Variable &a = variables_[pair.a], &b = variables_[pair.b];
  const auto first_of = [](const Variable& v) {
    return static_cast<int>(std::ranges::find(v.on, char{1}) - v.on.begin());
  };
  const int i0 = first_of(a), j0 = first_of(b);
  const Cost corner = at(pair, pair.a, i0, j0);
  for (int i = 0; i < static_cast<int>(a.on.size()); ++i)
    for (int j = 0; j < static_cast<int>(b.on.size()); ++j) {
      if (!a.on[i] || !b.on[j]) continue;
      const Cost cost = at(pair, pair.a, i, j), row = at(pair, pair.a, i, j0),
                 column = at(pair, pair.a, i0, j);
      if (!is_feasible(cost) || !is_feasible(row) || !is_feasible(column) || !is_feasible(corner) ||
          cost - row != column - corner)
        return false;
    }
  for (int i = 0; i < static_cast<int>(a.on.size()); ++i)
    if (a.on[i]) a.costs[i] = add_costs(a.costs[i], at(pair, pair.a, i, j0));
  for (int j = 0; j < static_cast<int>(b.on.size()); ++j)
    if (b.on[j]) b.costs[j] = add_costs(b.costs[j], at(pair, pair.a, i0, j) - corner);
  pair.gone = true;
  return true;
}

/// Makes v's neighbour a part of v where each value of v goes with a single value of it.
inline bool Simplified::contract(Pair& pair, int v) {
  const int w = other(pair, v);
  Variable &kept = variables_[v], &gone = variables_[w];
  if (kept.left > 2 * gone.left) return false;  // the tables would grow
  Step step{w, v, std::vector<int>(kept.on.size(), -1)};
  for (int i = 0; i < static_cast<int>(kept.on.size()); ++i) {
    if (!kept.on[i]) continue;
    for (int j = 0; j < static_cast<int>(gone.on.size()); ++j) {
      if (!gone.on[j] || !is_feasible(at(pair, v, i, j))) continue;
      if (step.values[i] >= 0) return false;
      step.values[i] = j;
    }
    if (step.values[i] < 0) return false;
  }
  const auto moved = [&](const auto& from, auto missing) {
    std::vector<Cost> to(kept.on.size(), missing);
    for (std::size_t i = 0; i < to.size(); ++i)
      if (kept.on[i]) to[i] = from(step.values[i]);
    return to;
  };
  for (int i = 0; i < static_cast<int>(kept.on.size()); ++i)
    if (kept.on[i])
      kept.costs[i] = add_costs(
          kept.costs[i], add_costs(at(pair, v, i, step.values[i]), gone.costs[step.values[i]]));
  for (const Usage& usage : gone.usages)
    kept.usages.push_back(
        {usage.begin, usage.end, moved([&](int j) { return usage.amounts[j]; }, Cost{0})});
  gone.usages.clear();
  merged_[w] = 1;
  const std::vector<int> others = std::move(gone.pairs);
  gone.pairs.clear();
  for (const int p : others) {
    if (pairs_[p].gone) continue;
    pairs_[p].gone = true;
    const int z = other(pairs_[p], w);
    const std::size_t columns = variables_[z].costs.size();
    std::vector<Cost> costs(kept.on.size() * columns, infeasible);
    for (std::size_t i = 0; i < kept.on.size(); ++i)
      for (std::size_t k = 0; k < columns; ++k)
        if (kept.on[i])
          costs[i * columns + k] = at(pairs_[p], w, step.values[i], static_cast<int>(k));
    add_pair(v, z, std::move(costs));
    touch(z);
  }
  steps_.push_back(std::move(step));
  touch(v);
  return true;
}

/// Drops each value that another one beats: that never costs or uses more, whatever the others are.
inline void Simplified::remove_dominated(int v) {
  Variable& variable = variables_[v];
  if (variable.left > 64) return;  // quadratic in the values
  std::erase_if(variable.pairs, [&](int p) { return pairs_[p].gone; });
  std::vector<int> values, counts;  // of its own, and of each neighbour
  for (int i = 0; i < static_cast<int>(variable.on.size()); ++i)
    if (variable.on[i]) values.push_back(i);
  for (const int p : variable.pairs) counts.push_back(variables_[other(pairs_[p], v)].left);
  // For each value its costs with all values of all neighbours, one after the other: as the value
  // that may go, and as the one that beats it. By how much the first is dearer is then very large
  // where it is not allowed, and far below 0 where the second alone is not.
  std::vector<std::vector<Cost>> going(values.size()), staying(values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    for (const int p : variable.pairs) {
      const auto& on = variables_[other(pairs_[p], v)].on;
      for (int j = 0; j < static_cast<int>(on.size()); ++j) {
        if (!on[j]) continue;
        const Cost cost = at(pairs_[p], v, values[i], j);
        going[i].push_back(is_feasible(cost) ? cost : infeasible);
        staying[i].push_back(is_feasible(cost) ? cost : least_infeasible);
      }
    }
  const auto beats = [&](std::size_t b, std::size_t a) {
    for (const Usage& usage : variable.usages)
      if (usage.amounts[values[b]] > usage.amounts[values[a]]) return false;
    Cost gain = variable.costs[values[a]] - variable.costs[values[b]];
    const Cost *with_a = going[a].data(), *with_b = staying[b].data();
    for (const int count : counts) {
      Cost least = infeasible;
      for (int j = 0; j < count; ++j) least = std::min(least, with_a[j] - with_b[j]);
      if (least < -most_cost) return false;  // b is not allowed where a is
      if (least < most_cost) gain += least;
      with_a += count;
      with_b += count;
    }
    return gain > 0 || (gain == 0 && b < a);
  };
  for (std::size_t a = values.size(); a-- > 0;)
    for (std::size_t b = 0; b < values.size() && variable.on[values[a]]; ++b)
      if (a != b && variable.on[values[b]] && beats(b, a)) drop(v, values[a]);
}

inline Simplified::Simplified(const CostNetwork& network, const SimplifyOptions& options)
    : variables_(network.variables()),
      merged_(network.variables(), 0),
      queued_(network.variables(), 0) {
  const auto scaled = [&](Cost cost) {
    return is_feasible(cost) ? cost * options.scale : infeasible;
  };
  for (int v = 0; v < network.variables(); ++v) {
    Variable& variable = variables_[v];
    for (const Cost cost : network.costs(v)) variable.costs.push_back(scaled(cost));
    variable.left = network.values(v);
    variable.on.assign(variable.costs.size(), 1);
    if (!options.preferred.empty())
      for (int i = 0; i < network.values(v); ++i)
        if (i != options.preferred[v] && is_feasible(variable.costs[i])) ++variable.costs[i];
    for (int i = 0; i < network.values(v); ++i)
      if (!is_feasible(variable.costs[i]) ||
          (!options.allowed.empty() && !options.allowed[network.first(v) + i]))
        drop(v, i);
    touch(v);
  }
  for (const auto& usage : network.usages()) {
    const auto amounts = network.amounts(usage);
    variables_[usage.variable].usages.push_back(
        {usage.begin, usage.end, {amounts.begin(), amounts.end()}});
  }
  for (const auto& pair : network.pairs()) {
    std::vector<Cost> costs(network.costs(pair).begin(), network.costs(pair).end());
    for (Cost& cost : costs) cost = scaled(cost);
    add_pair(pair.a, pair.b, std::move(costs));
  }
  for (int round = 0; round < 3 && feasible_; ++round) {
    make_consistent();
    if (!feasible_) break;
    const std::size_t steps = steps_.size();
    for (std::size_t p = 0; p < pairs_.size(); ++p) {  // contracting adds pairs
      if (pairs_[p].gone || separate(pairs_[p])) continue;
      const int a = pairs_[p].a, b = pairs_[p].b;
      Pair pair{a, b, std::move(pairs_[p].costs), false};  // `contract` adds pairs
      pairs_[p].gone = true;
      if (!contract(pair, a) && !contract(pair, b)) pairs_[p] = std::move(pair);
    }
    make_consistent();
    if (!feasible_) break;
    for (int v = 0; v < network.variables(); ++v)
      if (!merged_[v] && variables_[v].left > 1) remove_dominated(v);
    if (queue_.empty() && steps == steps_.size()) break;
  }
  if (feasible_) make_consistent();
  if (feasible_) finish(network.limits());
}

/// Makes the smaller network of what has more than one value left; the rest is constant.
inline void Simplified::finish(std::span<const Cost> limits) {
  const int count = static_cast<int>(variables_.size());
  number_.assign(count, -1);
  value_.clear();
  const auto only = [&](int v) {
    return static_cast<int>(std::ranges::find(variables_[v].on, char{1}) -
                            variables_[v].on.begin());
  };
  for (Pair& pair : pairs_) {
    if (pair.gone) continue;
    for (const int v : {pair.a, pair.b}) {
      if (pair.gone || variables_[v].left > 1) continue;
      const int w = other(pair, v), i = only(v);
      for (int j = 0; j < static_cast<int>(variables_[w].on.size()); ++j)
        variables_[w].costs[j] = add_costs(variables_[w].costs[j], at(pair, v, i, j));
      pair.gone = true;
    }
  }
  std::vector<WideCost> used(limits.size() + 1, 0);
  std::vector<Cost> costs;
  for (int v = 0; v < count; ++v) {
    if (merged_[v]) continue;
    const Variable& variable = variables_[v];
    std::vector<int> values;
    for (int i = 0; i < static_cast<int>(variable.on.size()); ++i)
      if (variable.on[i]) values.push_back(i);
    if (values.size() == 1) {
      constant_ = add_costs(constant_, variable.costs[values[0]]);
      for (const Usage& usage : variable.usages) {
        const int end = std::min(usage.end, static_cast<int>(limits.size()));
        if (usage.begin >= end) continue;
        used[usage.begin] += usage.amounts[values[0]];
        used[end] -= usage.amounts[values[0]];
      }
      continue;
    }
    costs.clear();
    for (const int i : values) costs.push_back(variable.costs[i]);
    number_[v] = result_.add_variable(costs);
    for (const Usage& usage : variable.usages) {
      costs.clear();
      for (const int i : values) costs.push_back(usage.amounts[i]);
      result_.add_usage(number_[v], usage.begin, usage.end, costs);
    }
    variable_.push_back(v);
    value_.push_back(std::move(values));
  }
  for (Pair& pair : pairs_) {
    if (pair.gone) continue;
    costs.clear();
    for (const int i : value_[number_[pair.a]])
      for (const int j : value_[number_[pair.b]]) costs.push_back(at(pair, pair.a, i, j));
    result_.add_pair(number_[pair.a], number_[pair.b], costs);
  }
  WideCost sum = 0;
  for (int time = 0; time < static_cast<int>(limits.size()); ++time) {
    sum += used[time];
    if (limits[time] == CostNetwork::no_limit) continue;
    if (sum > limits[time]) feasible_ = false;
    if (!feasible_) return;
    result_.set_limit(time, time + 1, static_cast<Cost>(limits[time] - sum));
  }
}

inline Assignment Simplified::recovered(const Assignment& assignment) const {
  Assignment all(variables_.size(), 0);
  for (std::size_t v = 0; v < variables_.size(); ++v)
    if (!merged_[v])
      all[v] = number_[v] >= 0 ? value_[number_[v]][assignment[number_[v]]]
                               : static_cast<int>(std::ranges::find(variables_[v].on, char{1}) -
                                                  variables_[v].on.begin());
  for (std::size_t s = steps_.size(); s-- > 0;)
    all[steps_[s].variable] = steps_[s].values[all[steps_[s].of]];
  return all;
}

inline Assignment Simplified::reduced(const Assignment& assignment) const {
  Assignment reduced(value_.size(), 0);
  for (std::size_t v = 0; v < value_.size(); ++v) {
    const auto place = std::ranges::find(value_[v], assignment[variable_[v]]);
    if (place != value_[v].end()) reduced[v] = static_cast<int>(place - value_[v].begin());
  }
  return reduced;
}

}  // namespace tessera::detail
