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
#include <tessera/program/detail/choice_question.hpp>
#include <tessera/program/detail/refined_choice.hpp>
#include <tessera/program/detail/under_choice.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/peak.hpp>
#include <tessera/program/text_table.hpp>
#include <tessera/solve/min_marginals.hpp>
#include <tessera/solve/solve.hpp>

namespace tessera {

namespace detail {
inline Index flops_of(const Program& program) {
  Index flops = 0;
  for (const ProgramEntry& e : program.entries())
    flops = saturating_add(flops, Prices::flops_of(*e.plan));
  return flops;
}
inline bool keeps_limits(const Program& program, const ChooseOptions& options) {
  if (options.flops_limit != max_int64 && flops_of(program) > options.flops_limit) return false;
  return options.memory_limit == max_int64 || peak_over_processes(program) <= options.memory_limit;
}
}  // namespace detail

namespace detail {
/// Returns a choice that repeats an earlier one, or stays near it
/// (program/choice/detail/earlier.hpp).
inline Choice chosen_beside_earlier(const Program& program, const PlanOptions& planning,
                                    const ChooseOptions& options);

inline Choice chosen_anew(const Program& program, const PlanOptions& planning,
                          const ChooseOptions& options) {
  const auto question = std::make_shared<ChoiceQuestion>(program, planning, options);
  Prices& prices = question->prices();
  const auto price_of = [&](const Program& p) {
    Cost cost = 0;
    for (const ProgramEntry& e : p.entries()) cost = add_costs(cost, prices.of(*e.plan));
    return cost;
  };
  Choice choice;
  choice.objective = options.objective;
  choice.program = program;
  choice.cost = choice.before = price_of(program);
  for (const ProgramTensor& t : program.tensors()) choice.chosen.push_back(t.desc.sharding);
  for (std::size_t t = 0; t < program.tensors().size(); ++t)
    choice.free.push_back(question->is_free(static_cast<int>(t)));
  choice.question = question;
  SolveOptions solving;
  solving.steps = options.steps;
  const bool kept = question->keeps_pins();
  const bool within = kept && keeps_limits(program, options);
  const auto as_given = [&] {  // nothing better is found
    if (!kept)
      throw ShardingError(
          "choose: within its limits no choice is found that keeps what is pinned; a pin holds "
          "whatever it costs; raise the limits, allow more steps, or leave entries of pins Open");
    return choice;
  };
  Index flops = options.flops_limit, memory = options.memory_limit;
  for (int tries = 0; tries < 6; ++tries) {
    choice.solution = solve(question->network(), solving);
    if (tries == 0) choice.bound = add_costs(choice.solution.bound, question->fixed());
    if (!choice.solution.found()) return as_given();
    Assignment assignment = choice.solution.assignment;
    if (flops == max_int64 && memory == max_int64)
      assignment = RefinedChoice(*question, std::move(assignment)).make();
    Program made = UnderChoice(*question, assignment, planning).make();
    if (keeps_limits(made, options)) {
      const Cost cost = price_of(made);
      if (within && cost >= choice.cost) return choice;
      choice.cost = cost;
      choice.program = std::move(made);
      for (std::size_t t = 0; t < choice.chosen.size(); ++t)
        choice.chosen[t] = question->home(static_cast<int>(t), assignment).sharding;
      return choice;
    }
    // What the network leaves out, such as copies within an operator, is taken off the limit.
    if (flops != max_int64) flops -= std::max<Index>(0, flops_of(made) - options.flops_limit);
    if (memory != max_int64)
      memory -= std::max<Index>(0, peak_over_processes(made) - options.memory_limit);
    question->limit(flops, memory);
  }
  return as_given();
}
}  // namespace detail

TESSERA_FUNCTION Choice choose(const Program& program, const PlanOptions& planning,
                               const ChooseOptions& options) {
  if (options.previous == nullptr && options.stated == nullptr)
    return detail::chosen_anew(program, planning, options);
  return detail::chosen_beside_earlier(program, planning, options);
}

namespace detail {
inline std::string price_text(Objective objective, Cost cost) {
  if (!is_feasible(cost)) return "not possible";
  return objective == Objective::time ? time_text(cost) : bytes_text(cost >> 12);
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
  char gap[32];
  std::snprintf(gap, sizeof gap, "%.2f", 100 * choice.gap());
  return "choose: " + detail::counted(free, "tensor") + " free, " + std::to_string(changed) +
         " split otherwise; " + detail::price_text(choice.objective, choice.before) + " before, " +
         detail::price_text(choice.objective, choice.cost) + " after, gap " + gap + " %\n" +
         table.text("  ");
}

TESSERA_FUNCTION std::string explain(const Choice& choice, int tensor) {
  const detail::ChoiceQuestion& question = *choice.question;
  const AxisNames names = question.program().names();
  const auto& homes = question.homes(tensor);
  std::string text = "tensor #" + std::to_string(tensor) + ", " +
                     detail::tensor_text(question.program(), tensor) + " of " +
                     to_string(question.program().tensor(tensor).desc.extents);
  if (homes.variable < 0)
    return text + ": stated, " + to_string(question.program().tensor(tensor).desc.sharding, names) +
           "\n";
  const MinMarginals why = min_marginals(question.network());
  std::vector<std::pair<Cost, Sharding>> rows;
  for (std::size_t i = 0; i < homes.all.size(); ++i)
    rows.emplace_back(
        add_costs(why.least[question.network().first(homes.variable) + i], question.fixed()),
        homes.all[i]);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  detail::TextTable table;
  for (const auto& [cost, sharding] : rows)
    table.row({to_string(sharding, names), detail::price_text(choice.objective, cost),
               sharding == choice.chosen[static_cast<std::size_t>(tensor)] ? "chosen" : ""});
  return text + ": the whole program's price with it" + (why.exact ? "" : ", at least") + "\n" +
         table.text("  ");
}

}  // namespace tessera
