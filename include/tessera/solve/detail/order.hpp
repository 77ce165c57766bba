// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// In which order variables are eliminated: always that whose bucket is smallest, the product of
/// its own domain and of those of its neighbours (min-weight; Dechter, "Reasoning with
/// Probabilistic and Deterministic Graphical Models", section 5.3). A rank, if one is given, comes
/// first: variables of a lower rank go before the others.
///
///     const std::vector<int> order = detail::elimination_order(network, {}, std::size_t{1} << 20);
///
/// Laws: the order depends on the network's structure alone; ties go to the lower rank, then the
/// lower number.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include <tessera/solve/cost_network.hpp>

namespace tessera::detail {

/// Which variables share a pair with a variable, each once, in increasing order.
inline std::vector<std::vector<int>> neighbours_of(const CostNetwork& network) {
  std::vector<std::vector<int>> neighbours(static_cast<std::size_t>(network.variables()));
  for (const auto& pair : network.pairs()) {
    neighbours[pair.a].push_back(pair.b);
    neighbours[pair.b].push_back(pair.a);
  }
  for (auto& list : neighbours) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return neighbours;
}

/// `rank` is empty or has a number for each variable. Beyond `bound` entries a bucket is to be
/// split, and its variable's neighbours are not joined with each other. Time: the fill, O(variables
/// · width²) and a heap.
inline std::vector<int> elimination_order(const CostNetwork& network, const std::vector<int>& rank,
                                          std::size_t bound) {
  const int count = network.variables();
  auto neighbours = neighbours_of(network);
  using Key = std::tuple<int, std::uint64_t, int>;
  const auto key_of = [&](int v) {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    std::uint64_t weight = static_cast<std::uint64_t>(network.values(v));
    for (const int other : neighbours[v])
      if (weight < most) weight *= static_cast<std::uint64_t>(network.values(other));
    return Key{rank.empty() ? 0 : rank[v], weight, v};
  };
  std::vector<Key> keys(static_cast<std::size_t>(count));
  std::priority_queue<Key, std::vector<Key>, std::greater<>> queue;
  for (int v = 0; v < count; ++v) queue.push(keys[v] = key_of(v));
  std::vector<int> order, merged;
  std::vector<char> gone(static_cast<std::size_t>(count), 0);
  while (!queue.empty()) {
    const Key key = queue.top();
    queue.pop();
    const int v = std::get<2>(key);
    if (gone[v] || key != keys[v]) continue;
    gone[v] = 1;
    order.push_back(v);
    const std::vector<int> around = std::move(neighbours[v]);
    const bool joined = std::get<1>(key) <= bound;
    for (const int other : around) {
      auto& list = neighbours[other];
      if (joined) {
        merged.clear();
        std::ranges::set_union(list, around, std::back_inserter(merged));
        std::erase_if(merged, [&](int w) { return w == other || w == v; });
        list = merged;
      } else {
        list.erase(std::ranges::lower_bound(list, v));
      }
    }
    for (const int other : around) queue.push(keys[other] = key_of(other));
  }
  return order;
}

}  // namespace tessera::detail
