// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Why a value was taken: for every variable and value, what the whole network costs at the least
/// if it is forced.
///
///     CostNetwork network;
///     const int x = network.add_variable({5, 0}), y = network.add_variable({0, 0});
///     network.add_pair(x, y, {0, 9, 7, 6});
///     const MinMarginals why = min_marginals(network);
///     why.least == std::vector<Cost>{5, 6, 5, 6}   // x = 0, x = 1, y = 0, y = 1
///     why.exact
///
/// Laws: a variable's smallest entry is the least cost of the network; forcing a value gives its
/// entry. Where `exact` is false, entries are lower bounds of that.
#include <utility>
#include <vector>

#include <tessera/solve/solve.hpp>

namespace tessera {

struct MinMarginals {
  std::vector<Cost> least;  // of all values of all variables, as CostNetwork::first has them
  bool exact = true;
};

/// Without limits one sweep forward and one backward, twice the time of the elimination times its
/// operands. With limits that may be exceeded, one search for each value that the sweep does not
/// decide; `options` are those of each. Throws ShapeError as `solve` does.
inline MinMarginals min_marginals(const CostNetwork& network, const SolveOptions& options = {}) {
  (void)detail::scale_of(network);  // refuses costs whose sums are too large
  const detail::Timeline timeline(network);
  detail::Relaxation relaxation(
      network, timeline,
      detail::choose_elimination(network, options.units, options.table_entries,
                                 network.all_costs()));
  const auto found =
      relaxation.evaluate(network.all_costs(), std::vector<Cost>(timeline.points(), 0));
  MinMarginals result{relaxation.marginals(), relaxation.elimination().exact()};
  if (timeline.points() == 0 || !is_feasible(found.bound)) return result;
  result.exact = true;
  for (int v = 0; v < network.variables(); ++v)
    for (int i = 0; i < network.values(v); ++i) {
      Cost& least = result.least[network.first(v) + static_cast<std::size_t>(i)];
      if (!is_feasible(least)) continue;
      std::vector<Cost> forced(network.costs(v).size(), infeasible);
      forced[i] = 0;
      CostNetwork with = network;
      with.add_costs(v, forced);
      const Solution solution = solve(with, options);
      least = std::max(least, solution.bound);
      result.exact = result.exact && (!is_feasible(solution.bound) || solution.optimal());
    }
  return result;
}

}  // namespace tessera
