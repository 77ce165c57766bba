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
/// What was moved to a pair is kept as one number for each value of its variables, beside the
/// pair's table: pairs with equal tables, such as those of layers that are alike, share one.
///
/// Laws: every assignment costs in the moved network what it did before. After a pass the least
/// cost of each pair is 0.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/neighbourhood.hpp>

namespace tessera::detail {

class Reparametrized {
 public:
  Reparametrized(const CostNetwork& network, const PairsOf& pairs)
      : network_(&network),
        pairs_(&pairs),
        costs_(network.all_costs().begin(), network.all_costs().end()) {
    std::unordered_map<std::uint64_t, std::vector<std::span<const Cost>>> known;
    std::size_t moved = 0;
    for (const auto& pair : network.pairs()) {
      const std::span<const Cost> table = network.costs(pair);
      std::uint64_t digest = table.size();
      for (const Cost cost : table) digest = stirred(digest, static_cast<std::uint64_t>(cost));
      std::vector<std::span<const Cost>>& same = known[digest];
      auto at = std::ranges::find_if(
          same, [&](const auto& one) { return std::ranges::equal(one, table); });
      if (at == same.end()) at = same.insert(same.end(), table);
      const std::size_t rows = network.costs(pair.a).size();
      sides_.push_back({at->data(), moved, moved + rows});
      moved += rows + network.costs(pair.b).size();
    }
    moved_.assign(moved, 0);
  }

  /// The costs of all values; adding to them changes the network by that.
  std::vector<Cost>& costs() { return costs_; }

  /// Moves what `other` has moved between its variables and its pairs; `of` is its pair for each of
  /// this network's, of as many values, or -1. Nothing has been moved before.
  void begin_as(const Reparametrized& other, std::span<const int> of) {
    for (std::size_t p = 0; p < sides_.size(); ++p) {
      if (of[p] < 0) continue;
      const Sides &to = sides_[p], &from = other.sides_[static_cast<std::size_t>(of[p])];
      const auto& pair = network_->pairs()[p];
      const auto move = [&](int v, std::size_t begin, std::size_t source) {
        Cost* const own = costs_.data() + network_->first(v);
        for (std::size_t i = 0; i < network_->costs(v).size(); ++i) {
          if (!is_feasible(own[i])) continue;
          moved_[begin + i] = other.moved_[source + i];
          own[i] -= moved_[begin + i];
        }
      };
      move(pair.a, to.a, from.a);
      move(pair.b, to.b, from.b);
    }
  }
  /// Once forward and once backward. Time: two readings of all pairs.
  void pass() {
    for (int v = 0; v < network_->variables(); ++v) update(v, true);
    for (int v = network_->variables(); v-- > 0;) update(v, false);
  }
  /// After a pass.
  Cost bound() const {
    Cost bound = 0;
    for (int v = 0; v < network_->variables(); ++v)
      bound =
          add_costs(bound, *std::min_element(costs_.begin() + at(v), costs_.begin() + at(v + 1)));
    return bound;
  }
  /// After a pass: each variable in turn takes the value that costs least with those before it; of
  /// what later ones hold for it, the least is 0.
  Assignment decode() const {
    Assignment assignment(static_cast<std::size_t>(network_->variables()), 0);
    std::vector<Cost> sums;
    for (int v = 0; v < network_->variables(); ++v) {
      sums.assign(costs_.begin() + at(v), costs_.begin() + at(v + 1));
      for (const int p : (*pairs_)[v]) {
        const int a = network_->pairs()[p].a;
        if (a == v) continue;
        const Sides& of = sides_[p];
        const std::size_t row = static_cast<std::size_t>(assignment[a]);
        for (std::size_t j = 0; j < sums.size(); ++j)
          sums[j] = add_costs(sums[j], moved(of.table[row * sums.size() + j],
                                             moved_[of.a + row] + moved_[of.b + j]));
      }
      assignment[v] = static_cast<int>(std::ranges::min_element(sums) - sums.begin());
    }
    return assignment;
  }
  /// The network with its costs as they were moved.
  CostNetwork network() const {
    CostNetwork result;
    for (int v = 0; v < network_->variables(); ++v)
      result.add_variable(std::span(costs_).subspan(network_->first(v), network_->costs(v).size()));
    std::vector<Cost> table;
    for (std::size_t p = 0; p < sides_.size(); ++p) {
      const auto& pair = network_->pairs()[p];
      const Sides& of = sides_[p];
      const std::size_t rows = network_->costs(pair.a).size(),
                        columns = network_->costs(pair.b).size();
      table.clear();
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
          table.push_back(moved(of.table[i * columns + j], moved_[of.a + i] + moved_[of.b + j]));
      result.add_pair(pair.a, pair.b, table);
    }
    return result;
  }

