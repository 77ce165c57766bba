// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What repeats in a network: units, such as the layers of a model, of which each is joined to the
/// next. They decide nothing but an order: first the inside of each unit, then what joins units,
/// every second one, and every second one of those. As equal tables are joined once
/// (detail/tables.hpp), k equal units then cost one unit and log k products of its table with
/// itself in the (min,+) sense; a wrong guess costs time alone.
///
///     const std::vector<int> units = detail::find_units(network, colours_of(network));   // a unit's number for each variable, or -1
///     const std::vector<int> rank = detail::unit_ranks(network, units);
///     const auto order = detail::elimination_order(network, rank, bound);
///
/// Laws: a variable without a unit, such as one that all units share, is eliminated after all that
/// have one.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/elimination.hpp>
#include <tessera/solve/detail/order.hpp>

namespace tessera::detail {

/// Colours of variables that tell costs and the surroundings up to two pairs away apart (Weisfeiler
/// and Leman, 1968).
inline std::vector<std::uint64_t> colours_of(const CostNetwork& network) {
  const auto mixed = [](std::uint64_t seed, std::span<const Cost> costs) {
    for (const Cost cost : costs) seed = stirred(seed, static_cast<std::uint64_t>(cost));
    return seed;
  };
  std::vector<std::uint64_t> colours(static_cast<std::size_t>(network.variables())), pairs;
  for (int v = 0; v < network.variables(); ++v)
    colours[v] = mixed(network.costs(v).size(), network.costs(v));
  for (const auto& usage : network.usages())
    colours[usage.variable] = stirred(colours[usage.variable], mixed(1, network.amounts(usage)));
  for (const auto& pair : network.pairs()) pairs.push_back(mixed(2, network.costs(pair)));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::uint64_t> next = colours;
    for (std::size_t p = 0; p < pairs.size(); ++p) {  // sums do not depend on the order of pairs
      const auto& pair = network.pairs()[p];
      next[pair.a] += stirred(pairs[p], colours[pair.b]);
      next[pair.b] += stirred(~pairs[p], colours[pair.a]);
    }
    for (auto& colour : next) colour = stirred(3, colour);
    colours = std::move(next);
  }
  return colours;
}

/// Finds repeated units. Among the colours that three variables or more have, the number that most
/// variables are counted by is the number of units; one variable of such a colour stands for each
/// unit, and every variable belongs to the nearest. What is joined to as many variables as there
/// are units, and is not repeated itself, belongs to none. Time: O(pairs · log).
inline std::vector<int> find_units(const CostNetwork& network,
                                   const std::vector<std::uint64_t>& colours) {
  std::vector<int> units(static_cast<std::size_t>(network.variables()), -1);
  std::map<std::uint64_t, std::pair<int, int>> classes;  // of a colour: how many, and the first
  for (int v = 0; v < network.variables(); ++v)
    ++classes.try_emplace(colours[v], 0, v).first->second.first;
  std::map<int, int> counted;
  for (const auto& [colour, entry] : classes)
    if (entry.first >= 3) counted[entry.first] += entry.first;
  int count = 0, most = 0, anchor = network.variables();
  for (const auto& [size, variables] : counted)
    if (variables > most) count = size, most = variables;
  if (count == 0) return units;
  for (const auto& [colour, entry] : classes)
    if (entry.first == count) anchor = std::min(anchor, entry.second);
  const auto neighbours = neighbours_of(network);
  std::vector<int> reached;
  for (int v = 0; v < network.variables(); ++v)
    if (colours[v] == colours[anchor]) {
      units[v] = static_cast<int>(reached.size());
      reached.push_back(v);
    }
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const int other : neighbours[reached[i]]) {
      const bool shared = static_cast<int>(neighbours[other].size()) >= std::max(count, 4) &&
                          classes.at(colours[other]).first < 3;
      if (units[other] >= 0 || shared) continue;
      units[other] = units[reached[i]];
      reached.push_back(other);
    }
  return units;
}

/// For `elimination_order`: 0 inside of a unit; for what joins unit u to later ones 1 plus the twos
/// in u + 1.
inline std::vector<int> unit_ranks(const CostNetwork& network, const std::vector<int>& units) {
  std::vector<int> rank(units.size(), 0);
  for (std::size_t v = 0; v < units.size(); ++v)
    if (units[v] < 0) rank[v] = 64;
  for (const auto& pair : network.pairs()) {
    const int a = units[pair.a], b = units[pair.b];
    if (a < 0 || b < 0 || a == b) continue;
    rank[a < b ? pair.a : pair.b] =
        1 + std::countr_zero(static_cast<unsigned>(std::min(a, b)) + 1u);
  }
  return rank;
}

/// Chooses how to eliminate: by buckets as they come, of units one after the other, or of units as
/// powers; the cheapest way of those that split nothing, or buckets as they come. Without `units`
/// these are found.
inline Elimination choose_elimination(const CostNetwork& network, std::vector<int> units,
                                      std::size_t bound, std::span<const Cost> costs) {
  const auto of_rank = [&](const std::vector<int>& rank, std::vector<char> late) {
    return Elimination(network, elimination_order(network, rank, bound), bound, std::move(late));
  };
  if (units.empty()) units = find_units(network, colours_of(network));
  Elimination plain = of_rank({}, {});
  if (std::ranges::all_of(units, [](int unit) { return unit < 0; })) return plain;
  std::vector<char> late;
  for (const int unit : units) late.push_back(unit < 0);
  Elimination chain = of_rank({late.begin(), late.end()}, late);
  if (!chain.exact()) {
    if (!plain.exact()) return plain;
    std::swap(chain, plain);
  }
  Elimination powers = of_rank(unit_ranks(network, units), late);
  if (!powers.exact()) return chain;
  Tables tables;
  const double distinct = powers.distinct_entries(tables, costs);
  // The chain's messages may soon repeat, which only shows as they are made.
  if (distinct < chain.entries() &&
      chain.forward(tables, costs, static_cast<std::uint64_t>(distinct)) == -infeasible)
    std::swap(chain, powers);
  chain.forget_tables();
  return chain;
}

}  // namespace tessera::detail
