// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a contract on a Program is judged.
///
///     check(program, contract)
///
/// Laws: those of program/contract.hpp.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/contract.hpp>
#include <tessera/program/detail/explain.hpp>
#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/detail/timeline.hpp>
#include <tessera/program/summary.hpp>

namespace tessera {

namespace detail {
inline std::string to_text(const Over& what, const AxisNames& names) {
  std::string text = what.any_collective ? "communication" : std::string(name_of(what.collective));
  AxisSet mesh;
  for (int a = 0; a < names.size(); ++a) mesh.insert(a);
  const bool all = (mesh - what.axes).empty();
  return all ? text : text + " over " + to_string(what.axes & mesh, names);
}

/// Checks one clause, going through the operators in order.
class ClauseCheck {
 public:
  ClauseCheck(const Program& program, const ProgramClause& clause)
      : program_(program), clause_(clause), names_(program.names()) {}

  ContractVerdict verdict() const {
    using Kind = ProgramClause::Kind;
    if (clause_.kind == Kind::only || clause_.kind == Kind::no || clause_.kind == Kind::cost)
      return own_verdict();  // alike on all processes
    const Spread spread = over_all();
    if (spread.most <= clause_.limit) return {};
    if (spread.process == program_.process) return own_verdict();
    const Program there = on_process(program_, spread.process);
    return ClauseCheck(there, clause_).own_verdict();
  }

 private:
  /// The limited number, over all processes.
  Spread over_all() const {
    const auto touched_by = [&](Index Step::*number) {
      return over_processes(program_, [&](const Step& s) {
        return clause_.what[0].touches(s, s.group) ? s.*number : 0;
      });
    };
    if (clause_.kind == ProgramClause::Kind::payload) return touched_by(&Step::payload);
    if (clause_.kind == ProgramClause::Kind::messages) return touched_by(&Step::messages);
    const ProgramSpread all = over_processes(program_);
    return clause_.kind == ProgramClause::Kind::peak ? all.peak : all.duplicated;
  }
  /// The verdict on the program's own process.
  ContractVerdict own_verdict() const {
    using Kind = ProgramClause::Kind;
    switch (clause_.kind) {
      case Kind::only:
        return first_step([&](const Step& s, AxisSet axes) {
          for (const Over& allowed : clause_.what)
            if (allowed.holds(s, axes)) return false;
          return s.communicates();
        });
      case Kind::no:
        return first_step(
            [&](const Step& s, AxisSet axes) { return clause_.what[0].touches(s, axes); });
      case Kind::payload:
        return first_sum("payload" + of(), bytes_text,
                         [this](const ProgramEntry& e) { return touched(e, &Step::payload); });
      case Kind::messages:
        return first_sum(
            "messages" + of(), [](Index n) { return std::to_string(n); },
            [this](const ProgramEntry& e) { return touched(e, &Step::messages); });
      case Kind::peak:
        return first_peak();
      case Kind::duplicated:
        return first_sum("duplicated work", flops_text,
                         [](const ProgramEntry& e) { return Program::duplicated_flops(*e.plan); });
      case Kind::cost:
        return first_sum("model time", time_text,
                         [](const ProgramEntry& e) { return e.plan->cost; });
    }
    return {};
  }

  std::string of() const {
    const Over& what = clause_.what[0];
    const std::string text = to_text(what, names_);
    return text == "communication" ? "" : " of " + text;
  }
  Index touched(const ProgramEntry& e, Index Step::*number) const {
    Index sum = 0;
    for (const Step& s : e.plan->steps)
      if (clause_.what[0].touches(s, program_.axes_on(e.part, s.group)))
        sum = saturating_add(sum, s.*number);
    return sum;
  }
  std::string place(int i) const {
    const ProgramEntry& e = program_.entry(i);
    const std::string layer = program_.layer_path(e.layer);
    return entry_name(program_, i) + (layer.empty() ? "" : " in layer " + layer) +
           (e.where.known() ? " at " + to_string(e.where) : "");
  }
  template <class Breaks> ContractVerdict first_step(const Breaks& breaks) const {
    for (int i = 0; i < program_.size(); ++i) {
      const int part = program_.entry(i).part;
      const Plan& plan = *program_.entry(i).plan;
      for (int k = 0; k < plan.steps.size(); ++k)
        if (breaks(plan.steps[k], program_.axes_on(part, plan.steps[k].group))) {
          const Step& s = plan.steps[k];
          return {false, -1, i, k,
                  place(i) + " communicates by " + step_name(s, program_.names_on(part)) +
                      ", at most " +
                      most_text(over_processes(plan).steps[static_cast<std::size_t>(k)].payload,
                                bytes_text) +
                      " on one process, and the contract " + demand() +
                      "; change the specs so that it is not needed, or put it into the contract"};
        }
    }
    return {};
  }
  std::string demand() const {
    std::string list;
    for (const Over& what : clause_.what)
      list += (list.empty() ? "" : ", ") + to_text(what, names_);
    if (clause_.kind == ProgramClause::Kind::no) return "refuses " + list;
    return list.empty() ? "accepts no communication" : "accepts only " + list;
  }
  template <class Text, class Amount>
  ContractVerdict first_sum(const std::string& what, const Text& text, const Amount& amount) const {
    Index sum = 0;
    int first = -1;
    Index at_first = 0;
    for (int i = 0; i < program_.size(); ++i) {
      if (!program_.takes_part(program_.entry(i))) continue;
      sum = saturating_add(sum, amount(program_.entry(i)));
      if (sum > clause_.limit && first < 0) {
        first = i;
        at_first = sum;
      }
    }
    if (first < 0) return {};
    return {false, -1, first, -1,
            place(first) + " brings the " + what + " of process " +
                std::to_string(program_.process) + ", which has most, to " + text(at_first) + " (" +
                text(sum) + " in all), and the contract accepts " + text(clause_.limit) +
                "; change the specs, or raise the limit"};
  }
  ContractVerdict first_peak() const {
    for (int i = 0; i < program_.size(); ++i) {
      const ProgramEntry& e = program_.entry(i);
      const Index bytes = saturating_add(e.held_before, e.plan->peak_bytes);
      if (bytes > clause_.limit && program_.takes_part(e))
        return {false, -1, i, -1,
                place(i) + " has process " + std::to_string(program_.process) +
                    ", which has most, hold " + bytes_text(bytes) + " (" +
                    bytes_text(e.held_before) + " of tensors, " + bytes_text(e.plan->peak_bytes) +
                    " of its own; the program's peak is " + bytes_text(program_.peak_bytes()) +
                    "), and the contract accepts " + bytes_text(clause_.limit) +
                    "; free tensors earlier, split them over more axes, or raise the limit"};
    }
    return {};
  }

  const Program& program_;
  const ProgramClause& clause_;
  AxisNames names_;
};
}  // namespace detail

TESSERA_FUNCTION ContractVerdict check(const Program& program, const ProgramContract& contract) {
  for (std::size_t i = 0; i < contract.clauses().size(); ++i) {
    ContractVerdict verdict = detail::ClauseCheck(program, contract.clauses()[i]).verdict();
    verdict.clause = static_cast<int>(i);
    if (!verdict.kept) return verdict;
  }
  return {};
}

TESSERA_FUNCTION void require(const Program& program, const ProgramContract& contract) {
  if (const ContractVerdict verdict = check(program, contract); !verdict)
    throw ContractError(verdict.text);
}

}  // namespace tessera
