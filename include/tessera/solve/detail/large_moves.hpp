// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A large move: of some variables all that can be eliminated within a small table are set anew at
/// once, exactly, while the others stay (a neighbourhood of low width; compare Hamze and de
/// Freitas, UAI 2004, and Ouali et al., VNS guided by tree decompositions, 2017).
///
///     detail::LargeMoves moves(network, pairs, std::size_t{1} << 12);
///     const Assignment next = moves.improved(assignment, moves.around(v, 300, random), costs, random);
///
/// Laws: by the given costs of values, the result costs at most what the assignment did.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/elimination.hpp>
#include <tessera/solve/detail/neighbourhood.hpp>

namespace tessera::detail {

/// Numbers that look random and are the same everywhere (SplitMix64; Steele et al., 2014).
class Numbers {
 public:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15u;
    z = (z ^ z >> 30) * 0xBF58'476D'1CE4'E5B9u;
    z = (z ^ z >> 27) * 0x94D0'49BB'1331'11EBu;
    return z ^ z >> 31;
  }
  int below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t state_ = 1;
};

/// The largest table of a move: several times that of most pairs.
inline std::size_t move_entries(const CostNetwork& network) {
  std::vector<std::size_t> sizes{0};
  for (const auto& pair : network.pairs()) sizes.push_back(network.costs(pair).size());
  const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() * 9 / 10);
  std::ranges::nth_element(sizes, place);
  return std::clamp(4 * *place, std::size_t{1} << 12, std::size_t{1} << 18);
}

class LargeMoves {
 public:
  LargeMoves(const CostNetwork& network, const PairsOf& pairs, std::size_t bound)
      : network_(&network),
        pairs_(&pairs),
        bound_(bound),
        neighbours_(neighbours_of(network)),
        local_(static_cast<std::size_t>(network.variables()), -1) {}

  /// Up to `count` variables around v, the nearest first.
  std::vector<int> around(int v, int count, Numbers& numbers) {
    std::vector<int> found{v};
    local_[v] = 0;
    for (std::size_t i = 0; i < found.size() && static_cast<int>(found.size()) < count; ++i) {
      const auto& list = neighbours_[found[i]];
      const std::size_t from = list.empty() ? 0 : numbers.next() % list.size();
      for (std::size_t k = 0; k < list.size() && static_cast<int>(found.size()) < count; ++k) {
        const int other = list[(from + k) % list.size()];
        if (local_[other] >= 0) continue;
        local_[other] = 0;
        found.push_back(other);
      }
    }
    for (const int w : found) local_[w] = -1;
    return found;
  }
  /// Time: that of the elimination, at most `bound` entries for each variable.
  Assignment improved(const Assignment& assignment, const std::vector<int>& variables,
                      std::span<const Cost> costs, Numbers& numbers);

 private:
  std::vector<int> eliminable(const std::vector<int>& variables, Numbers& numbers);

  const CostNetwork* network_;
  const PairsOf* pairs_;
  std::size_t bound_;
  std::vector<std::vector<int>> neighbours_;
  std::vector<int> local_;  // of each variable the number among those of a move, or -1
  Tables tables_;
};

