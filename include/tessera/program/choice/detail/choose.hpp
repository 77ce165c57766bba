// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a choice is made, and said.
///
///     choose(program, planning, options)
///
/// Laws: those of program/choice.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/choice/detail/earlier.hpp>
#include <tessera/program/choice/detail/question.hpp>
#include <tessera/program/choice/detail/search.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/peak.hpp>
#include <tessera/program/text_table.hpp>
#include <tessera/solve/min_marginals.hpp>

namespace tessera {

namespace detail {
/// Returns a choice that repeats an earlier one, or stays near it
/// (program/choice/detail/earlier.hpp).
inline Choice chosen_beside_earlier(const Program& program, const PlanOptions& planning,
                                    const ChooseOptions& options);
/// What program/choice/detail/search.hpp defines, which may include this header first.
inline Choice chosen_anew(const Program& program, const PlanOptions& planning,
                          const ChooseOptions& options);
inline std::string least_peak_text(const Choice& choice);
}  // namespace detail

TESSERA_FUNCTION Choice choose(const Program& program, const PlanOptions& planning,
                               const ChooseOptions& options) {
  if (!program.parts().empty())
    throw UsageError(
        "shardings are chosen for a function whose operators are all on one mesh, and this one "
        "has operators on parts of " +
        to_string(program.mesh, program.names()) +
        "; choose for what it calls on one mesh, and call or compile the rest without a choice");
  if (options.previous == nullptr && options.stated == nullptr)
    return detail::chosen_anew(program, planning, options);
  return detail::chosen_beside_earlier(program, planning, options);
}

namespace detail {
inline std::string price_text(Objective objective, Cost cost) {
  if (!is_feasible(cost)) return "not possible";
  return objective == Objective::time ? time_text(cost) : bytes_text(cost >> 12);
}
/// Says by which memory the gap is, and what the Program holds.
inline std::string memory_text(const Choice& choice) {
  if (choice.memory_limit == max_int64) return "";
  return " by the memory that the search counts; planned peak " +
         bytes_text(peak_over_processes(choice.program)) + " of " + bytes_text(choice.memory_limit);
}
/// Says which open layers run again: one row for those that are alike and do the same.
inline std::string layers_text(const Choice& choice) {
  if (choice.layers.empty()) return "";
  const auto again = std::count_if(choice.layers.begin(), choice.layers.end(),
                                   [](const ChosenLayer& layer) { return layer.again; });
  std::string text = std::to_string(again) + " of " +
                     counted(static_cast<std::int64_t>(choice.layers.size()), "open layer") +
                     (again == 1 ? " runs again" : " run again");
  if (choice.peak_kept > 0)
    text += "; as recorded, with all kept, the planned peak is " + bytes_text(choice.peak_kept);
  TextTable table;
  std::vector<bool> said(choice.layers.size(), false);
  for (std::size_t l = 0; l < choice.layer_prices.size(); ++l) {
    if (said[l]) continue;
    const LayerPrice& price = choice.layer_prices[l];
    std::string names;
    std::size_t all = 0;
    for (std::size_t k = l; k < choice.layers.size(); ++k) {
      if (choice.layer_prices[k].alike != price.alike ||
          choice.layers[k].again != choice.layers[l].again)
        continue;
      said[k] = true;
      const std::string& name = choice.layers[k].name;
      if (all++ < 4)
        names += (names.empty() ? "" : ", ") + (name == "layer" ? "#" + std::to_string(k) : name);
    }
    if (all > 4) names += ", ... (" + std::to_string(all) + ")";
    table.row({choice.layers[l].again ? "again" : "kept", names,
               "once more: " + price_text(choice.objective, price.saved),
               "kept: " + bytes_text(price.bytes)});
  }
  return text + "\n" + table.text("  ");
}
inline std::string tensor_text(const Program& program, int t) {
  const ProgramTensor& tensor = program.tensor(t);
  if (tensor.made < 0) {
    for (const ProgramArgument& argument : program.arguments())
      if (argument.tensor == t) return "argument " + argument.path;
    return "argument";
  }
  const ProgramEntry& e = program.entry(tensor.made);
  const std::string path = program.layer_path(e.layer);
  return (path.empty() ? "" : path + "/") + e.label;
}
/// Returns the least price of the whole Program with a tensor under each of its shardings, of which
/// `why` knows the network's part.
inline std::vector<Cost> prices_of_homes(const ChoiceQuestion& question, const MinMarginals& why,
                                         int tensor) {
  const auto& homes = question.homes(tensor);
  const std::vector<Sharding> shardings = question.shardings(tensor);
  std::vector<Cost> prices(shardings.size(), infeasible);
  for (std::size_t i = 0; i < homes.all.size(); ++i) {
    const auto at = std::find(shardings.begin(), shardings.end(), homes.all[i].sharding);
    Cost& least = prices[static_cast<std::size_t>(at - shardings.begin())];
    least = std::min(least, add_costs(why.least[question.network().first(homes.variable) + i],
                                      question.fixed()));
  }
  return prices;
}
}  // namespace detail

TESSERA_FUNCTION const Program& Choice::given() const { return question->program(); }

TESSERA_FUNCTION Sharding Choice::argument(std::string_view path) const {
  for (const ProgramArgument& argument : question->program().arguments())
    if (argument.path == path) return chosen[static_cast<std::size_t>(argument.tensor)];
  throw UsageError("a choice is asked for the argument " + std::string(path) +
                   ", which no operator of its function reads; name it by its place and the path "
                   "within it, as in \"1.weight\"");
}

TESSERA_FUNCTION std::string explain(const Choice& choice) {
  const Program& given = choice.question->program();
  const AxisNames names = given.names();
  detail::TextTable table;
  int changed = 0, free = 0;
  for (std::size_t t = 0; t < choice.chosen.size(); ++t) {
    const int number = static_cast<int>(t);
    free += choice.free[t] ? 1 : 0;
    const Sharding& before = given.tensor(number).desc.sharding;
    if (!choice.free[t] || before == choice.chosen[t]) continue;
    ++changed;
    table.row({"#" + std::to_string(number), detail::tensor_text(given, number),
               to_string(given.tensor(number).desc.extents), to_string(before, names), "->",
               to_string(choice.chosen[t], names)});
  }
  const std::string tensors = "choose: " + detail::counted(free, "tensor") + " free, ";
  if (!choice.found)
    return tensors + "nothing is found within the limits" + detail::least_peak_text(choice) + "\n" +
           detail::layers_text(choice);
  char gap[32];
  std::snprintf(gap, sizeof gap, "%.2f", 100 * choice.gap());
  return tensors + std::to_string(changed) + " split otherwise; " +
         detail::price_text(choice.objective, choice.before) + " before, " +
         detail::price_text(choice.objective, choice.cost) + " after, gap " + gap + " %" +
         (choice.question->exact() ? "" : " of programs that move tensors and then compute") +
         detail::memory_text(choice) + "\n" + detail::layers_text(choice) + table.text("  ");
}

TESSERA_FUNCTION std::string explain(const Choice& choice, int tensor) {
  const detail::ChoiceQuestion& question = *choice.question;
  const AxisNames names = question.program().names();
  std::string text = "tensor #" + std::to_string(tensor) + ", " +
                     detail::tensor_text(question.program(), tensor) + " of " +
                     to_string(question.program().tensor(tensor).desc.extents);
  if (!question.has_choice(tensor))
    return text + ": stated, " + to_string(question.program().tensor(tensor).desc.sharding, names) +
           "\n";
  const MinMarginals why = min_marginals(question.network());
  const std::vector<Cost> prices = detail::prices_of_homes(question, why, tensor);
  std::vector<std::pair<Cost, Sharding>> rows;
  const std::vector<Sharding> shardings = question.shardings(tensor);
  for (std::size_t i = 0; i < prices.size(); ++i) rows.emplace_back(prices[i], shardings[i]);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  detail::TextTable table;
  for (const auto& [cost, sharding] : rows)
    table.row({to_string(sharding, names), detail::price_text(choice.objective, cost),
               sharding == choice.chosen[static_cast<std::size_t>(tensor)] ? "chosen" : ""});
  const char* const how = !why.exact ? ", at least" : !question.exact() ? ", at most" : "";
  return text + ": the whole program's price with it" + how + "\n" + table.text("  ");
}

}  // namespace tessera
