// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How an answer to a question is found that keeps its limits.
///
///     Choice choice = ChoiceSearch(program, planning, options).make();
///
/// Laws: those of program/choice.hpp; of the Programs that were looked at and keep the limits, the
/// cheapest is returned.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/choice/detail/question.hpp>
#include <tessera/program/choice/detail/refined.hpp>
#include <tessera/program/choice/detail/under_choice.hpp>
#include <tessera/program/over_processes.hpp>
#include <tessera/program/peak.hpp>
#include <tessera/solve/solve.hpp>

namespace tessera::detail {

inline Index flops_of(const Program& program) {
  Index flops = 0;
  for (const ProgramEntry& e : program.entries())
    flops = saturating_add(flops, Prices::flops_of(*e.plan));
  return flops;
}

/// Returns what a choice that exceeds its limit on memory needs at the least, as far as is known.
inline std::string least_peak_text(const Choice& choice) {
  if (choice.least_peak <= choice.memory_limit) return "";
  return ": the least peak of memory that was seen is " + bytes_text(choice.least_peak) +
         ", and the limit is " + bytes_text(choice.memory_limit);
}

/// Makes a choice: solves the question, and makes the Program of the answer.
class ChoiceSearch {
 public:
  ChoiceSearch(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : planning_(planning),
        options_(options),
        question_(std::make_shared<ChoiceQuestion>(program, planning, options)) {
    solving_.enough = 2;
    left_ = 3 * std::min(options.steps, std::numeric_limits<std::uint64_t>::max() / 3);
    choice_.objective = options.objective;
    choice_.program = program;
    choice_.cost = choice_.before = question_->prices().of(program);
    for (const ProgramTensor& t : program.tensors()) choice_.chosen.push_back(t.desc.sharding);
    for (std::size_t t = 0; t < program.tensors().size(); ++t)
      choice_.free.push_back(question_->is_free(static_cast<int>(t)));
    choice_.question = question_;
    const Use use = use_of(program);
    choice_.found = question_->keeps_pins() && keeps_limits(use);
    choice_.memory_limit = options.memory_limit;
    choice_.least_peak = use.peak;
  }

  Choice make() {
    if (options_.keep_shardings)
      choice_.bound = choice_.found ? choice_.cost : infeasible;
    else if (limits_memory() || options_.flops_limit != max_int64)
      make_within(), question_->limit(options_.flops_limit, options_.memory_limit);
    else if (solve_question())
      offer(UnderChoice(*question_, refined(), planning_).make(), assignment_);
    if (!choice_.found && !question_->keeps_pins())
      throw ShardingError(
          "choose: within its limits no choice is found that keeps what is pinned" +
          least_peak_text(choice_) +
          "; a pin holds whatever it costs; raise the limits, allow more steps, or leave entries "
          "of pins Open");
    return std::move(choice_);
  }

 private:
  /// The question first leaves out what moves take up, and so asks for too little memory. Where the
  /// answer's Program exceeds the limit, its moves are counted, which makes the question exact for
  /// the operators there; what is missing still, such as the memory of other processes, is taken
  /// off the limit, by halves where too much was. Once the answers have taken three times the steps
  /// that one may, each further one takes an eighth.
  void make_within() {
    Index flops = options_.flops_limit, memory = options_.memory_limit, kept = memory;
    bool raised = false;
    for (int tries = 0; tries < 12; ++tries) {
      if (!solve_question(flops != options_.flops_limit || memory != options_.memory_limit)) {
        if (memory < kept) {
          memory += (kept - memory + 1) / 2;
        } else if (!raised && limits_memory() && choice_.least_peak > 0) {
          raised = true;  // the question may count too much
          memory = saturating_add(memory, memory / 16);
        } else {
          return;
        }
        if (memory >= kept && !raised) return;
        question_->limit(flops, memory);
        continue;
      }
      UnderChoice by_cost(*question_, assignment_, planning_);
      if (offer(by_cost.make(), assignment_)) return;
      if (!limits_memory()) {
        flops -= excess(last_use_.flops, options_.flops_limit);
        question_->limit(flops, memory);
        continue;
      }
      UnderChoice as_counted(*question_, assignment_, planning_, true);
      if (offer(as_counted.make(), assignment_)) return;
      if (raised) return;
      flops -= excess(last_use_.flops, options_.flops_limit);
      if (count_moves(as_counted.origins())) {
        question_->build();
      } else {
        kept = memory;
        memory -= excess(last_use_.peak, options_.memory_limit);
      }
      question_->limit(flops, memory);
    }
  }
  /// What a Program computes and holds, of what is limited.
  struct Use {
    Index flops = 0, peak = 0;
  };
  Use use_of(const Program& program) const {
    return {options_.flops_limit != max_int64 ? flops_of(program) : 0,
            limits_memory() ? peak_over_processes(program) : 0};
  }
  bool keeps_limits(const Use& use) const {
    return use.flops <= options_.flops_limit && use.peak <= options_.memory_limit;
  }
  static Index excess(Index value, Index limit) { return std::max<Index>(0, value - limit); }
  bool limits_memory() const { return options_.memory_limit != max_int64; }

  /// Returns whether an assignment is found. One within corrected limits says nothing of others.
  bool solve_question(bool corrected = false) {
    solving_.steps = std::max(std::min(left_, options_.steps), options_.steps / 8);
    choice_.solution = solve(question_->network(), solving_);
    left_ -= std::min(left_, choice_.solution.statistics.steps);
    if (!corrected) choice_.bound = add_costs(choice_.solution.bound, question_->fixed());
    assignment_ = choice_.solution.assignment;
    return choice_.solution.found();
  }
  /// Where nothing is limited, plans of whole operators may cost less.
  const Assignment& refined() {
    return assignment_ = RefinedChoice(*question_, std::move(assignment_)).make();
  }
  /// Takes a Program, if it keeps the limits and costs less than what is known; returns whether it
  /// keeps them.
  bool offer(Program made, const Assignment& assignment) {
    const Use use = use_of(made);
    choice_.least_peak = std::min(choice_.least_peak, use.peak);
    const Cost cost = question_->prices().of(made);
    const bool keeps = keeps_limits(use);
    if (keeps && (!choice_.found || cost < choice_.cost)) {
      choice_.found = true;
      choice_.cost = cost;
      for (std::size_t t = 0; t < choice_.chosen.size(); ++t)
        choice_.chosen[t] = question_->home(static_cast<int>(t), assignment).sharding;
      choice_.program = std::move(made);
    } else {
      last_ = std::move(made);
      last_use_ = use;
    }
    return keeps;
  }
  /// Counts the moves of operators at which the last Program exceeds the limit; returns whether one
  /// of them was not counted.
  bool count_moves(const std::vector<int>& origins) {
    bool more = false;
    const ProgramSpread spread = over_processes(last_);
    for (std::size_t i = 0; i < origins.size(); ++i)
      if (spread.entries[i].peak.most > options_.memory_limit)
        more = question_->count_moves(origins[i]) || more;
    return more;
  }

  PlanOptions planning_;
  ChooseOptions options_;
  SolveOptions solving_;
  std::uint64_t left_ = 0;  ///< steps, of all answers, before they become short
  std::shared_ptr<ChoiceQuestion> question_;
  Choice choice_;
  Assignment assignment_;
  Program last_;  ///< that did not keep the limits
  Use last_use_;
};

inline Choice chosen_anew(const Program& program, const PlanOptions& planning,
                          const ChooseOptions& options) {
  return ChoiceSearch(program, planning, options).make();
}

}  // namespace tessera::detail
