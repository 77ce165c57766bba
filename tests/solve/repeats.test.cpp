// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Depth costs nothing: chains of equal units, counted by table operations.
#include <doctest/doctest.h>

#include <random>

#include <tessera/solve/min_marginals.hpp>
#include <tessera/solve/solve.hpp>

using namespace tessera;

namespace {

struct Unit {
  struct Pair {
    int a, b;
    std::vector<Cost> costs;
  };
  std::vector<std::vector<Cost>> costs;
  std::vector<Pair> inside, between;
};

constexpr int inner = 6, values = 5;

Unit random_unit(int seed) {
  std::mt19937_64 numbers(seed);
  const auto draw = [&](int count) {
    std::vector<Cost> costs(count);
    for (Cost& cost : costs) cost = static_cast<Cost>(numbers() % 1000);
    return costs;
  };
  Unit unit;
  for (int v = 0; v < inner; ++v) unit.costs.push_back(draw(values));
  for (int a = 0; a < inner; ++a)
    for (int b = a + 1; b < inner; ++b)
      if (numbers() % 2 == 0) unit.inside.push_back({a, b, draw(values * values)});
  unit.between = {{5, 0, draw(values * values)}, {4, 1, draw(values * values)}};
  return unit;
}

/// Units in a row. In a mirrored network the last three variables of each unit are numbered
/// backwards after all first ones, as a layer's gradients are; and all units share a variable.
CostNetwork chain(const Unit& unit, int units, bool mirrored) {
  CostNetwork network;
  const int shared = mirrored ? network.add_variable({0, 40}) : -1;
  const auto place = [&](int u, int v) {
    if (!mirrored) return u * inner + v;
    return v < 3 ? 1 + u * 3 + v : 1 + 3 * units + (units - 1 - u) * 3 + v - 3;
  };
  std::vector<int> kinds(inner * units);
  for (int u = 0; u < units; ++u)
    for (int v = 0; v < inner; ++v) kinds[place(u, v) - (mirrored ? 1 : 0)] = v;
  for (const int kind : kinds) network.add_variable(unit.costs[kind]);
  for (int u = 0; u < units; ++u) {
    for (const auto& pair : unit.inside)
      network.add_pair(place(u, pair.a), place(u, pair.b), pair.costs);
    if (u + 1 < units)
      for (const auto& pair : unit.between)
        network.add_pair(place(u, pair.a), place(u + 1, pair.b), pair.costs);
    if (mirrored) network.add_pair(shared, place(u, 2), {0, 9, 4, 7, 3, 2, 8, 6, 1, 5});
  }
  return network;
}

/// The least cost by a plain sweep over units, whose states are all values of a unit's variables.
Cost by_sweep(const Unit& unit, int units) {
  int states = 1;
  for (int v = 0; v < inner; ++v) states *= values;
  const auto value = [](int state, int v) {
    for (; v > 0; --v) state /= values;
    return state % values;
  };
  std::vector<Cost> inside(states);
  for (int s = 0; s < states; ++s) {
    for (int v = 0; v < inner; ++v) inside[s] += unit.costs[v][value(s, v)];
    for (const auto& pair : unit.inside)
      inside[s] += pair.costs[value(s, pair.a) * values + value(s, pair.b)];
  }
  std::vector<Cost> least(values * values,
                          0);  // of all before, for each value of variables 0 and 1
  Cost best = 0;
  for (int u = 0; u < units; ++u) {
    std::vector<Cost> ends(values * values, infeasible), next(values * values, infeasible);
    for (int s = 0; s < states; ++s) {
      Cost& end = ends[value(s, 4) * values + value(s, 5)];
      end = std::min(end, least[value(s, 0) * values + value(s, 1)] + inside[s]);
    }
    for (int e = 0; e < values * values; ++e)
      for (int n = 0; n < values * values; ++n)
        next[n] =
            std::min(next[n], ends[e] + unit.between[0].costs[e % values * values + n / values] +
                                  unit.between[1].costs[e / values * values + n % values]);
    best = *std::min_element(ends.begin(), ends.end());
    least = next;
  }
  return best;
}

}  // namespace

