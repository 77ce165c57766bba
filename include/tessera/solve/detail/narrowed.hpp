// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A part of a network, by which values are allowed: its bound, and what is left of it once the
/// values are gone that no better assignment has than the best one that is known. What is left is
/// made smaller and bounded again, as long as values go: soon it is small enough to be eliminated
/// exactly.
///
///     NetworkPart part{.reduced = root, .network = …, .allowed = …};
///     if (Narrowing(incumbent, stop, entries).narrow(part)) { … an assignment that is better may be left … }
///
/// The bound is that of an exact elimination with limits as prices (detail/relaxation.hpp), or of
/// moved costs (detail/search.hpp) where tables would be too large. Values go by what all
/// assignments with them cost at the least (reduced cost fixing; Dantzig, Fulkerson and Johnson,
/// 1954).
///
/// Laws: the best assignment of a part is in what is left of it, or costs no less than the
/// incumbent's target.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/neighbourhood.hpp>
#include <tessera/solve/detail/reduced.hpp>
#include <tessera/solve/detail/relaxation.hpp>
#include <tessera/solve/detail/search.hpp>
#include <tessera/solve/detail/stop.hpp>

namespace tessera::detail {

/// The best assignment that is known of a network, and what it costs there, by the scale.
struct Incumbent {
  Cost cost = infeasible;
  Assignment assignment = {};
  Cost enough = 0;  ///< by how many thousandths others have to cost less, to be looked for

  /// What others have to cost less than. It never rises.
  Cost target() const {
    return is_feasible(cost) ? cost - (cost < 0 ? -cost : cost) / 1000 * enough : cost;
  }

  /// Keeps an assignment of a reduced network that keeps the limits, if it costs less.
  void offer(const Reduced& of, const Assignment& found, Cost found_cost) {
    if (!is_feasible(found_cost) || found_cost + of.constant() >= cost) return;
    cost = found_cost + of.constant();
    assignment = of.recovered(found);
  }
};

struct NetworkPart {
  std::shared_ptr<const Reduced> reduced;
  std::shared_ptr<const CostNetwork> network = {};  ///< the reduced one, or with its costs moved
  std::vector<char> allowed = {};                   ///< of all of its values
  std::vector<Cost> multipliers = {};               ///< one for each time
  Cost bound = -infeasible;
  /// For every value a lower bound of the assignments that have it, and what is paid for what the
  /// value uses; both once the part is narrowed.
  std::vector<Cost> least = {}, paid = {};
};

class Narrowing {
 public:
  /// `entries`: of the largest table that may be made.
  Narrowing(Incumbent& incumbent, Stop& stop, std::size_t entries)
      : incumbent_(&incumbent),
        stop_(&stop),
        most_exact_(std::min(entries, std::size_t{1} << 20)),
        most_moved_(std::min(entries, std::size_t{1} << 15)) {}

  /// Returns the entries of all pairs of a network.
  static std::uint64_t entries(const CostNetwork& network) {
    std::uint64_t entries = 0;
    for (const auto& pair : network.pairs()) entries += network.costs(pair).size();
    return entries;
  }
  /// Whether a network is not too large to be made anew many times.
  static bool is_small(const CostNetwork& network) {
    return entries(network) <= std::uint64_t{1} << 22;
  }
  std::uint64_t operations() const { return operations_; }

  /// Returns whether what is left of a part may have an assignment that costs less than the
  /// incumbent.
  bool narrow(NetworkPart& part) {
    for (int round = 0;; ++round) {
      if (!reduce(part)) return false;
      if (part.bound >= incumbent_->target()) return false;
      const std::size_t all = part.least.size();
      std::size_t left = 0;
      part.allowed.assign(all, 0);
      for (std::size_t i = 0; i < all; ++i) {
        part.allowed[i] =
            is_feasible(part.least[i]) && part.least[i] + constant(part) < incumbent_->target();
        left += static_cast<std::size_t>(part.allowed[i]);
      }
      if (left == 0) return false;
      if (20 * left > 19 * all || round == 10 || stop_->over()) return true;
    }
  }
  static Cost constant(const NetworkPart& part) { return part.reduced->constant(); }

 private:
  /// The entries of all tables of an elimination that is made many times.
  static constexpr double most_all_entries = 1.2e7;
  static constexpr std::uint64_t passes = 60;

