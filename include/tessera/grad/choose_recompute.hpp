// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which layers run again on the way back, under a limit on memory: a pure function of the dry
/// Programs of a step, of which it asks for those that it compares.
///
///     const auto choice = choose_recompute(4, Index{1} << 30, program_of);     // program_of(again)
///     auto h = recompute_if(choice.again[0], layer)(x, weights[0]);
///     explain(choice);         // "2 of 4 layers run again: 1000 of 1100 bytes, ...; 12 % more flops, 9 % of the time"
///
/// Laws: what is chosen keeps the limit where any choice does that it compares, and all layers run
/// again where none does; no layer runs again where memory suffices; of the layers that run again
/// none could be kept beside the others, where keeping fewer never takes more memory.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <tessera/program/peak.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// A choice of layers, and what it costs. Bytes are those of the process with most.
struct RecomputeChoice {
  std::vector<bool> again;  ///< for each layer, whether it runs again
  Index peak = 0;
  Index peak_kept = 0;   ///< where no layer runs again
  Index peak_again = 0;  ///< where all do; 0: that was not planned, since none has to
  Index flops = 0;
  Index flops_kept = 0;  ///< where no layer runs again
  /// The time of a step by the machine model, in picoseconds, and where no layer runs again.
  std::int64_t cost = 0, cost_kept = 0;
  Index limit = 0;
  int plans = 0;  ///< Programs that were compared

  bool within() const { return peak <= limit; }
  /// Returns which part of a step's time goes into running layers again.
  double share_of_time() const {
    return cost > 0 ? static_cast<double>(cost - cost_kept) / static_cast<double>(cost) : 0;
  }
  int count() const {
    int n = 0;
    for (const bool one : again) n += one ? 1 : 0;
    return n;
  }
};

/// Returns which of `layers` layers run again so that a step holds at most `limit` bytes. `plan`
/// returns the Program of a step, forward and back, in which those layers run again that its
/// argument says: recorded on a dry mesh, of one and the same process wherever it is called.
/// Layers are kept in the order of time saved for a byte, as long as they fit: one Program is made,
/// two where all layers run again and yet hold more, or 2 layers + 2. Communication: none. Source:
/// Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016); GShard, section 5.1. Throws
/// what `plan` throws.
inline RecomputeChoice choose_recompute(
    int layers, Index limit, const std::function<Program(const std::vector<bool>&)>& plan) {
  const std::size_t n = static_cast<std::size_t>(layers);
  RecomputeChoice choice;
  choice.limit = limit;
  struct Facts {
    Index peak, flops;
    std::int64_t cost;
  };
  const auto facts = [&](const std::vector<bool>& again) {
    ++choice.plans;
    const Program program = plan(again);
    return Facts{peak_over_processes(program), program.flops(), program.cost()};
  };
  const auto chosen = [&](const std::vector<bool>& again, const Facts& made) {
    choice.again = again;
    choice.peak = made.peak;
    choice.flops = made.flops;
    choice.cost = made.cost;
    return choice;
  };
  const std::vector<bool> none(n, false), all(n, true);
  const Facts kept = facts(none);
  choice.peak_kept = kept.peak;
  choice.flops_kept = kept.flops;
  choice.cost_kept = kept.cost;
  if (kept.peak <= limit || layers < 1) return chosen(none, kept);
  Facts best = facts(all);
  choice.peak_again = best.peak;
  if (best.peak > limit) return chosen(all, best);
  std::vector<bool> again = all;
  struct Kept {
    std::size_t number;
    double saved, bytes;  ///< by keeping it alone: picoseconds, and what more is held
  };
  std::vector<Kept> order;
  for (std::size_t l = 0; l < n; ++l) {
    again[l] = false;
    const Facts one = facts(again);
    again[l] = true;
    order.push_back({l, static_cast<double>(max_of(best.cost - one.cost, std::int64_t{0})),
                     static_cast<double>(max_of(one.peak - best.peak, Index{0}))});
  }
  // The greedy rule for a knapsack (Dantzig 1957).
  std::stable_sort(order.begin(), order.end(), [](const Kept& a, const Kept& b) {
    return a.saved * b.bytes > b.saved * a.bytes;
  });
  for (const Kept& layer : order) {
    again[layer.number] = false;
    const Facts made = facts(again);
    again[layer.number] = made.peak > limit;
    if (made.peak <= limit) best = made;
  }
  return chosen(again, best);
}

/// Returns a sentence: how many layers run again, the bytes held, and the flops that it costs. Each
/// peak is that of a Program that was planned. Communication: none. Throws nothing.
inline std::string explain(const RecomputeChoice& choice) {
  const double more = choice.flops_kept > 0
                          ? 100.0 * static_cast<double>(choice.flops - choice.flops_kept) /
                                static_cast<double>(choice.flops_kept)
                          : 0;
  return std::to_string(choice.count()) + " of " + std::to_string(choice.again.size()) +
         " layers run again: " + std::to_string(choice.peak) + " bytes" +
         (choice.within() ? " of " : ", more than the limit of ") + std::to_string(choice.limit) +
         ", where none does " + std::to_string(choice.peak_kept) +
         (choice.peak_again > 0 ? ", where all do " + std::to_string(choice.peak_again)
                                : std::string()) +
         "; " + std::to_string(static_cast<long>(more + 0.5)) + " % more flops, " +
         std::to_string(static_cast<long>(100 * choice.share_of_time() + 0.5)) + " % of the time";
}

}  // namespace tessera
