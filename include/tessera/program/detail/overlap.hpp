// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How moves are started early.
///
///     overlap(program, options)
///
/// Laws: those of program/overlap.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/pieces.hpp>
#include <tessera/program/detail/program_edit.hpp>
#include <tessera/program/overlap.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

/// One attempt at the pass, with some of the moves, or all.
class OverlapPass {
 public:
  /// `some`: which operators may start early, sorted; null: all.
  OverlapPass(const Program& program, const PlanOptions& options, const std::vector<int>* some)
      : program_(program),
        percent_(options.machine.hidden_percent),
        some_(some),
        free_(program.entries().size()),
        calls_(program.entries().size(), false),
        before_(program.entries().size() + 1),
        early_(program.entries().size(), false) {
    for (int i = 0; i < program.size(); ++i)
      for (const Step& step : program.entry(i).plan->steps) {
        calls_[at(i)] = calls_[at(i)] || step.communicates();
        if (!calls_[at(i)]) free_[at(i)] = saturating_add(free_[at(i)], step.cost);
      }
  }

  Attempt<Overlap> make() {
    for (int i = 0; i < program_.size(); ++i)
      if ((some_ == nullptr || std::binary_search(some_->begin(), some_->end(), i)) &&
          may_start_early(i))
        start_early(i);
    made_.peak_before = program_.peak_bytes();
    moves_.empty() ? void(made_.program = program_) : assemble();
    made_.peak_after = made_.program.peak_bytes();
    std::vector<MadeChange> changes;
    for (const Early& move : moves_) {
      const ProgramEntry& e = program_.entry(move.entry);
      changes.push_back({move.entry, static_cast<double>(move.hidden), {e.result}});
      for (const int t : e.also) changes.back().tensors.push_back(t);
    }
    return {std::move(made_), std::move(changes)};
  }

 private:
  struct Early {
    int entry, start, reader;  ///< in the program; reader: its size where there is none
    std::int64_t hidden;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  static std::int64_t travel(const Plan& plan) {
    std::int64_t cost = 0;
    for (const Step& step : plan.steps)
      if (step.communicates()) cost = saturating_add(cost, step.cost);
    return cost;
  }
  bool has(const ProgramEntry& e, int t) const {
    return e.operands.contains(t) || program_.writes(e, t);
  }

  /// Returns whether an operator does nothing but move tensors of its own, into memory of its own.
  bool may_start_early(int i) const {
    const ProgramEntry& e = program_.entry(i);
    const Plan& plan = *e.plan;
    if (e.operation == nullptr || plan.kind != OperatorKind::reshard || e.result < 0 ||
        plan.destination != Destination::fresh || !plan.halos.empty() || travel(plan) == 0)
      return false;
    // Workspace would have to be counted as long as the move is under way.
    const Step& step = plan.steps[0];
    const auto fresh = [&](int slot, int t) {
      return slot >= plan.operands && t >= 0 && program_.tensor(t).made == i;
    };
    bool own = plan.steps.size() == 1 && step.direct_send && step.direct_receive &&
               step.rounds == 1 && fresh(plan.result, e.result);
    for (int k = 0; k < e.also.size(); ++k) own = own && fresh(plan.also[k], e.also[k]);
    return own;
  }
  /// Returns the first operator after i that has a result of it, or writes what it reads.
  int reader_of(int i) const {
    const ProgramEntry& e = program_.entry(i);
    for (int j = i + 1; j < program_.size(); ++j) {
      const ProgramEntry& other = program_.entry(j);
      bool reads = has(other, e.result);
      for (const int t : e.also) reads = reads || has(other, t);
      for (const int t : e.operands) reads = reads || program_.writes(other, t);
      if (reads) return j;
    }
    return program_.size();
  }
  void start_early(int i) {
    for (const Early& other : moves_)
      if (other.reader == i) return;  // what it reads is under way until then
    const ProgramEntry& e = program_.entry(i);
    const std::int64_t travels = travel(*e.plan);
    const int reader = reader_of(i), first = earliest(reader, e);
    // Where it hides behind most; of these the place nearest to the reader.
    std::int64_t found = 0, most = 0;
    int start = reader;
    for (int j = reader - 1; j >= first && most < travels; --j) {
      if (j < i && writes_operand(j, e)) break;
      if (j == i || early_[at(j)]) continue;
      found = saturating_add(free_[at(j)], calls_[at(j)] ? 0 : found);
      if (min_of(found, travels) > most) most = min_of(found, travels), start = j;
    }
    const std::int64_t hidden = most / 100 * percent_;
    if (hidden <= 0) return;
    for (int j = start; most > 0; ++j) {
      if (j == i || early_[at(j)]) continue;
      const std::int64_t used = min_of(free_[at(j)], most);
      free_[at(j)] -= used;
      most -= used;
    }
    before_[at(start)].push_back(static_cast<int>(moves_.size()));
    early_[at(i)] = true;
    moves_.push_back({i, start, reader, hidden});
  }
  /// Returns the first operator before which other moves let the move e, with this reader, start:
  /// one that makes what it reads must have been waited for, and one that is waited for earlier
  /// must not start later, since that wait would be for both.
  int earliest(int reader, const ProgramEntry& e) const {
    int first = 0;
    for (const Early& other : moves_) {
      if (other.reader >= reader) continue;
      const ProgramEntry& made = program_.entry(other.entry);
      bool makes = e.operands.contains(made.result);
      for (const int t : made.also) makes = makes || e.operands.contains(t);
      first = std::max(first, makes ? other.reader + 1 : other.start);
    }
    return first;
  }
  bool writes_operand(int j, const ProgramEntry& e) const {
    for (const int t : e.operands)
      if (program_.writes(program_.entry(j), t)) return true;
    return false;
  }
  void assemble() {
    std::vector<ProgramEntry> list;
    std::vector<int> begins(at(program_.size() + 1));  // where an operator, or the end, is now
    std::vector<std::pair<int, int>> started;          // of the list, of moves_
    for (int i = 0; i <= program_.size(); ++i) {
      for (const int m : before_[at(i)]) {
        started.emplace_back(static_cast<int>(list.size()), m);
        list.push_back(program_.entry(moves_[at(m)].entry));
      }
      begins[at(i)] = static_cast<int>(list.size());
      if (i < program_.size() && !early_[at(i)]) list.push_back(program_.entry(i));
    }
    std::unordered_map<const Plan*, Index> payloads;
    for (const auto& [place, m] : started) {
      ProgramEntry& e = list[at(place)];
      const Early& move = moves_[at(m)];
      e.meanwhile = begins[at(move.reader)] - place - 1;
      e.hidden = move.hidden;
      const auto [known, fresh] = payloads.try_emplace(e.plan.get());
      if (fresh) known->second = e.plan->payload_bytes();
      made_.moves.push_back({e.layer, e.meanwhile, known->second, e.hidden});
    }
    made_.program = program_;
    made_.program.relist(std::move(list));
  }

