// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The choice between several plans of one operator.
///
///     detail::BestWay<Sharding> best(options);
///     best.add(plan, sharding);              // for each way, the plan of process 0
///     best.way();                            // the way of the best
///     return detail::best_plan(ways, process, options, make);   // where all ways are at hand
///
/// Laws: the plans of process 0 decide, so all processes decide alike; of plans that are worth the
/// same, the first is kept.
#include <tessera/plan/plan_options.hpp>
#include <tessera/plan/region/region_price.hpp>

namespace tessera::detail {

/// The best of several ways to plan something, by the plans of process 0, so that all decide alike:
/// first by keeping the contract, then by keeping the workspace limit, then by cost.
template <class Way> class BestWay {
 public:
  constexpr explicit BestWay(const PlanOptions& options) : options_(options) {}
  /// `most`: a plan that moves more bytes than this comes after one that does not.
  constexpr void add(const Plan& plan, const Way& way, Index most = max_int64) {
    if (done()) return;
    const int worth = 4 * options_.contract.covers(plan.needs) +
                      2 * (plan.peak_bytes <= options_.workspace_limit) +
                      (most == max_int64 || bytes_moved(plan) <= most);
    if (worth < worth_ || (worth == worth_ && plan.cost >= plan_.cost)) return;
    plan_ = plan;
    way_ = way;
    worth_ = worth;
  }
  /// Returns whether no other plan needs to be tried.
  constexpr bool done() const {
    return options_.needs_alone && options_.contract.bounded() && worth_ >= 0 &&
           options_.contract.covers(plan_.needs);
  }
  /// Returns whether the best plan so far keeps the contract.
  constexpr bool keeps() const { return worth_ >= 4; }
  constexpr const Plan& plan() const { return plan_; }
  constexpr const Way& way() const { return way_; }

 private:
  const PlanOptions& options_;
  Plan plan_;
  Way way_{};
  int worth_ = -1;
};

/// Returns make(way, process) of the best of these ways, each of which costs less than those before
/// it as far as a search knows. Where the last one's plan costs less than they do so, they are not
/// planned.
template <class Ways, class Make>
constexpr Plan best_plan(const Ways& ways, int process, const PlanOptions& options,
                         const Make& make) {
  const int last = ways.size() - 1;
  if (last == 0) return make(ways[0], process);
  const Plan plan = make(ways[last], 0);
  const bool kept =
      options.contract.covers(plan.needs) && plan.peak_bytes <= options.workspace_limit;
  BestWay<int> best(options);
  for (int i = 0; i < last && !(kept && plan.cost < ways[i].cost); ++i)
    best.add(make(ways[i], 0), i);
  best.add(plan, last);
  return process == 0 ? best.plan() : make(ways[best.way()], process);
}
}  // namespace tessera::detail
