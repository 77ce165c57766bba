// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Limits on networks that brute force does not reach, and what a network refuses.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>

#include <tessera/solve/min_marginals.hpp>
#include <tessera/solve/solve.hpp>

using namespace tessera;

namespace {

/// A chain whose variables all use memory at one time, and its least cost by dynamic programming
/// over what is used.
struct Chain {
  int length, values;
  Cost limit;
  std::vector<std::vector<Cost>> costs, amounts, pairs;

  Chain(int seed, int length_, int values_) : length(length_), values(values_) {
    std::mt19937_64 numbers(seed);
    const auto draw = [&](int count, int most) {
      std::vector<Cost> list(count);
      for (Cost& number : list) number = static_cast<Cost>(numbers() % most);
      return list;
    };
    for (int v = 0; v < length; ++v) {
      costs.push_back(draw(values, 1000));
      amounts.push_back(draw(values, 10));
      pairs.push_back(draw(values * values, 500));
    }
    limit = 3 * length;
  }
  CostNetwork network(bool fourfold) const {
    CostNetwork network;
    for (int v = 0; v < length; ++v) {
      network.add_variable(costs[v]);
      network.add_usage(v, v, v + length, amounts[v]);  // all of them at time length - 1
      if (v > 0) network.add_pair(v - 1, v, pairs[v]);
    }
    if (fourfold)  // pairs that cost nothing, but make buckets too large
      for (int v = 0; v < length; ++v)
        for (int w = v + 2; w < length; w += 5)
          network.add_pair(v, w, std::vector<Cost>(values * values, v == w + 1 ? 1 : 0));
    network.set_limit(length - 1, length, limit);
    return network;
  }
  Cost least() const {
    const std::size_t states = static_cast<std::size_t>(limit) + 1;
    std::vector<std::vector<Cost>> best(values, std::vector<Cost>(states, infeasible));
    for (int i = 0; i < values; ++i) best[i][amounts[0][i]] = costs[0][i];
    for (int v = 1; v < length; ++v) {
      std::vector<std::vector<Cost>> next(values, std::vector<Cost>(states, infeasible));
      for (int i = 0; i < values; ++i)
        for (int j = 0; j < values; ++j)
          for (std::size_t used = 0; used + amounts[v][j] < states; ++used) {
            Cost& cost = next[j][used + amounts[v][j]];
            cost = std::min(cost, best[i][used] + pairs[v][i * values + j] + costs[v][j]);
          }
      best = next;
    }
    Cost least = infeasible;
    for (const auto& list : best)
      for (const Cost cost : list) least = std::min(least, cost);
    return least;
  }
};

template <class F> std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("A limit on a chain: dynamic programming lies between bound and cost, which are close") {
  for (int seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    const Chain chain(seed, 20 + 20 * (seed % 3), 4);
    const Cost least = chain.least();
    for (const bool fourfold : {false, true}) {
      CAPTURE(fourfold);
      SolveOptions options{.steps = 600};
      if (fourfold) options.table_entries = 4096;
      const CostNetwork network = chain.network(fourfold);
      const Solution solution = solve(network, options);
      CHECK(solution.bound <= least);
      CHECK(solution.cost >= least);
      CHECK(solution.gap() < 0.01);
      CHECK(solve(network, options).assignment == solution.assignment);
      options.previous = solution.assignment;
      CHECK(solve(network, options).cost <= solution.cost);
      options = {};
      if (fourfold) options.table_entries = 4096;
      CHECK(solve(network, options).cost == least);
    }
  }
}

TEST_CASE("Where nothing keeps the limits, the answer says so") {
  CostNetwork network;
  network.add_variable({0, 1});
  network.add_variable({0, 1});
  network.add_usage(0, 0, 2, {5, 3});
  network.add_usage(1, 1, 3, {5, 3});
  network.set_limit(0, 3, 5);
  const Solution solution = solve(network);
  CHECK(!solution.found());
  CHECK(solution.bound == infeasible);
  CHECK(to_string(solution).rfind("infeasible", 0) == 0);
  CHECK(solve(CostNetwork{}).cost == 0);
}

TEST_CASE("Usages whose sums pass 64 bits are no less than their limit") {
  constexpr Cost large = Cost{1} << 60;
  for (const int count : {7, 8, 16, 17, 40})
    for (const bool together : {false, true}) {  // are all usages those of one variable?
      CAPTURE(count);
      CAPTURE(together);
      CostNetwork network;
      for (int v = 0; v < count; ++v) {
        network.add_variable({1, 0});
        network.add_usage(together ? 0 : v, 0, 1, {0, large});
      }
      network.set_limit(0, 1, 100);
      const Solution solution = solve(network);
      CHECK(solution.optimal());
      CHECK(solution.cost == (together ? 1 : count));
      CHECK(solution.assignment[0] == 0);
    }
  for (const Cost limit : {Cost{100}, large + 100}) {  // what all values use has passed 64 bits
    CostNetwork network;
    for (int v = 0; v < 16; ++v) {
      network.add_variable({1, 0});
      network.add_usage(v, 0, 1, {large, large});
    }
    network.set_limit(0, 1, limit);
    CHECK(!solve(network).found());
  }
  {  // several may be chosen, others may not
    CostNetwork network;
    for (int v = 0; v < 12; ++v) {
      network.add_variable({1, 0});
      network.add_usage(v, 0, 2, {3, v % 3 == 0 ? 5 : large >> (v % 3 - 1)});
    }
    network.set_limit(0, 2, 12 * 3 + 3);
    const Solution solution = solve(network);
    CHECK(solution.optimal());
    CHECK(solution.cost == 11);
  }
  {  // the prices of large usages
    CostNetwork network;
    for (int v = 0; v < 12; ++v) {
      network.add_variable({12 + v, 0});
      network.add_usage(v, v % 2, 2 + v % 2, {0, large / 16});
    }
    network.set_limit(0, 3, large / 16 * 5);
    const Solution solution = solve(network);
    CHECK(solution.optimal());
    CHECK(solution.cost == 12 + 13 + 14 + 15 + 16 + 17 + 18);
  }
}

TEST_CASE("A search without a limit of steps goes on until it is done") {
  for (int seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 numbers(seed);
    const auto draw = [&](std::size_t count, std::uint64_t most) {
      std::vector<Cost> list(count);
      for (Cost& number : list) number = static_cast<Cost>(numbers() % most);
      return list;
    };
    CostNetwork network;
    for (int v = 0; v < 10; ++v) {
      network.add_variable(draw(4, 20));
      network.add_usage(v, 0, 1, draw(4, 30));
      for (int w = 0; w < v; ++w)
        if (numbers() % 2 == 0) network.add_pair(w, v, draw(16, 20));
    }
    network.set_limit(0, 1, 120);
    SolveOptions options{.table_entries = 64};
    options.steps = ~std::uint64_t{0};
    const Solution solution = solve(network, options);
    CHECK(solution.optimal());
    CHECK(solution.statistics.nodes > 1);
  }
}

TEST_CASE("A clock stops a search, and the answer says so") {
  static int calls = 0;
  calls = 0;
  SolveOptions options{.seconds = 1};
  options.clock = [] { return calls++ * 0.1; };
  const Solution solution = solve(Chain(1, 60, 4).network(false), options);
  CHECK(solution.statistics.stopped_by_clock);
  CHECK(solution.bound <= solution.cost);
}

TEST_CASE("Networks refuse what makes no sense, and say what does") {
  CostNetwork network;
  network.add_variable({0, 1});
  network.add_variable({0, 1, 2});
  CHECK(error_of([&] { network.add_variable(std::vector<Cost>{}); }).find("needs at least one") !=
        std::string::npos);
  CHECK(error_of([&] {
          network.add_pair(0, 1, {1, 2});
        }).find("has 2 entries and needs 6") != std::string::npos);
  CHECK(error_of([&] { network.add_pair(1, 1, {1}); }).find("add the diagonal") !=
        std::string::npos);
  CHECK(error_of([&] { network.add_pair(0, 2, {1}); }).find("there is no variable 2") !=
        std::string::npos);
  CHECK(error_of([&] {
          network.add_usage(0, 0, 1, {1, -1});
        }).find("between 0 and 2^60") != std::string::npos);
  CHECK(error_of([&] {
          network.add_usage(0, -1, 1, {1, 1});
        }).find("times begin at 0") != std::string::npos);
  CHECK(error_of([&] { network.add_variable({detail::most_cost + 1}); }).find("at most 2^60") !=
        std::string::npos);
  CHECK(error_of([&] { solve(network, {.previous = {0}}); }).find("one for each") !=
        std::string::npos);
  CHECK(error_of([&] {
          solve(network, {.previous = {0, 3}});
        }).find("value 3") != std::string::npos);
  network.add_variable({detail::most_cost, 0});
  CHECK(error_of([&] { solve(network); }).find("divide them") != std::string::npos);
  CHECK(error_of([&] { min_marginals(network); }).find("divide them") != std::string::npos);
  CostNetwork large;
  for (int v = 0; v < 3; ++v) {
    large.add_variable({1, 0});
    large.add_usage(v, 0, 1, {0, detail::most_cost});
  }
  large.set_limit(0, 1, 2 * detail::most_cost);
  CHECK(error_of([&] { solve(large); }).find("divide usages and limits") != std::string::npos);
}