/// Those of the variables that are eliminated within the bound, in their order. Where the smallest
/// bucket exceeds it, one of its variables stays as it is.
inline std::vector<int> LargeMoves::eliminable(const std::vector<int>& variables,
                                               Numbers& numbers) {
  const int count = static_cast<int>(variables.size());
  for (int i = 0; i < count; ++i) local_[variables[i]] = i;
  std::vector<std::vector<int>> around(count);
  for (int i = 0; i < count; ++i) {
    for (const int other : neighbours_[variables[i]])
      if (local_[other] >= 0) around[i].push_back(local_[other]);
    std::ranges::sort(around[i]);
  }
  for (const int v : variables) local_[v] = -1;
  using Key = std::tuple<std::uint64_t, int, int>;
  std::vector<Key> keys(count);
  const auto key_of = [&](int i) {
    std::uint64_t weight = static_cast<std::uint64_t>(network_->values(variables[i]));
    for (const int j : around[i])
      if (weight <= bound_) weight *= static_cast<std::uint64_t>(network_->values(variables[j]));
    return Key{weight, static_cast<int>(numbers.next() >> 40), i};
  };
  std::priority_queue<Key, std::vector<Key>, std::greater<>> queue;
  for (int i = 0; i < count; ++i) queue.push(keys[i] = key_of(i));
  std::vector<char> gone(count, 0);
  std::vector<int> order, merged;
  while (!queue.empty()) {
    const Key key = queue.top();
    queue.pop();
    int i = std::get<2>(key);
    if (gone[i] || key != keys[i]) continue;
    const bool fits = std::get<0>(key) <= bound_;
    if (!fits) {  // the variable of this bucket with most neighbours, or one at random
      const auto& list = around[i];
      int chosen = i;
      if (!list.empty() && numbers.below(3) == 0)
        chosen = list[numbers.next() % list.size()];
      else
        for (const int j : list)
          if (around[j].size() > around[chosen].size()) chosen = j;
      if (chosen != i) queue.push(key);
      i = chosen;
    }
    gone[i] = 1;
    const std::vector<int> list = std::move(around[i]);
    for (const int j : list) {
      auto& other = around[j];
      if (fits) {
        merged.clear();
        std::ranges::set_union(other, list, std::back_inserter(merged));
        std::erase_if(merged, [&](int k) { return k == i || k == j; });
        other = merged;
      } else {
        other.erase(std::ranges::lower_bound(other, i));
      }
    }
    for (const int j : list) queue.push(keys[j] = key_of(j));
    if (fits) order.push_back(variables[i]);
  }
  return order;
}

inline Assignment LargeMoves::improved(const Assignment& assignment,
                                       const std::vector<int>& variables,
                                       std::span<const Cost> costs, Numbers& numbers) {
  const std::vector<int> free = eliminable(variables, numbers);
  for (std::size_t i = 0; i < free.size(); ++i) local_[free[i]] = static_cast<int>(i);
  CostNetwork part;
  Assignment current;
  std::vector<Cost> sums;
  for (const int v : free) {
    const auto own = costs.subspan(network_->first(v), network_->costs(v).size());
    sums.assign(own.begin(), own.end());
    for (const int p : (*pairs_)[v]) {
      const auto& pair = network_->pairs()[p];
      const int other = pair.a == v ? pair.b : pair.a;
      if (local_[other] >= 0) continue;
      const auto table = network_->costs(pair);
      const std::size_t columns = network_->costs(pair.b).size();
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = detail::add_costs(
            sums[i], pair.a == v
                         ? table[i * columns + static_cast<std::size_t>(assignment[other])]
                         : table[static_cast<std::size_t>(assignment[other]) * columns + i]);
    }
    part.add_variable(sums);
    current.push_back(assignment[v]);
  }
  for (const int v : free)
    for (const int p : (*pairs_)[v]) {
      const auto& pair = network_->pairs()[p];
      if (pair.a == v && local_[pair.b] >= 0)
        part.add_pair(local_[v], local_[pair.b], network_->costs(pair));
    }
  std::vector<int> order(free.size());
  for (std::size_t i = 0; i < free.size(); ++i) order[i] = static_cast<int>(i);
  for (const int v : free) local_[v] = -1;
  Elimination elimination(part, order, bound_);
  tables_ = Tables();
  Assignment next = assignment;
  if (!is_feasible(elimination.forward(tables_, part.all_costs()))) return next;
  const Assignment found = elimination.decode(tables_, current);
  for (std::size_t i = 0; i < free.size(); ++i) next[free[i]] = found[i];
  return next;
}

}  // namespace tessera::detail
