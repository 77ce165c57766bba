// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Solves a cost network (solve/cost_network.hpp): the cheapest assignment that keeps the limits,
/// with a lower bound.
///
///     CostNetwork network;
///     for (int layer = 0; layer < 96; ++layer) {
///       network.add_variable({3, 1});
///       network.add_usage(layer, layer, layer + 2, {1, 4});
///       if (layer > 0) network.add_pair(layer - 1, layer, {0, 5, 5, 2});
///     }
///     network.set_limit(0, 96, 6);
///     const Solution solution = solve(network);   // 288: every layer takes its first value, which costs 3
///     solution.optimal()
///
/// Laws: the bound is at most the cost of any assignment that keeps the limits, and the cost is
/// that of the assignment. The same network has the same answer in every process and with every
/// compiler, unless the clock stops the search. Where the answer is optimal, none of the cheapest
/// assignments differs less from `previous`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/solve/detail/branching.hpp>
#include <tessera/solve/detail/reduced.hpp>
#include <tessera/solve/detail/search.hpp>
#include <tessera/solve/detail/units.hpp>
#include <tessera/solve/solution.hpp>

namespace tessera {

struct SolveOptions {
  /// The entries of the largest table that is made. Where that suffices, what remains without
  /// limits is solved exactly.
  std::size_t table_entries = std::size_t{1} << 20;
  /// How many steps a search may take: changes of multipliers, moves, nodes.
  std::uint64_t steps = 20'000;
  /// Where the search for an exact answer takes long, it stops at a gap of so many thousandths.
  Cost enough = 0;
  /// Stops the search by the clock; 0 does not. The answer then may differ from run to run.
  double seconds = 0;
  /// What the time is, in seconds; nullptr stands for the steady clock.
  double (*clock)() = nullptr;
  /// Which assignment to stay close to, if any.
  Assignment previous = {};
  /// A unit's number for each variable, -1 for one that units share: layers that are alike,
  /// numbered as they follow each other. Empty: what repeats is found. It decides how long the
  /// answer takes, and not what it is.
  std::vector<int> units = {};
};

namespace detail {

/// By how much costs are multiplied, so that multipliers can be finer than costs, and changes from
/// a previous assignment count less than any cost.
inline Cost scale_of(const CostNetwork& network) {
  WideCost total = 1;
  const auto add_largest = [&](std::span<const Cost> costs) {
    Cost largest = 0;
    for (const Cost cost : costs)
      if (is_feasible(cost)) largest = std::max(largest, cost < 0 ? -cost : cost);
    total += largest;
  };
  for (int v = 0; v < network.variables(); ++v) add_largest(network.costs(v));
  for (const auto& pair : network.pairs()) add_largest(network.costs(pair));
  if (total > most_cost)
    throw ShapeError(
        "the largest costs of all variables and pairs sum up to more than 2^60; divide them by a "
        "common factor");
  const WideCost room = (most_cost >> 3) / total;
  return room < 1 ? 1 : static_cast<Cost>(std::min(room, WideCost{1} << 24));
}

/// What one elimination of a search may cost: about a second.
inline constexpr double most_entries = 1e8;

/// Rounds a bound of scaled costs, in which up to `changes` may be counted too, to one of costs.
inline Cost unscaled(Cost bound, Cost scale, Cost changes) {
  if (!is_feasible(bound)) return infeasible;
  const Cost least = bound - changes;
  return least > 0 ? (least + scale - 1) / scale : -(-least / scale);
}

/// Where units repeat, a search for few of them comes before that for all.
inline void begin_folded(const CostNetwork& network, const SolveOptions& options, Search& search) {
  const Folded folded(network);
  if (!folded.is_smaller()) return;
  const Timeline timeline(folded.network());
  const PairsOf pairs(folded.network());
  Stop stop(options.steps, 0);
  Search few(folded.network(), timeline, pairs, move_entries(folded.network()), stop);
  few.run();
  search.begin_as(few, folded);
}

inline void check(const CostNetwork& network, const SolveOptions& options) {
  const auto check_size = [&](std::size_t size, const char* what) {
    if (size != 0 && size != static_cast<std::size_t>(network.variables()))
      throw ShapeError(std::string("SolveOptions::") + what + " has " + std::to_string(size) +
                       " entries and the network " + std::to_string(network.variables()) +
                       " variables; it has one for each, or is empty");
  };
  check_size(options.previous.size(), "previous");
  check_size(options.units.size(), "units");
  for (std::size_t v = 0; v < options.previous.size(); ++v)
    if (options.previous[v] < 0 || options.previous[v] >= network.values(static_cast<int>(v)))
      throw ShapeError("SolveOptions::previous has value " + std::to_string(options.previous[v]) +
                       " for variable " + std::to_string(v) + ", which has " +
                       std::to_string(network.values(static_cast<int>(v))));
}

}  // namespace detail

/// Returns the best assignment that was found, and a bound. Throws ShapeError where options do not
/// fit the network, or costs or usages are too large to be summed.
inline Solution solve(const CostNetwork& network, const SolveOptions& options = {}) {
  detail::check(network, options);
  const Cost scale = detail::scale_of(network);
  const bool prefers = !options.previous.empty() && scale > network.variables();
  const Cost changes = prefers ? network.variables() : 0;
  detail::Stop stop(options.steps, options.seconds, options.clock);
  Solution solution;
  const auto root = std::make_shared<const detail::Reduced>(
      network, detail::SimplifyOptions{.scale = scale,
                                       .preferred = prefers ? options.previous : Assignment{}});
  if (!root->feasible()) {
    solution.bound = infeasible;
    return solution;
  }
  const CostNetwork& reduced = root->network();
  const detail::Timeline timeline(reduced);
  const detail::PairsOf pairs(reduced);
  std::vector<int> units;
  for (int v = 0; v < reduced.variables() && !options.units.empty(); ++v)
    units.push_back(options.units[static_cast<std::size_t>(root->variable(v))]);
  detail::Elimination elimination =
      detail::choose_elimination(reduced, units, options.table_entries, reduced.all_costs());
  const bool exact = elimination.exact() && elimination.entries() < detail::most_entries;
  const int split = elimination.split();
  const bool divides = exact || detail::Narrowing::is_small(reduced);
  detail::Incumbent incumbent;
  std::vector<Cost> multipliers(timeline.points(), 0);
  Cost bound = -infeasible;
  std::uint64_t operations = 0;
  const auto offer = [&](const Assignment& assignment) {
    const detail::Neighbourhood there(reduced, timeline, pairs, assignment);
    if (there.fits()) incumbent.offer(*root, assignment, there.cost());
  };
  const Assignment previous =
      options.previous.empty() ? Assignment{} : root->reduced(options.previous);
  if (exact) {
    if (!options.previous.empty()) offer(previous);
    detail::Relaxation relaxation(reduced, timeline, std::move(elimination));
    const auto found = relaxation.evaluate(reduced.all_costs(), multipliers);
    bound = found.bound;
    if (is_feasible(bound)) offer(found.assignment);
    operations = relaxation.tables().operations();
  } else {
    detail::Search search(reduced, timeline, pairs, detail::move_entries(reduced), stop);
    if (!options.previous.empty()) search.offer(previous);
    if (timeline.points() == 0 && !stop.has_clock()) detail::begin_folded(reduced, options, search);
    if (divides)
      search.run_shortly();
    else
      search.run();
    multipliers = search.multipliers();
    bound = search.bound();
    if (search.found()) incumbent.offer(*root, search.best(), search.best_cost());
  }
  bound = is_feasible(bound) ? bound + root->constant() : infeasible;
  stop.begin_phase(options.steps, 100);
  detail::Branching branching(incumbent, stop, options.table_entries);
  if (bound < incumbent.cost && divides) {
    detail::NetworkPart whole{.reduced = root,
                              .network = std::shared_ptr<const CostNetwork>(root, &reduced),
                              .bound = bound};
    whole.multipliers.assign(reduced.limits().size(), 0);
    for (int p = 0; p < timeline.points(); ++p)
      whole.multipliers[static_cast<std::size_t>(timeline.time(p))] =
          multipliers[static_cast<std::size_t>(p)];
    bound = std::max(bound, branching.search(std::move(whole), options.enough));
  }
  bound = std::min(bound, incumbent.cost);
  solution.bound = detail::unscaled(bound, scale, changes);
  if (is_feasible(incumbent.cost)) {
    solution.assignment = std::move(incumbent.assignment);
    solution.cost = cost_of(network, solution.assignment);
  }
  solution.statistics = {.variables = reduced.variables(),
                         .pairs = reduced.pairs().size(),
                         .points = timeline.points(),
                         .split = split,
                         .steps = stop.taken(),
                         .nodes = branching.nodes(),
                         .operations = operations + branching.operations(),
                         .seconds = stop.elapsed(),
                         .stopped_by_clock = stop.by_clock()};
  return solution;
}

}  // namespace tessera
