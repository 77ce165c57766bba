// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How moves are found and shared.
///
///     share(program, options)
///
/// Laws: those of program/share.hpp.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/pieces.hpp>
#include <tessera/program/detail/program_edit.hpp>
#include <tessera/program/share.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

/// Follows operand k of a plan through the moves that it alone goes through; returns the slot where
/// it arrives, which is the operand's own where it is not moved.
inline int arrival_of(const Plan& plan, int k) {
  int slot = k;
  for (bool goes = true; goes;) {
    goes = false;
    int readers = 0;
    const Step* reader = nullptr;
    for (const Step& step : plan.steps)
      if (step.in.contains(static_cast<std::int8_t>(slot))) {
        ++readers;
        reader = &step;
      }
    const bool result = slot == plan.result || plan.also.contains(static_cast<std::int8_t>(slot));
    if (readers != 1 || result) return slot;
    const bool moves = reader->kind == StepKind::slice ||
                       (reader->kind == StepKind::communicate && !reader->loop && !reader->merges);
    if (!moves || reader->in.size() != 1 || !reader->also.empty() || reader->region >= 0 ||
        !plan.slots[reader->out].place.sharded())
      return slot;
    slot = reader->out;
    goes = true;
  }
  return slot;
}

/// One attempt at the pass, with the moves of some groups, or of all.
class SharePass : ProgramEdit {
 public:
  SharePass(const Program& program, const PlanOptions& options) : ProgramEdit(program, options) {
    for (const ProgramEntry& e : entries_) descs_.push_back(operands_of(e));
  }

  Attempt<Sharing> make(const std::vector<int>* some) {
    find();
    std::vector<bool> chosen(groups_.size(), some == nullptr);
    for (std::size_t i = 0; some != nullptr && i < some->size(); ++i)
      chosen[static_cast<std::size_t>((*some)[i])] = true;
    made_.peak_before = program_.peak_bytes();
    std::vector<MadeChange> changes;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].uses.size() < 2 || !chosen[g] || !share(groups_[g])) continue;
      const SharedMove& move = made_.moves.back();
      changes.push_back({static_cast<int>(g), static_cast<double>(move.payload), {move.moved}});
    }
    made_.program = finished(!changes.empty());
    made_.peak_after = made_.program.peak_bytes();
    return {std::move(made_), std::move(changes)};
  }

 private:
  struct Use {
    std::size_t entry;
    int operand;
  };
  /// Operands with the same values that go to one sharding.
  struct Group {
    Sharding to;
    std::vector<Use> uses;
  };
  struct Again {
    std::size_t entry;
    TensorDescs descs;
    std::shared_ptr<const Plan> plan{};  ///< null: nothing is left to do
  };

  /// Groups the operands that go to one sharding, while they hold the same values.
  void find() {
    version_.resize(program_.tensors().size());
    std::unordered_map<std::uint64_t, std::size_t> known;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const ProgramEntry& e = entries_[i];
      const bool may = e.operation != nullptr && e.plan->halos.empty();
      for (int k = 0; may && k < e.operands.size(); ++k) {
        const int slot = arrival_of(*e.plan, k);
        if (slot == k) continue;
        Digest digest;
        digest.add(static_cast<std::uint64_t>(e.operands[k]));
        digest.add(static_cast<std::uint64_t>(version(e.operands[k])));
        add_to(digest, e.plan->slots[k].desc);  // it may be read under two
        add_to(digest, e.plan->slots[slot].desc.sharding);
        const auto [at, fresh] = known.try_emplace(digest.value(), groups_.size());
        if (fresh) groups_.push_back({e.plan->slots[slot].desc.sharding, {}});
        groups_[at->second].uses.push_back({i, k});
      }
      for_each_changed(e, static_cast<int>(i), [&](int t) { ++version(t); });
    }
  }
  /// Returns how often a tensor has been written since it was made.
  int& version(int t) { return version_[static_cast<std::size_t>(t)]; }
  /// Returns whether the operator's result is a tensor of its own that is never written again, so
  /// that others may read it in place of theirs.
  bool makes_once(std::size_t i) {
    const int t = entries_[i].result;
    return program_.tensor(t).made == static_cast<int>(i) && version(t) == 0 &&
           entries_[i].plan->destination == Destination::fresh;
  }
  /// Returns whether the operator does nothing but bring its operand somewhere.
  static bool only_moves(const ProgramEntry& e) {
    return e.plan->kind == OperatorKind::reshard && e.operands.size() == 1 &&
           arrival_of(*e.plan, 0) == e.plan->result;
  }
  /// Returns whether the operator may be left out, and another tensor be read for its result.
  bool may_go(std::size_t i) {
    return makes_once(i) && program_.tensor(entries_[i].result).last < program_.size();
  }
  /// Returns the uses that still go where the group does: an operator that has been planned again,
  /// for another of its operands, may bring this one elsewhere.
  std::vector<Use> going(const Group& group) const {
    std::vector<Use> uses;
    for (const Use& use : group.uses) {
      const Plan& plan = *entries_[use.entry].plan;
      if (plan.slots[arrival_of(plan, use.operand)].desc.sharding == group.to) uses.push_back(use);
    }
    return uses;
  }
  /// Shares one move, if that pays.
  bool share(const Group& group) {
    const std::vector<Use> all = going(group);
    if (all.size() < 2) return false;
    const std::size_t first = all[0].entry;
    const ProgramEntry& leader = entries_[first];
    const int tensor = leader.operands[all[0].operand];
    TensorDesc to = descs_[first][all[0].operand];
    const TensorDesc from = to;
    to.sharding = group.to;
    // The first operator may be the move itself; others that are have to give up their results.
    const bool leads = only_moves(leader) && makes_once(first);
    std::vector<Use> uses;
    for (const Use& use : all)
      if ((leads && use.entry == first) || !only_moves(entries_[use.entry]) || may_go(use.entry))
        uses.push_back(use);
    SharedMove move{tensor, -1, static_cast<int>(uses.size())};
    move.layer = leader.layer;
    const auto count = [&](const std::shared_ptr<const Plan>& plan, int sign) {
      move.payload += sign * payload(plan);
      move.cost += sign * plan->cost;
    };
    const auto operation = std::make_shared<const Operation>(ops::Reshard{to.sharding});
    const auto moved =
        leads ? nullptr : planned(*operation, {from}, Destination::fresh, leader.contract);
    if (!leads && moved == nullptr) return false;
    if (!leads) count(moved, -1);
    std::vector<Again> again;
    for (const Use& use : uses) {
      if (leads && use.entry == first) continue;
      if (again.empty() || again.back().entry != use.entry) {
        count(entries_[use.entry].plan, 1);
        again.push_back({use.entry, descs_[use.entry]});
      }
      again.back().descs[use.operand] = to;
    }
    for (Again& one : again) {
      const ProgramEntry& e = entries_[one.entry];
      if (only_moves(e)) continue;
      one.plan = planned_on(e, one.descs);
      if (one.plan == nullptr) return false;
      count(one.plan, -1);
      move.rounds = move.rounds || !sums_alike(*one.plan, *e.plan);
    }
    if (uses.size() < 2 || move.payload <= 0 || move.cost < 0) return false;
    move.moved = leads ? leader.result : add(to, first);
    if (!leads) before_[first].push_back(reshard(operation, moved, leader, tensor, move.moved));
    for (const Use& use : uses)
      if (!leads || use.entry != first) entries_[use.entry].operands[use.operand] = move.moved;
    for (const Again& one : again) {
      descs_[one.entry] = one.descs;
      dropped_[one.entry] = one.plan == nullptr;
      if (one.plan == nullptr)
        replace(one.entry, move.moved);
      else
        entries_[one.entry].plan = one.plan;
    }
    made_.moves.push_back(move);
    return true;
  }
  /// Lets the operators after a dropped one read `by` in place of its result.
  void replace(std::size_t dropped, int by) {
    const int gone = entries_[dropped].result;
    for (std::size_t i = dropped + 1; i < entries_.size(); ++i)
      for (int& t : entries_[i].operands)
        if (t == gone) t = by;
  }

  Sharing made_;
  std::vector<TensorDescs> descs_;  ///< the operands of each entry, as they are now
  std::vector<int> version_;        ///< the version of each tensor of the program
  std::vector<Group> groups_;
};
}  // namespace detail