  /// Makes a part smaller and bounds it; returns false where nothing is left.
  bool reduce(NetworkPart& part) {
    part.reduced = std::make_shared<const Reduced>(part.reduced, *part.network, part.allowed);
    if (!part.reduced->feasible()) return false;
    const CostNetwork& network = part.reduced->network();
    const Timeline timeline(network);
    const PairsOf pairs(network);
    std::vector<Cost> multipliers;
    for (int p = 0; p < timeline.points(); ++p) {
      const std::size_t time = static_cast<std::size_t>(timeline.time(p));
      multipliers.push_back(time < part.multipliers.size() ? part.multipliers[time] : 0);
    }
    timeline.keep_small(multipliers);
    Elimination elimination(network, elimination_order(network, {}, most_exact_), most_exact_);
    const bool exact = elimination.exact() && elimination.entries() < most_all_entries;
    if (exact) {
      Relaxation relaxation(network, timeline, std::move(elimination));
      bound_exactly(part, timeline, pairs, relaxation, multipliers);
      part.network = std::shared_ptr<const CostNetwork>(part.reduced, &network);
    } else {
      bound_by_moving(part, timeline, pairs, multipliers);
    }
    part.paid.assign(network.all_values(), 0);
    timeline.add_penalties(multipliers, network.firsts(), part.paid);
    part.multipliers.assign(network.limits().size(), 0);
    for (int p = 0; p < timeline.points(); ++p)
      part.multipliers[static_cast<std::size_t>(timeline.time(p))] =
          multipliers[static_cast<std::size_t>(p)];
    return true;
  }
  /// Offers an assignment, once single changes make it better, if it keeps the limits.
  void offer(const NetworkPart& part, const Timeline& timeline, const PairsOf& pairs,
             const Assignment& assignment) {
    Neighbourhood here(part.reduced->network(), timeline, pairs, assignment);
    if (!is_feasible(here.cost()) || !here.fits()) return;
    here.descend();
    incumbent_->offer(*part.reduced, here.assignment(), here.cost());
  }
  void raise(NetworkPart& part, Cost bound) const {
    part.bound = std::max(part.bound, is_feasible(bound) ? bound + constant(part) : infeasible);
  }
  /// Subgradient steps, by halves where they lead nowhere; from the best multipliers each value's
  /// bound.
  void bound_exactly(NetworkPart& part, const Timeline& timeline, const PairsOf& pairs,
                     Relaxation& relaxation, std::vector<Cost>& multipliers) {
    const auto costs = part.reduced->network().all_costs();
    std::vector<Cost> best = multipliers, direction;
    Cost highest = -infeasible, share = 1;
    for (int without = 0;;) {
      auto found = relaxation.evaluate(costs, multipliers);
      raise(part, found.bound);
      if (!is_feasible(found.bound) || part.bound >= incumbent_->target()) break;
      offer(part, timeline, pairs, found.assignment);
      const Cost missing = is_feasible(incumbent_->cost)
                               ? incumbent_->cost - constant(part) - found.bound
                               : std::abs(found.bound) / 8;
      without = found.bound > highest + missing / 50 ? 0 : without + 1;
      if (found.bound > highest) {
        highest = found.bound;
        best = multipliers;
      }
      if (stop_->step() || timeline.points() == 0) break;
      if (without >= 4) {
        share *= 2;
        if (share > 64) break;
        without = 0;
        direction.clear();
        multipliers = best;
        found = relaxation.evaluate(costs, multipliers);
      }
      step_multipliers(timeline, timeline.used(found.assignment),
                       std::max<Cost>(missing / share, 1), direction, multipliers);
    }
    multipliers = std::move(best);
    if (part.bound < incumbent_->target()) {
      offer_dearer(part, timeline, pairs, relaxation, multipliers);
      relaxation.evaluate(costs, multipliers);
      part.least = relaxation.marginals();
    }
    operations_ += relaxation.tables().operations();
  }
  /// Offers what is cheapest at prices that rise until the limits are kept.
  void offer_dearer(const NetworkPart& part, const Timeline& timeline, const PairsOf& pairs,
                    Relaxation& relaxation, const std::vector<Cost>& multipliers) {
    for (const int eighths : {9, 10, 12, 16, 24}) {
      std::vector<Cost> dearer = multipliers;
      for (Cost& multiplier : dearer) multiplier = multiplier / 8 * eighths;
      timeline.keep_small(dearer);
      const auto found = relaxation.evaluate(part.reduced->network().all_costs(), dearer);
      if (stop_->step() || !is_feasible(found.bound)) return;
      offer(part, timeline, pairs, found.assignment);
      if (timeline.fits(timeline.used(found.assignment))) return;
    }
  }
  /// Bounds by moved costs, which the part keeps.
  void bound_by_moving(NetworkPart& part, const Timeline& timeline, const PairsOf& pairs,
                       std::vector<Cost>& multipliers) {
    const CostNetwork& network = part.reduced->network();
    Stop some = stop_->part(passes);
    Search search(network, timeline, pairs, move_entries(network), some);
    search.begin_at(multipliers);
    search.raise_bound();
    stop_->take(some.taken());
    part.least = search.tighten(most_moved_, true);
    raise(part, search.bound());
    if (search.found()) offer(part, timeline, pairs, search.best());
    offer(part, timeline, pairs, search.here());
    multipliers = search.multipliers();
    part.network = std::make_shared<const CostNetwork>(search.moved());
  }

  Incumbent* incumbent_;
  Stop* stop_;
  std::size_t most_exact_, most_moved_;  ///< entries of a table
  std::uint64_t operations_ = 0;
};

}  // namespace tessera::detail
