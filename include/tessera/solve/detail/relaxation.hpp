// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Limits as prices: each point of the timeline has a multiplier, a value pays for what it uses,
/// and the least of costs and payments, minus the charge for what the limits allow, is a lower
/// bound. `ascend` looks for the multipliers of the best one by subgradients (Polyak's step; a
/// direction that remembers the last one).
///
///     detail::Relaxation relaxation(network, timeline, elimination);
///     auto found = relaxation.evaluate(costs, multipliers);   // a bound, and an assignment that has it
///     relaxation.step(multipliers, found, aim);
///
/// Laws: a bound is at most the cost of each assignment that keeps the limits, whatever the
/// multipliers are.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/elimination.hpp>
#include <tessera/solve/detail/timeline.hpp>

namespace tessera::detail {

/// Moves multipliers by a share of the way to where a bound of `aim` would be expected; `direction`
/// is kept between steps.
inline void step_multipliers(const Timeline& timeline, std::span<const Cost> used, Cost missing,
                             std::vector<Cost>& direction, std::vector<Cost>& multipliers) {
  Cost longest = 0;
  direction.resize(multipliers.size(), 0);
  for (std::size_t p = 0; p < multipliers.size(); ++p) {
    Cost excess = used[p] - timeline.limits()[p];
    if (excess < 0 && multipliers[p] == 0) excess = 0;
    direction[p] = (2 * direction[p] + 3 * excess) / 4;
    longest = std::max(longest, std::abs(direction[p]));
  }
  // Of very large usages only the upper bits count, so that products of three numbers have room.
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(longest)));
  const int shift = std::max(0, bits - 44);
  WideCost norm = 0;
  for (const Cost change : direction)
    norm += static_cast<WideCost>(change >> shift) * (change >> shift);
  if (norm == 0) return;
  for (std::size_t p = 0; p < multipliers.size(); ++p) {
    const WideCost along = static_cast<WideCost>(missing) * (direction[p] >> shift);
    const WideCost change = along * (WideCost{1} << Timeline::fraction) / norm >> shift;
    const WideCost moved = multipliers[p] + change;
    multipliers[p] = moved < 0 ? 0 : static_cast<Cost>(std::min(moved, WideCost{1} << 58));
  }
  timeline.keep_small(multipliers);
}

class Relaxation {
 public:
  struct Found {
    Cost bound = 0;
    Assignment assignment;
  };

  Relaxation(const CostNetwork& network, const Timeline& timeline, Elimination elimination)
      : network_(&network), timeline_(&timeline), elimination_(std::move(elimination)) {}

  const Elimination& elimination() const { return elimination_; }
  const Tables& tables() const { return tables_; }

  /// `costs` are those of all values; a value that is not to be taken is infeasible.
  Found evaluate(std::span<const Cost> costs, std::span<const Cost> multipliers) {
    priced_.assign(costs.begin(), costs.end());
    timeline_->add_penalties(multipliers, network_->firsts(), priced_);
    if (tables_.entries() > most_entries) tables_.clear();
    Found found;
    found.bound = elimination_.forward(tables_, priced_);
    if (!is_feasible(found.bound)) return found;
    charge_ = timeline_->charge(multipliers);
    found.bound -= charge_;
    found.assignment = elimination_.decode(tables_, {});
    return found;
  }
  /// After `evaluate`: for each value a lower bound of the assignments that have it.
  std::vector<Cost> marginals() {
    std::vector<Cost> marginals = elimination_.backward(tables_);
    for (Cost& cost : marginals)
      if (is_feasible(cost)) cost -= charge_;
    return marginals;
  }

 private:
  static constexpr std::size_t most_entries = std::size_t{1} << 24;
  const CostNetwork* network_;
  const Timeline* timeline_;
  Elimination elimination_;
  Tables tables_;
  std::vector<Cost> priced_;
  Cost charge_ = 0;
};

}  // namespace tessera::detail
