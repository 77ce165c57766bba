// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What `solve` found (solve/solve.hpp): an assignment, its cost, and how much less any other could
/// cost.
///
///     const Solution solution{.assignment = {1, 0}, .cost = 105, .bound = 100};
///     solution.gap() == 0.05
///     to_string(solution) == "cost 105, bound 100, gap 5.00 %; 0 steps, 0 nodes, 0 table operations"
///
/// Laws: bound <= cost; the gap is 0 exactly where the two are equal, and the assignment then is
/// optimal.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include <tessera/solve/cost_network.hpp>

namespace tessera {

struct SolveStatistics {
  int variables = 0;  // that were left to decide, after what follows from others was taken out
  std::uint64_t pairs = 0;  // between them
  int points = 0;           // times whose limit may be exceeded
  int split = 0;  // variables whose elimination would exceed the table, so that bounds replace it
  std::uint64_t steps = 0;       // of multipliers, moves and nodes: the same in every process
  std::uint64_t nodes = 0;       // of branch and bound
  std::uint64_t operations = 0;  // entries of tables that were read to make others
  double seconds = 0;
  bool stopped_by_clock = false;  // then the same question may have another answer elsewhere
};

struct Solution {
  Assignment assignment;     // empty where none was found
  Cost cost = infeasible;    // of the assignment
  Cost bound = -infeasible;  // no assignment that keeps the limits costs less; infeasible where
                             // none keeps them
  SolveStatistics statistics = {};

  bool found() const { return is_feasible(cost); }
  bool optimal() const { return cost == bound; }
  /// By how much of the bound the cost may be too high; infinite where nothing was found.
  double gap() const {
    if (cost == bound) return 0;
    if (!found()) return std::numeric_limits<double>::infinity();
    const double least = bound < 0 ? -static_cast<double>(bound) : static_cast<double>(bound);
    return (static_cast<double>(cost) - static_cast<double>(bound)) / (least < 1 ? 1 : least);
  }
};

/// Returns the cost, the bound, the gap and what the solver did, as text.
inline std::string to_string(const Solution& solution) {
  const SolveStatistics& s = solution.statistics;
  char gap[32];
  std::snprintf(gap, sizeof gap, "%.2f", 100 * solution.gap());
  std::string text = solution.found() ? "cost " + std::to_string(solution.cost) + ", bound " +
                                            std::to_string(solution.bound) + ", gap " + gap + " %"
                     : is_feasible(solution.bound)
                         ? "nothing found, bound " + std::to_string(solution.bound)
                         : std::string("infeasible");
  text += "; " + std::to_string(s.steps) + " steps, " + std::to_string(s.nodes) + " nodes, " +
          std::to_string(s.operations) + " table operations";
  if (s.split > 0)
    text += ", " + std::to_string(s.split) + " of " + std::to_string(s.variables) +
            " variables bounded";
  if (s.stopped_by_clock) text += ", stopped by the clock";
  return text;
}

}  // namespace tessera