  const Program& program_;
  std::int64_t percent_;
  const std::vector<int>* some_;
  std::vector<std::int64_t>
      free_;                 ///< each operator's work before its calls that hides nothing yet
  std::vector<bool> calls_;  ///< whether it makes calls, for which it waits
  std::vector<std::vector<int>> before_;  ///< moves that start before each operator
  std::vector<bool> early_;
  std::vector<Early> moves_;
  Overlap made_;
};
}  // namespace detail

TESSERA_FUNCTION Overlap overlap(const Program& program, const PlanOptions& options, Index limit) {
  if (!program.parts().empty())
    return detail::in_pieces<Overlap>(
        program, options, limit,
        [&](const Program& one, const PlanOptions& there) { return overlap(one, there, limit); },
        [](Overlap& all, const Overlap& made, const detail::ProgramPieces&) {
          all.moves.insert(all.moves.end(), made.moves.begin(), made.moves.end());
          all.refused += made.refused;
        });
  if (options.machine.hidden_percent <= 0) {
    Overlap none;
    none.program = program;
    none.peak_before = none.peak_after = program.peak_bytes();
    return none;
  }
  return detail::within_limit(program, limit, [&](const std::vector<int>* some) {
    return detail::OverlapPass(program, options, some).make();
  });
}

TESSERA_FUNCTION std::string explain(const Overlap& early) {
  detail::TextTable table;
  std::int64_t hidden = 0;
  for (const EarlyMove& move : early.moves) {
    table.row({early.program.layer_path(move.layer), detail::bytes_text(move.payload),
               "under way during " + detail::counted(move.operators, "operator"),
               "hides " + detail::time_text(move.hidden)});
    hidden = detail::saturating_add(hidden, move.hidden);
  }
  const std::string done = early.moves.empty()
                               ? "no move is started early"
                               : detail::counted(static_cast<int>(early.moves.size()), "move") +
                                     " started early, " + detail::time_text(hidden) + " hidden";
  return "overlap: " + done + "; peak memory " + detail::bytes_text(early.peak_before) +
         " before, " + detail::bytes_text(early.peak_after) + " after" +
         (early.refused > 0
              ? "; " + std::to_string(early.refused) + " more would exceed the memory limit"
              : std::string()) +
         "\n" + table.text("  ");
}

}  // namespace tessera
