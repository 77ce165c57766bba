// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Branch and bound: of the parts of a network that may have a better assignment, the one of least
/// bound is narrowed (detail/narrowed.hpp) and divided in two, as long as there is one (Land and
/// Doig, 1960). Where limits are exceeded, the prices of the bound mix values that use little with
/// such that use much; so the values of a variable are divided by what they pay for their usage, of
/// that variable whose values pay most differently and yet are as cheap.
///
///     detail::Branching branching(incumbent, stop, entries);
///     const Cost bound = branching.search({.reduced = root, …}, 0);
///     incumbent.assignment;
///
/// Laws: `search` returns a lower bound of all assignments of the part; where the search was not
/// stopped, it is the incumbent's target.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/narrowed.hpp>
#include <tessera/solve/detail/stop.hpp>

namespace tessera::detail {

class Branching {
 public:
  /// `entries`: of the largest table that may be made.
  Branching(Incumbent& incumbent, Stop& stop, std::size_t entries)
      : incumbent_(&incumbent), stop_(&stop), narrowing_(incumbent, stop, entries) {}

  std::uint64_t nodes() const { return nodes_; }
  std::uint64_t operations() const { return narrowing_.operations(); }

  /// Once its steps have read many entries of the network, it looks no further for what is cheaper
  /// by fewer than `enough` thousandths.
  Cost search(NetworkPart whole, Cost enough) {
    const std::uint64_t late = most_read / (1 + Narrowing::entries(*whole.network));
    add(std::move(whole));
    while (!open_.empty() && open_.front().part.bound < incumbent_->target()) {
      if (stop_->over()) return open_.front().part.bound;
      if (stop_->taken() >= late) incumbent_->enough = enough;
      std::ranges::pop_heap(open_, is_later);
      NetworkPart part = std::move(open_.back().part);
      open_.pop_back();
      ++nodes_;
      if (narrowing_.narrow(part)) divide(std::move(part));
    }
    return incumbent_->target();
  }

 private:
  static constexpr std::uint64_t most_read = std::uint64_t{1} << 28;

  struct Node {
    NetworkPart part;
    std::uint64_t number;
  };
  /// Among equal bounds, the part that was made last comes first.
  static bool is_later(const Node& a, const Node& b) {
    return a.part.bound != b.part.bound ? a.part.bound > b.part.bound : a.number < b.number;
  }
  void add(NetworkPart part) {
    open_.push_back({std::move(part), made_++});
    std::ranges::push_heap(open_, is_later);
  }
  /// A variable, and which of its values are in the first of two parts.
  struct Division {
    int variable = -1;
    std::vector<char> first = {};
  };
  static Division by_usage(const NetworkPart& part);
  static Division by_cost(const NetworkPart& part);
  void divide(NetworkPart part);

  Incumbent* incumbent_;
  Stop* stop_;
  Narrowing narrowing_;
  std::vector<Node> open_;
  std::uint64_t nodes_ = 0, made_ = 0;
};

/// Divides at the pair of a variable's values whose payments differ most, beyond twice by how much
/// both are dearer than the bound.
inline Branching::Division Branching::by_usage(const NetworkPart& part) {
  const CostNetwork& network = *part.network;
  Division found;
  Cost most = -infeasible, limit = 0;
  std::vector<std::pair<Cost, Cost>> values;  // what a value pays, and how much dearer it is
  for (int v = 0; v < network.variables(); ++v) {
    values.clear();
    for (std::size_t i = network.first(v); i < network.first(v) + network.costs(v).size(); ++i)
      if (part.allowed[i])
        values.push_back({part.paid[i], part.least[i] + Narrowing::constant(part) - part.bound});
    for (const auto& [low, low_dearer] : values)
      for (const auto& [high, high_dearer] : values) {
        if (low >= high || high - low - 2 * (low_dearer + high_dearer) <= most) continue;
        most = high - low - 2 * (low_dearer + high_dearer);
        limit = low + (high - low) / 2;
        found.variable = v;
      }
  }
  if (found.variable < 0) return found;
  for (std::size_t i = 0; i < network.costs(found.variable).size(); ++i)
    found.first.push_back(part.paid[network.first(found.variable) + i] <= limit);
  return found;
}

/// The cheapest value of the variable whose values differ most.
inline Branching::Division Branching::by_cost(const NetworkPart& part) {
  const CostNetwork& network = *part.network;
  Division found;
  Cost most = -1;
  std::size_t cheapest = 0;
  for (int v = 0; v < network.variables(); ++v) {
    std::size_t left = 0, low = 0;
    Cost highest = -infeasible;
    for (std::size_t i = network.first(v); i < network.first(v) + network.costs(v).size(); ++i) {
      if (!part.allowed[i]) continue;
      if (left++ == 0 || part.least[i] < part.least[low]) low = i;
      highest = std::max(highest, part.least[i]);
    }
    if (left < 2 || highest - part.least[low] <= most) continue;
    most = highest - part.least[low];
    found.variable = v;
    cheapest = low - network.first(v);
  }
  if (found.variable < 0) return found;
  found.first.assign(network.costs(found.variable).size(), 0);
  found.first[cheapest] = 1;
  return found;
}

inline void Branching::divide(NetworkPart part) {
  Division division = by_usage(part);
  if (division.variable < 0) division = by_cost(part);
  if (division.variable < 0)
    return add(std::move(part));  // a single assignment: it is reduced to it
  const std::size_t first = part.network->first(division.variable);
  for (const char side : {char{1}, char{0}}) {
    NetworkPart half = part;
    Cost least = infeasible;
    for (std::size_t i = 0; i < division.first.size(); ++i)
      if (division.first[i] != side)
        half.allowed[first + i] = 0;
      else if (half.allowed[first + i])
        least = std::min(least, part.least[first + i]);
    half.bound = std::max(half.bound, least + Narrowing::constant(part));
    half.least.clear();
    half.paid.clear();
    if (is_feasible(least) && half.bound < incumbent_->target()) add(std::move(half));
  }
}

}  // namespace tessera::detail
