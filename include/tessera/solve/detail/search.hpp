// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is found where a network is too large to be solved exactly: multipliers and a lower bound,
/// then assignments. The bound is that of moved costs (detail/reparametrized.hpp) with limits as
/// prices; assignments begin with what it decodes to, change by large moves at those prices, and,
/// once they keep the limits, by moves that keep them.
///
///     detail::Search search(network, timeline, pairs, stop);
///     search.run();
///     search.bound(), search.best();
///
/// Laws: `bound()` is a lower bound of all assignments that keep the limits; `best()` keeps them,
/// and `improve` never makes it dearer.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/folded.hpp>
#include <tessera/solve/detail/large_moves.hpp>
#include <tessera/solve/detail/neighbourhood.hpp>
#include <tessera/solve/detail/relaxation.hpp>
#include <tessera/solve/detail/reparametrized.hpp>
#include <tessera/solve/detail/stop.hpp>
#include <tessera/solve/detail/timeline.hpp>

namespace tessera::detail {

class Search {
 public:
  Search(const CostNetwork& network, const Timeline& timeline, const PairsOf& pairs,
         std::size_t entries, Stop& stop)
      : network_(&network),
        timeline_(&timeline),
        stop_(&stop),
        moves_(network, pairs, entries),
        moved_(network, pairs),
        here_(network, timeline, pairs, Assignment(network.variables(), 0)),
        multipliers_(timeline.points(), 0),
        penalties_(network.all_values(), 0) {
    for (int v = 0; v < network.variables(); ++v) all_.push_back(v);
  }

  Cost bound() const { return bound_; }
  const std::vector<Cost>& multipliers() const { return multipliers_; }
  bool found() const { return is_feasible(best_cost_); }
  Cost best_cost() const { return best_cost_; }
  const Assignment& best() const { return best_; }

  void offer(const Assignment& assignment) {
    const Cost cost = cost_of(*network_, assignment);
    if (!is_feasible(cost) || cost >= best_cost_ || !timeline_->fits(timeline_->used(assignment)))
      return;
    best_ = assignment;
    best_cost_ = cost;
  }

  /// Begins with what the search for a smaller network has found.
  void begin_as(const Search& smaller, const Folded& folded) {
    moved_.begin_as(smaller.moved_, folded.pairs());
    if (smaller.found()) offer(folded.recovered(smaller.best()));
  }
  /// Begins at these multipliers.
  void begin_at(const std::vector<Cost>& multipliers) {
    multipliers_ = multipliers;
    price(multipliers);
  }
  /// What the last bound was decoded to, whether or not it keeps the limits.
  const Assignment& here() const { return here_.assignment(); }
  /// The network with its costs as they were moved.
  CostNetwork moved();

  /// All of the following, each a phase of the search.
  void run();
  /// Those of them after which a network is divided.
  void run_shortly();
  void pass();
  void raise_bound();
  std::vector<Cost> tighten(std::size_t entries, bool of_values = false);
  void find(bool rising);
  void improve(int patience);

 private:
  void price(const std::vector<Cost>& multipliers);
  std::vector<Cost> priced(std::span<const Cost> multipliers) const {
    std::vector<Cost> costs(network_->all_costs().begin(), network_->all_costs().end());
    timeline_->add_penalties(multipliers, network_->firsts(), costs);
    return costs;
  }

