// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Choosing how the tensors of a Program are split, at least cost.
///
///     Choice choice = choose(plan(f)(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(2, 4)));
///     choice.program;   choice.cost;   choice.gap();     // as it is carried out, and its price
///     explain(choice);   explain(choice, tensor);        // what was chosen, and what else would cost
///     auto g = compile(f, {.choose = ChooseOptions{}});  // runs f so
///
/// What the Program's tensors are split like is free, but for what the caller states: its
/// arguments and what it keeps lie as they are recorded (unless they are named open), and so does
/// the result of a reshard. Every other tensor may have any placement of the mesh's axes, and every
/// operator any way to split its letters (program/ways.hpp). The price of an operator on tensors of
/// given shardings is its plan's; it is the least, over its ways, of the price of the way and of
/// moving each tensor to it. So the whole is a cost network (solve/solve.hpp) of tensors and ways.
///
/// GSPMD (Xu et al. 2021, section 3.5) and Shardy propagate by rules; Alpa (Zheng et al. 2022,
/// section 4) solves an integer program with estimated prices.
///
/// A layer may be open, too: it is kept, or runs again on the way back (grad/recompute.hpp). Under
/// a limit on memory the search compares Programs that are recorded with some of them run again.
///
/// Laws: what the caller states does not change; the choice's cost is the price of its Program, to
/// the integer, and never above that of the Program that was given; the same question has the same
/// answer on every process.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan_options.hpp>
#include <tessera/program/choice/chosen_layer.hpp>
#include <tessera/program/choice/options.hpp>
#include <tessera/program/program.hpp>
#include <tessera/solve/solution.hpp>

namespace tessera {

namespace detail {
class ChoiceQuestion;
}

struct Choice {
  Program program = {};               ///< as it is carried out
  std::vector<Sharding> chosen = {};  ///< the sharding of each tensor of the Program that was given
  std::vector<bool> free = {};        ///< whether the tensor's sharding was to be chosen
  Objective objective = Objective::time;
  Cost before = 0;  ///< the price of the Program that was given, its open layers kept
  Cost cost = 0;    ///< of `program`
  /// No choice of shardings costs less, of operators that move tensors and then compute, where the
  /// same layers run again; infeasible where none of those keeps the limits.
  Cost bound = 0;
  /// Whether `program` keeps the limits and the pins; else it is the Program that was given.
  bool found = true;
  Index memory_limit = max_int64;
  Index least_peak = 0;  ///< where memory is limited, of all Programs that were looked at
  std::vector<ChosenLayer> layers = {};  ///< those that were open, in the order in which they run
  /// What each costs and saves, as it was recorded; empty where nothing had to run again.
  std::vector<LayerPrice> layer_prices = {};
  Index peak_kept = 0;  ///< where layers were open: what is held as recorded, if all are kept
  int recorded = 1;     ///< Programs that were compared
  int searched = 1;     ///< of these, those whose shardings were chosen
  Solution solution = {};
  std::shared_ptr<const detail::ChoiceQuestion> question{};

  /// Returns the Program that was given, whose tensors have the numbers of `chosen`.
  TESSERA_FUNCTION const Program& given() const;
  /// Returns how an argument of a function that choose was given lies, by its path, such as "0" or
  /// "1.weight": so it is made, or read from a file. Throws UsageError where no operator reads it.
  TESSERA_FUNCTION Sharding argument(std::string_view path) const;

  /// By how much of the bound the cost may be too high; infinite where nothing was found.
  double gap() const {
    if (!found || !is_feasible(bound)) return std::numeric_limits<double>::infinity();
    return cost <= bound
               ? 0
               : static_cast<double>(cost - bound) / static_cast<double>(bound < 1 ? 1 : bound);
  }
};

/// Returns the choice for a Program, whose operators have their Operation; others stay as they are.
/// Communication: none.
TESSERA_FUNCTION Choice choose(const Program& program, const PlanOptions& planning = {},
                               const ChooseOptions& options = {});

namespace detail {
/// Returns the choice among the Programs that `record` returns, of which open layers and shardings
/// are chosen together (program/choice/detail/layer_search.hpp). Communication: none. Throws what
/// `record` throws.
TESSERA_FUNCTION Choice choose_layers(const RecordLayers& record, const PlanOptions& planning,
                                      const ChooseOptions& options);
}  // namespace detail

/// Returns what was chosen: totals, and one row for each tensor whose sharding changed.
TESSERA_FUNCTION std::string explain(const Choice& choice);
/// Returns, for each sharding that a tensor could have had, the least price of the whole Program
/// with it.
TESSERA_FUNCTION std::string explain(const Choice& choice, int tensor);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/choice/detail/choose.hpp>
#include <tessera/program/choice/detail/layer_search.hpp>
#endif
