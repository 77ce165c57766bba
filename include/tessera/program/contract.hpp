// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Contracts on a whole Program, for tests: which collectives it may use and over which axes, how
/// much payload, memory and duplicated work.
///
///     const auto contract = only({over<Grid, data, model>(all_gather),
///                                 over<Grid, model>(reduce_scatter)}) &
///                           payload_at_most(64 << 20) & peak_at_most(1 << 30);
///     check(program, contract).kept;      // or, with an exception that names the operator:
///     require(program, contract);
///
/// Laws: a contract is kept exactly when each of its clauses is, on every process; the verdict
/// names the first operator, in the program's order, by which the first broken clause is broken.
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/program/timeline.hpp>

namespace tessera {

/// Some communication: one kind of collective, or any; over some of these axes.
struct Over {
  AxisSet axes = AxisSet::from_bits((1u << max_axes) - 1);
  Collective collective = Collective::all_gather;
  bool any_collective = true;

  constexpr Over() = default;
  constexpr Over(Collective kind) : collective(kind), any_collective(false) {}
  constexpr Over(AxisSet over) : axes(over) {}
  constexpr Over(Collective kind, AxisSet over)
      : axes(over), collective(kind), any_collective(false) {}

  constexpr bool speaks_of(const Step& s) const {
    return s.communicates() && (any_collective || s.collective == collective);
  }
  /// The step's group spans no other axes than these.
  constexpr bool holds(const Step& s) const { return speaks_of(s) && (s.group - axes).empty(); }
  /// The step's group spans one of these axes.
  constexpr bool touches(const Step& s) const { return speaks_of(s) && !(s.group & axes).empty(); }
};

namespace detail {
/// Returns the axes A... of mesh M, as a value.
template <class M, class... A> constexpr AxisSet axes_of() {
  static_assert(((M::template index<A> >= 0) && ...),
                "[tessera] the Mesh has no such axis; name axes of the program's mesh");
  return {M::template index<A>...};
}
}  // namespace detail

constexpr Over over(Collective kind, AxisSet axes) { return {kind, axes}; }
template <class M, class... A> constexpr Over over(Collective kind) {
  return {kind, detail::axes_of<M, A...>()};
}
/// Any collective over these axes.
template <class M, class... A> constexpr Over over() { return detail::axes_of<M, A...>(); }

/// One demand. Made by the functions below.
struct ProgramClause {
  enum class Kind { only, no, payload, messages, peak, duplicated, cost };
  Kind kind = Kind::only;
  std::vector<Over> what;  ///< of only, no, payload and messages
  std::int64_t limit = 0;  ///< of the others
};

class ProgramContract {
 public:
  ProgramContract() = default;
  ProgramContract(ProgramClause clause) { clauses_.push_back(std::move(clause)); }
  const std::vector<ProgramClause>& clauses() const { return clauses_; }
  friend ProgramContract operator&(ProgramContract a, const ProgramContract& b) {
    a.clauses_.insert(a.clauses_.end(), b.clauses_.begin(), b.clauses_.end());
    return a;
  }

 private:
  std::vector<ProgramClause> clauses_;
};

/// No step communicates except as listed: each is of a listed kind and spans no axes but the ones
/// listed with that kind. only({}): no communication.
inline ProgramContract only(std::initializer_list<Over> what) {
  return ProgramClause{ProgramClause::Kind::only, what, 0};
}
inline ProgramContract only(Over what) { return only({what}); }
/// No step of this kind spans any of these axes.
inline ProgramContract no(Over what) { return ProgramClause{ProgramClause::Kind::no, {what}, 0}; }
/// At most this many bytes of payload on any process, counting the steps that span one of the axes.
inline ProgramContract payload_at_most(Index bytes, Over what = {}) {
  return ProgramClause{ProgramClause::Kind::payload, {what}, bytes};
}
inline ProgramContract messages_at_most(Index count, Over what = {}) {
  return ProgramClause{ProgramClause::Kind::messages, {what}, count};
}
/// At most this many bytes of tensors and workspace at once on any process.
inline ProgramContract peak_at_most(Index bytes) {
  return ProgramClause{ProgramClause::Kind::peak, {}, bytes};
}
/// At most this many duplicated flops on any process: flops that other processes do as well.
inline ProgramContract duplicated_at_most(Index flops) {
  return ProgramClause{ProgramClause::Kind::duplicated, {}, flops};
}
/// At most this many picoseconds by the machine model.
inline ProgramContract model_time_at_most(std::int64_t picoseconds) {
  return ProgramClause{ProgramClause::Kind::cost, {}, picoseconds};
}

/// Whether a contract is kept; if not, its first broken clause and the first operator that breaks
/// it.
struct ContractVerdict {
  bool kept = true;
  int clause = -1;  ///< the first that is broken
  int entry = -1;   ///< the operator
  int step = -1;    ///< its step, where one step is the cause
  std::string text{};
  explicit operator bool() const { return kept; }
};

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
      return over_processes(
          program_, [&](const Step& s) { return clause_.what[0].touches(s) ? s.*number : 0; });
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
        return first_step([&](const Step& s) {
          for (const Over& allowed : clause_.what)
            if (allowed.holds(s)) return false;
          return s.communicates();
        });
      case Kind::no:
        return first_step([&](const Step& s) { return clause_.what[0].touches(s); });
      case Kind::payload:
        return first_sum("payload" + of(), bytes_text,
                         [this](const Plan& plan) { return touched(plan, &Step::payload); });
      case Kind::messages:
        return first_sum(
            "messages" + of(), [](Index n) { return std::to_string(n); },
            [this](const Plan& plan) { return touched(plan, &Step::messages); });
      case Kind::peak:
        return first_peak();
      case Kind::duplicated:
        return first_sum("duplicated work", flops_text,
                         [](const Plan& plan) { return Program::duplicated_flops(plan); });
      case Kind::cost:
        return first_sum("model time", time_text, [](const Plan& plan) { return plan.cost; });
    }
    return {};
  }

  std::string of() const {
    const Over& what = clause_.what[0];
    const std::string text = to_text(what, names_);
    return text == "communication" ? "" : " of " + text;
  }
  Index touched(const Plan& plan, Index Step::*number) const {
    Index sum = 0;
    for (const Step& s : plan.steps)
      if (clause_.what[0].touches(s)) sum = saturating_add(sum, s.*number);
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
      const Plan& plan = *program_.entry(i).plan;
      for (int k = 0; k < plan.steps.size(); ++k)
        if (breaks(plan.steps[k])) {
          const Step& s = plan.steps[k];
          return {false, -1, i, k,
                  place(i) + " communicates by " + step_name(s, names_) + ", at most " +
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
      sum = saturating_add(sum, amount(*program_.entry(i).plan));
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
      if (bytes > clause_.limit)
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

/// Returns whether `program` keeps `contract`; if not, which clause is broken and by what.
inline ContractVerdict check(const Program& program, const ProgramContract& contract) {
  for (std::size_t i = 0; i < contract.clauses().size(); ++i) {
    ContractVerdict verdict = detail::ClauseCheck(program, contract.clauses()[i]).verdict();
    verdict.clause = static_cast<int>(i);
    if (!verdict.kept) return verdict;
  }
  return {};
}

/// Throws ContractError, with the operator and both facts, unless `program` keeps `contract`.
inline void require(const Program& program, const ProgramContract& contract) {
  if (const ContractVerdict verdict = check(program, contract); !verdict)
    throw ContractError(verdict.text);
}
}  // namespace tessera