  const CostNetwork* network_;
  const Timeline* timeline_;
  Stop* stop_;
  LargeMoves moves_;
  Reparametrized moved_;
  Neighbourhood here_;
  Numbers numbers_;
  std::vector<int> all_;
  std::vector<Cost> multipliers_, penalties_;
  int closer_ = 2;  // bits by which the aim of a step lies closer to the bound than twice the bound
  Cost bound_ = -infeasible, best_cost_ = infeasible;
  Assignment best_;
};

/// Changes the multipliers that the moved costs are priced by.
inline void Search::price(const std::vector<Cost>& multipliers) {
  std::vector<Cost> penalties(network_->all_values(), 0);
  timeline_->add_penalties(multipliers, network_->firsts(), penalties);
  std::vector<Cost>& costs = moved_.costs();
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (is_feasible(costs[i])) costs[i] += penalties[i] - penalties_[i];
  penalties_ = std::move(penalties);
}

/// Without limits a few passes may do.
inline void Search::pass() {
  const auto open = [&] { return bound_ < best_cost_; };
  if (timeline_->points() == 0)
    for (int passes = 12; open() && passes <= 48; passes *= 2) {
      stop_->begin_phase(static_cast<std::uint64_t>(passes), 25);
      raise_bound();
      tighten(std::size_t{1} << 12);
    }
  stop_->begin_phase(200, 25);
  if (open()) {
    raise_bound();
    tighten(std::size_t{1} << 10);
  }
}

inline void Search::run() {
  const auto open = [&] { return bound_ < best_cost_; };
  pass();
  stop_->begin_phase(60, 50);
  if (open()) find(false);
  stop_->begin_phase(2000, 75);
  if (!found()) find(true);
  if (open()) improve(400);
  stop_->begin_phase(200, 90);
  if (open()) raise_bound();
  if (open()) tighten(std::size_t{1} << 12);
  stop_->begin_phase(400, 95);
  if (open()) improve(100);
}

inline void Search::run_shortly() {
  if (timeline_->points() == 0) return pass();
  stop_->begin_phase(200, 15);
  raise_bound();
  tighten(std::size_t{1} << 12);
  stop_->begin_phase(60, 25);
  if (bound_ < best_cost_) find(false);
  stop_->begin_phase(2000, 40);
  if (!found()) find(true);
}

/// Subgradient steps, of which each follows a pass over all costs.
inline void Search::raise_bound() {
  std::vector<Cost> multipliers = multipliers_, direction;
  int without = 0;
  for (int round = 0; bound_ < best_cost_ && !stop_->step(); ++round) {
    moved_.pass();
    const Cost bound = moved_.bound() - timeline_->charge(multipliers);
    const Cost aimed = std::max<Cost>(std::abs(bound) >> closer_, 1);
    without = bound > bound_ + aimed / 8 ? 0 : without + 1;
    if (bound > bound_) {
      bound_ = bound;
      multipliers_ = multipliers;
    }
    if (round < 6 || timeline_->points() == 0) continue;
    const Assignment decoded = moved_.decode();
    offer(decoded);
    if (without >= 6) {  // shorter steps, from the best multipliers
      without = 0;
      closer_ = std::min(closer_ + 1, 12);
      multipliers = multipliers_;
      direction.clear();
    } else {
      const Cost aim = std::min(std::max(bound, bound_) + aimed, best_cost_);
      step_multipliers(*timeline_, timeline_->used(decoded), std::max<Cost>(aim - bound, 1),
                       direction, multipliers);
    }
    price(multipliers);
  }
  price(multipliers_);
}

/// A bound of buckets of moved costs, which is often better than that of pairs; and what it decodes
/// to. Returns a bound for each value, if that is wanted.
inline std::vector<Cost> Search::tighten(std::size_t entries, bool of_values) {
  moved_.pass();
  const CostNetwork moved = moved_.network();
  Elimination elimination(moved, elimination_order(moved, {}, entries), entries);
  Tables tables;
  const Cost least = elimination.forward(tables, moved.all_costs());
  const Cost charge = timeline_->charge(multipliers_);
  bound_ = std::max(bound_, is_feasible(least) ? least - charge : infeasible);
  if (!is_feasible(least)) return std::vector<Cost>(of_values ? penalties_.size() : 0, infeasible);
  here_.reset(elimination.decode(tables, {}));
  offer(here_.assignment());
  if (!of_values) return {};
  std::vector<Cost> marginals = elimination.backward(tables);
  for (Cost& cost : marginals)
    if (is_feasible(cost)) cost -= charge;
  return marginals;
}

inline CostNetwork Search::moved() {
  price(std::vector<Cost>(multipliers_.size(), 0));
  CostNetwork moved = moved_.network();
  price(multipliers_);
  for (const auto& usage : network_->usages())
    moved.add_usage(usage.variable, usage.begin, usage.end, network_->amounts(usage));
  for (int time = 0; time < static_cast<int>(network_->limits().size()); ++time)
    moved.set_limit(time, time + 1, network_->limits()[static_cast<std::size_t>(time)]);
  return moved;
}

/// Moves at prices that rise where limits are exceeded, until they are kept, and fall where they
/// are kept with room to spare; or, if they are `rising`, not before all limits are kept.
inline void Search::find(bool rising) {
  std::vector<Cost> multipliers = multipliers_, direction;
  Cost unfit = 0;  // rounds in a row, after which steps become longer
  while (!stop_->step()) {
    here_.reset(moves_.improved(here_.assignment(), all_, priced(multipliers), numbers_));
    const bool fits = here_.fits();
    unfit = fits ? 0 : unfit + 1;
    if (fits) {
      Neighbourhood there = here_;
      there.descend();
      offer(there.assignment());
    }
    std::vector<Cost> used(here_.used().begin(), here_.used().end());
    if (rising && !fits)
      for (std::size_t p = 0; p < used.size(); ++p)
        used[p] = std::max(used[p], timeline_->limits()[p]);
    const Cost hundredth = std::clamp<Cost>(std::abs(here_.cost()) / 100, 1, most_cost >> 12);
    step_multipliers(*timeline_, used, fits ? hundredth : hundredth * (6 + unfit), direction,
                     multipliers);
  }
}

/// Moves around random variables, at prices of a random height, that keep the limits and cost less;
/// until `patience` moves in a row have found nothing.
inline void Search::improve(int patience) {
  if (!found()) return;
  std::vector<std::vector<Cost>> costs;
  for (const int sixteenths : {4, 8, 16, 16, 32, 64}) {
    std::vector<Cost> multipliers = multipliers_;
    for (Cost& multiplier : multipliers) multiplier = multiplier / 16 * sixteenths;
    costs.push_back(priced(multipliers));
  }
  for (int without = 0; without < patience && !stop_->step(); ++without) {
    const int size = std::min(network_->variables(), 30 << numbers_.below(5));
    const std::vector<int> around =
        moves_.around(numbers_.below(network_->variables()), size, numbers_);
    const auto& prices =
        costs[static_cast<std::size_t>(numbers_.below(static_cast<int>(costs.size())))];
    const Cost before = best_cost_;
    offer(moves_.improved(best_, around, prices, numbers_));
    if (best_cost_ < before) without = 0;
  }
  here_.reset(best_);
  if (here_.descend()) offer(here_.assignment());
}

}  // namespace tessera::detail