 private:
  /// A pair's table, and where what was moved to its rows and to its columns begins.
  struct Sides {
    const Cost* table;
    std::size_t a, b;
  };
  static Cost moved(Cost cost, Cost by) { return is_feasible(cost) ? cost + by : infeasible; }
  std::ptrdiff_t at(int v) const {
    return static_cast<std::ptrdiff_t>(v < network_->variables() ? network_->first(v)
                                                                 : costs_.size());
  }
  void update(int v, bool forward);
  void find_least(int p, bool of_rows, std::size_t own);

  const CostNetwork* network_;
  const PairsOf* pairs_;
  std::vector<Sides> sides_;
  std::vector<Cost> costs_, moved_, least_;
};

/// For each row of a pair, or each column, the least of the table and of what was moved to the
/// other side.
inline void Reparametrized::find_least(int p, bool of_rows, std::size_t own) {
  const auto& pair = network_->pairs()[p];
  const std::size_t rows = network_->costs(pair.a).size(), columns = network_->costs(pair.b).size();
  const Cost *table = sides_[p].table, *const a = moved_.data() + sides_[p].a,
             *const b = moved_.data() + sides_[p].b;
  least_.assign(own, infeasible);
  Cost* const least = least_.data();
  for (std::size_t i = 0; i < rows; ++i, table += columns) {
    if (of_rows) {
      Cost lowest = infeasible;
      for (std::size_t j = 0; j < columns; ++j) lowest = std::min(lowest, table[j] + b[j]);
      least[i] = lowest;
    } else {
      const Cost by = a[i];
      for (std::size_t j = 0; j < columns; ++j) least[j] = std::min(least[j], table[j] + by);
    }
  }
}

inline void Reparametrized::update(int v, bool forward) {
  const std::span<Cost> own(costs_.data() + network_->first(v), network_->costs(v).size());
  int onwards = 0, others = 0;
  for (const int p : (*pairs_)[v]) {
    const bool is_a = network_->pairs()[p].a == v;
    ++(is_a == forward ? onwards : others);
    find_least(p, is_a, own.size());
    Cost* const mine = moved_.data() + (is_a ? sides_[p].a : sides_[p].b);
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = is_feasible(least_[i]) ? add_costs(own[i], least_[i] + mine[i]) : infeasible;
      mine[i] = is_feasible(least_[i]) ? -least_[i] : 0;
    }
  }
  if (onwards == 0) return;
  const Cost shares = std::max(onwards, others);
  least_.resize(own.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    least_[i] = is_feasible(own[i]) ? own[i] / shares : 0;
  for (const int p : (*pairs_)[v]) {
    const bool is_a = network_->pairs()[p].a == v;
    if (is_a != forward) continue;
    Cost* const mine = moved_.data() + (is_a ? sides_[p].a : sides_[p].b);
    for (std::size_t i = 0; i < own.size(); ++i) {
      mine[i] += least_[i];
      if (is_feasible(own[i])) own[i] -= least_[i];
    }
  }
}

}  // namespace tessera::detail