TEST_CASE("A chain of 96 equal units costs as much work as one of a few") {
  for (const bool mirrored : {false, true})
    for (int seed = 0; seed < 4; ++seed) {
      CAPTURE(seed);
      CAPTURE(mirrored);
      const Unit unit = random_unit(seed);
      const Solution few = solve(chain(unit, 8, mirrored)), many = solve(chain(unit, 96, mirrored));
      CHECK(few.optimal());
      CHECK(many.optimal());
      if (!mirrored) CHECK(many.cost == by_sweep(unit, 96));
      // The shared variable is told the least cost of each unit, a few numbers.
      const std::uint64_t told = mirrored ? 20 * 96 : 0;
      CHECK(many.statistics.operations < 2 * few.statistics.operations + told);
    }
}

TEST_CASE(
    "A deep chain whose tables are too large is bounded, and its search begins with few units") {
  SolveOptions small;
  small.table_entries = 64;
  for (const bool mirrored : {false, true})
    for (int seed = 0; seed < 6; ++seed) {
      CAPTURE(seed);
      CAPTURE(mirrored);
      const CostNetwork network = chain(random_unit(seed), 40, mirrored);
      const Cost least = solve(network).cost;
      const Solution bounded = solve(network, small);
      CHECK(bounded.bound <= least);
      CHECK(least <= bounded.cost);
      CHECK(bounded.cost == cost_of(network, bounded.assignment));
      CHECK(bounded.gap() < 0.02);
    }
}

TEST_CASE("A folded network has the first one's costs, and its assignments unfold") {
  const Unit unit = random_unit(3);
  for (const bool mirrored : {false, true}) {
    CAPTURE(mirrored);
    const CostNetwork network = chain(unit, 40, mirrored), few = chain(unit, 8, mirrored);
    const detail::Folded folded(network);
    REQUIRE(folded.is_smaller());
    CHECK(folded.network().variables() < network.variables());
    const Solution of_few = solve(folded.network());
    REQUIRE(of_few.optimal());
    const Assignment all = folded.recovered(of_few.assignment);
    REQUIRE(static_cast<int>(all.size()) == network.variables());
    CHECK(is_feasible(cost_of(network, all)));
    CHECK_FALSE(detail::Folded(few).is_smaller());
  }
}

TEST_CASE("Marginals of a long chain are the costs of forced values") {
  const CostNetwork network = chain(random_unit(5), 24, true);
  const MinMarginals why = min_marginals(network);
  REQUIRE(why.exact);
  for (const int v : {0, 1, 40, 72, 144}) {
    for (int i = 0; i < network.values(v); ++i) {
      CostNetwork forced = network;
      std::vector<Cost> costs(network.values(v), infeasible);
      costs[i] = 0;
      forced.add_costs(v, costs);
      CHECK(solve(forced).cost == why.least[network.first(v) + i]);
    }
  }
}

TEST_CASE(
    "Units as powers: the same answers, and work that grows with the logarithm of their number") {
  const Unit unit = random_unit(6);
  constexpr std::size_t bound = std::size_t{1} << 20;
  std::vector<std::uint64_t> operations;
  for (const int count : {12, 48, 192}) {
    CAPTURE(count);
    const CostNetwork network = chain(unit, count, false);
    std::vector<int> units;
    for (int v = 0; v < network.variables(); ++v) units.push_back(v / inner);
    detail::Elimination plain(network, detail::elimination_order(network, {}, bound), bound);
    detail::Elimination powers(
        network, detail::elimination_order(network, detail::unit_ranks(network, units), bound),
        bound);
    REQUIRE(powers.exact());
    detail::Tables plain_tables, tables;
    CHECK(powers.forward(tables, network.all_costs()) ==
          plain.forward(plain_tables, network.all_costs()));
    operations.push_back(tables.operations());
    CHECK(cost_of(network, powers.decode(tables, {})) == by_sweep(unit, count));
    CHECK(powers.backward(tables) == plain.backward(plain_tables));
    CHECK(solve(network, {.units = units}).cost == by_sweep(unit, count));
  }
  CHECK(operations[2] < 5 * operations[0]);  // of 16 times the units
}