TESSERA_FUNCTION Sharing share(const Program& program, const PlanOptions& options, Index limit) {
  if (!program.parts().empty())
    return detail::in_pieces<Sharing>(
        program, options, limit,
        [&](const Program& one, const PlanOptions& there) { return share(one, there, limit); },
        [](Sharing& all, const Sharing& made, const detail::ProgramPieces& pieces) {
          for (SharedMove move : made.moves) {
            move.tensor = pieces.number(move.tensor);
            move.moved = pieces.number(move.moved);
            all.moves.push_back(move);
          }
          all.refused += made.refused;
        });
  const Sharing shared = detail::within_limit(program, limit, [&](const std::vector<int>* some) {
    return detail::SharePass(program, options).make(some);
  });
  return detail::reading_copies(shared, options, limit);
}

TESSERA_FUNCTION std::string explain(const Sharing& shared) {
  detail::TextTable table;
  int copies = 0;
  Index payload = 0;
  std::int64_t cost = 0;
  for (const SharedMove& move : shared.moves) {
    copies += move.users == 1 ? 1 : 0;
    const auto desc = [&](int t) { return shared.program.tensor(t).desc; };
    const auto names_of = [&](int t) {
      return shared.program.names_on(shared.program.tensor(t).part);
    };
    table.row({shared.program.layer_path(move.layer),
               to_string(desc(move.tensor), names_of(move.tensor)), "->",
               to_string(desc(move.moved).sharding, names_of(move.moved)),
               move.users == 1 ? std::string("read in its place")
                               : "for " + std::to_string(move.users) + " operators",
               "saves " + detail::bytes_text(move.payload), detail::time_text(move.cost),
               move.rounds ? "to rounding" : "the same bits"});
    payload = detail::saturating_add(payload, move.payload);
    cost = detail::saturating_add(cost, move.cost);
  }
  const std::string done =
      shared.moves.empty()
          ? "nothing is moved for several operators"
          : detail::counted(static_cast<int>(shared.moves.size()) - copies, "move") +
                " for several operators, " + std::to_string(copies) + " read from a copy, " +
                detail::bytes_text(payload) + " and " + detail::time_text(cost) + " saved";
  return "share: " + done + "; peak memory " + detail::bytes_text(shared.peak_before) +
         " before, " + detail::bytes_text(shared.peak_after) + " after" +
         (shared.refused > 0
              ? "; " + std::to_string(shared.refused) + " more would exceed the memory limit"
              : std::string()) +
         "\n" + table.text("  ");
}

}  // namespace tessera
