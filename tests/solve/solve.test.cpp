// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random small networks against brute force: cost, bound, every marginal.
#include <doctest/doctest.h>

#include <random>

#include <tessera/solve/min_marginals.hpp>
#include <tessera/solve/solve.hpp>

using namespace tessera;

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : numbers_(seed) {}
  int below(int n) { return static_cast<int>(numbers_() % static_cast<std::uint64_t>(n)); }
  std::vector<Cost> costs(std::size_t count, int one_infeasible_in) {
    std::vector<Cost> costs(count);
    for (Cost& cost : costs)
      cost = one_infeasible_in > 0 && below(one_infeasible_in) == 0 ? infeasible : below(20) - 5;
    return costs;
  }

 private:
  std::mt19937_64 numbers_;
};

struct Wanted {
  Cost least = infeasible;
  std::vector<Cost> marginals;
  int changes = 0;  // of a cheapest assignment from the previous one, at the least
};

bool keeps_limits(const CostNetwork& network, const Assignment& assignment) {
  for (int time = 0; time < static_cast<int>(network.limits().size()); ++time) {
    Cost used = 0;
    for (const auto& usage : network.usages())
      if (usage.begin <= time && time < usage.end)
        used += network.amounts(usage)[assignment[usage.variable]];
    if (used > network.limits()[time]) return false;
  }
  return true;
}

int changes_of(const Assignment& a, const Assignment& b) {
  int changes = 0;
  for (std::size_t v = 0; v < a.size(); ++v) changes += a[v] != b[v];
  return changes;
}

Wanted by_brute_force(const CostNetwork& network, const Assignment& previous) {
  Wanted wanted{.marginals = std::vector<Cost>(network.all_values(), infeasible)};
  Assignment assignment(network.variables(), 0);
  for (;;) {
    const Cost cost = keeps_limits(network, assignment) ? cost_of(network, assignment) : infeasible;
    const int changes = changes_of(assignment, previous);
    if (cost < wanted.least || (cost == wanted.least && changes < wanted.changes)) {
      wanted.least = cost;
      wanted.changes = changes;
    }
    for (int v = 0; v < network.variables(); ++v) {
      Cost& marginal = wanted.marginals[network.first(v) + assignment[v]];
      marginal = std::min(marginal, cost);
    }
    int v = 0;
    for (; v < network.variables() && ++assignment[v] == network.values(v); ++v) assignment[v] = 0;
    if (v == network.variables()) return wanted;
  }
}

/// Variables of one to four values, pairs of which some are maps from value to value, and perhaps
/// repeated units.
CostNetwork random_network(Draw& draw, bool limited) {
  CostNetwork network;
  const int units = draw.below(4) == 0 ? 2 + draw.below(2) : 1,
            inner = units > 1 ? 1 + draw.below(2) : 1 + draw.below(6);
  std::vector<std::vector<Cost>> costs;
  for (int v = 0; v < inner; ++v) costs.push_back(draw.costs(1 + draw.below(4), 8));
  for (int u = 0; u < units; ++u)
    for (const auto& list : costs) network.add_variable(list);
  const int count = network.variables();
  for (int p = draw.below(2 * inner + 3); p-- > 0 && count > 1;) {
    const int a = draw.below(count), step = 1 + draw.below(count - 1), b = (a + step) % count;
    const int rows = network.values(a), columns = network.values(b);
    std::vector<Cost> table = draw.costs(rows * columns, 6);
    if (draw.below(4) == 0)
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
          if (i % columns != j) table[i * columns + j] = infeasible;
    for (int u = 0; u < units; ++u) {
      const int x = (a + u * inner) % count, y = (b + u * inner) % count;
      if (network.values(x) == rows && network.values(y) == columns) network.add_pair(x, y, table);
    }
  }
  if (!limited) return network;
  for (int v = 0; v < count; ++v)
    for (int k = draw.below(3); k-- > 0;) {
      std::vector<Cost> amounts = draw.costs(network.values(v), 0);
      for (Cost& amount : amounts) amount += 5;
      const int begin = draw.below(4);
      network.add_usage(v, begin, begin + 1 + draw.below(3), amounts);
    }
  network.set_limit(0, 1 + draw.below(6), 8 * inner + draw.below(20));
  if (draw.below(2) == 0) network.set_limit(2, 4, 6 * inner + draw.below(20));
  return network;
}

}  // namespace

TEST_CASE("Brute force finds what solve finds") {
  for (int seed = 0; seed < 10'000; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const bool limited = seed % 3 == 0;
    const CostNetwork network = random_network(draw, limited);
    SolveOptions options;
    if (seed % 2 == 0)
      for (int v = 0; v < network.variables(); ++v)
        options.previous.push_back(draw.below(network.values(v)));
    if (seed % 5 == 0) options.table_entries = 8;  // bounds in place of exact tables
    const Wanted wanted = by_brute_force(
        network, options.previous.empty() ? Assignment(network.variables(), 0) : options.previous);
    const Solution solution = solve(network, options);
    REQUIRE(solution.bound == wanted.least);
    REQUIRE(solution.found() == is_feasible(wanted.least));
    if (!solution.found()) continue;
    REQUIRE(solution.cost == wanted.least);
    REQUIRE(cost_of(network, solution.assignment) == solution.cost);
    REQUIRE(keeps_limits(network, solution.assignment));
    REQUIRE(solution.gap() == 0);
    if (!options.previous.empty())
      REQUIRE(changes_of(solution.assignment, options.previous) == wanted.changes);
    options.previous.clear();
    options.steps = static_cast<std::uint64_t>(draw.below(6));  // a search that is stopped
    const Solution early = solve(network, options);
    REQUIRE(early.bound <= wanted.least);
    REQUIRE(early.cost >= wanted.least);
    options.steps = 20'000;
    if (limited && seed % 15 != 0) continue;  // a search for each value
    const MinMarginals found = min_marginals(network, options);
    if (found.exact)
      REQUIRE(found.least == wanted.marginals);
    else
      for (std::size_t i = 0; i < found.least.size(); ++i)
        REQUIRE(found.least[i] <= wanted.marginals[i]);
  }
}
