// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the calls of all processes are matched.
///
///     detail::fault_of(plan, calls)
///
/// Laws: those of program/simulation.hpp.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/program/detail/timeline.hpp>
#include <tessera/program/on_process.hpp>
#include <tessera/program/simulation.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {

namespace detail {
/// The calls of one round of a step, one on each process.
class Meeting {
 public:
  Meeting(const MeshShape& mesh, const std::vector<Call>& calls) : mesh_(mesh), calls_(calls) {}

  /// Returns the first mismatch, or an empty string.
  std::string fault() const {
    for (int p = 0; p < mesh_.processes(); ++p) {
      const Call& mine = of(p);
      const Coordinates at = mesh_.coordinates(p);
      std::string text;
      const auto compare = [&](int member, Index expected, bool of_sender) {
        if (text.empty()) text = misfit(p, at, member, expected, of_sender);
      };
      switch (mine.kind) {
        case Collective::all_reduce:
          for (int q = 0; q < mine.members; ++q) compare(q, mine.receive.front().count, false);
          break;
        case Collective::reduce_scatter:
          for (const Piece& to : mine.send) compare(to.peer, to.count, true);
          break;
        case Collective::all_gather:
        case Collective::all_to_all:
          for (const Piece& from : mine.receive) compare(from.peer, from.count, false);
          break;
        case Collective::broadcast:
          for (const Piece& from : mine.receive) compare(from.peer, from.count, false);
          for (const Piece& to : mine.send)
            for (int q = 0; q < mine.members; ++q)
              if (q != mine.own) compare(q, to.count, true);
          break;
        case Collective::collective_permute:
        case Collective::exchange:  // also, nothing may be sent that nobody expects
          for (const Piece& from : mine.receive) compare(from.peer, from.count, false);
          for (const Piece& to : mine.send) compare(to.peer, to.count, true);
          break;
      }
      if (!text.empty()) return text;
    }
    return "";
  }

 private:
  const Call& of(int p) const { return calls_[static_cast<std::size_t>(p)]; }
  static Index count_for(const std::vector<Piece>& pieces, int member) {
    const auto at = static_cast<std::size_t>(member);
    if (at < pieces.size() && pieces[at].peer == member) return pieces[at].count;
    for (const Piece& piece : pieces)
      if (piece.peer == member) return piece.count;
    return 0;
  }
  /// Compares what p expects from a member of its group (or, `of_sender`, sends to it) with that
  /// member's own call.
  std::string misfit(int p, const Coordinates& at, int member, Index expected,
                     bool of_sender) const {
    const Call& mine = of(p);
    const int q = mesh_.process(mesh_.member(mine.group, at, member));
    const Call& theirs = of(q);
    if (theirs.kind != mine.kind || !(theirs.group == mine.group) ||
        theirs.reduction != mine.reduction || theirs.type != mine.type || theirs.even != mine.even)
      return "processes " + std::to_string(p) + " and " + std::to_string(q) +
             " make different calls";
    // An all-gather and a broadcast send the same to all, and a reduce-scatter receives one piece
    // combined from all.
    const bool one = mine.kind == Collective::all_gather || mine.kind == Collective::all_reduce ||
                     mine.kind == Collective::reduce_scatter;
    const std::vector<Piece>& pieces = of_sender ? theirs.receive : theirs.send;
    Index made = 0;
    if (mine.kind == Collective::broadcast)
      made = pieces.empty() ? 0 : pieces.front().count;
    else
      made = one ? pieces.front().count : count_for(pieces, mine.own);
    if (made == expected) return "";
    return "process " + std::to_string(p) + (of_sender ? " sends " : " expects ") +
           std::to_string(expected) + " elements " + (of_sender ? "to" : "of") + " process " +
           std::to_string(q) + ", which " + (of_sender ? "expects " : "sends ") +
           std::to_string(made);
  }

  MeshShape mesh_;
  const std::vector<Call>& calls_;
};

/// Returns the first mismatch between the processes' calls for a plan, or an empty string; adds the
/// number of their calls to `calls`. A plan of more elements than 64 bits count has no calls.
inline std::string fault_of(const Plan& plan, Index& calls) {
  if (plan.communications() == 0 || saturated(plan.peak_bytes)) return "";
  Plan p = plan;
  std::vector<std::vector<Call>> meetings;  // the calls in their order, on each process
  std::vector<std::string> steps;
  for (p.process = 0; p.process < plan.mesh.processes(); ++p.process) {
    Instructions list = instructions_of(p);
    calls += static_cast<Index>(list.calls.size());
    if (p.process == 0) {
      meetings.resize(list.calls.size());
      for (const Instruction& i : list.all)
        if (i.action == Action::call || i.action == Action::start)
          steps.push_back("step " + std::to_string(i.step + 1) + ": ");
    }
    if (list.calls.size() != meetings.size()) return "not every process makes every call";
    for (std::size_t i = 0; i < meetings.size(); ++i)
      meetings[i].push_back(std::move(list.calls[i]));
  }
  for (std::size_t i = 0; i < meetings.size(); ++i)
    if (const std::string text = detail::Meeting(plan.mesh, meetings[i]).fault(); !text.empty())
      return steps[i] + text;
  return "";
}
}  // namespace detail

TESSERA_FUNCTION Simulation simulate(const Program& program) {
  Simulation s;
  s.processes = program.mesh.processes();
  std::unordered_set<const Plan*> known;
  for (int i = 0; i < program.size() && s.fault.empty(); ++i) {
    const Plan& plan = *program.entry(i).plan;
    if (!known.insert(&plan).second) continue;
    if (const std::string text = detail::fault_of(plan, s.calls); !text.empty())
      s.fault = detail::entry_name(program, i) + ", " + text;
  }
  const ProgramSpread spread = over_processes(program);
  for (const TotalSpread& e : spread.entries) s.entries.push_back({e.payload, e.flops, e.peak});
  s.payload = spread.payload;
  s.messages = spread.messages;
  s.flops = spread.flops;
  s.peak = spread.peak;
  return s;
}

TESSERA_FUNCTION std::string explain_all(const Program& program) {
  const Simulation s = simulate(program);
  std::string text = "program on " + to_string(program.mesh, program.names()) + ", all " +
                     std::to_string(s.processes) + " processes: " + std::to_string(program.size()) +
                     " operators\n";
  detail::TextTable table;
  table.row({"operator", "payload", "work", "memory"});
  for (int i = 0; i < program.size(); ++i) {
    const EntrySpread& e = s.entries[static_cast<std::size_t>(i)];
    table.row({detail::entry_name(program, i), to_string(e.payload, detail::bytes_text),
               to_string(e.flops, detail::flops_text), to_string(e.peak, detail::bytes_text)});
  }
  table.row({"in all", to_string(s.payload, detail::bytes_text),
             to_string(s.flops, detail::flops_text), to_string(s.peak, detail::bytes_text)});
  return text + table.text("  ") + "  together: payload " + detail::bytes_text(s.payload.total) +
         ", " + detail::flops_text(s.flops.total) + "; " + std::to_string(s.calls) + " calls, " +
         (s.fault.empty() ? "which fit together" : "which do not fit: " + s.fault) + "\n";
}

}  // namespace tessera
