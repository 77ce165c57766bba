// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Program under change: operators that are added, dropped and planned again, and tensors that
/// are added.
///
///     class SharePass : ProgramEdit { … return finished(); };
///
/// Laws: nothing that is added lies outside the layer of an operator that was there.
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/base/memory.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/program/detail/selection.hpp>
#include <tessera/program/program.hpp>

namespace tessera::detail {

/// Returns whether two plans of one operator sum the same elements in the same order: they compute
/// on blocks of one layout, and reduce over the same groups.
inline bool sums_alike(const Plan& a, const Plan& b) {
  const auto next = [](const Plan& plan, int& i) -> const Step* {
    for (; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      const bool moves = step.kind == StepKind::slice ||
                         (step.kind == StepKind::communicate && !reduces(step.collective));
      if (!moves || step.loop || step.merges) return &plan.steps[i++];
    }
    return nullptr;
  };
  for (int i = 0, j = 0;;) {
    const Step* const x = next(a, i);
    const Step* const y = next(b, j);
    if (x == nullptr || y == nullptr) return x == y;
    if (x->kind != y->kind || x->collective != y->collective || !(x->group == y->group) ||
        !(x->loop == y->loop) || x->merges != y->merges || x->in.size() != y->in.size())
      return false;
    for (int k = 0; k <= x->in.size(); ++k) {
      const bool result = k == x->in.size();
      const Slot& of = a.slots[result ? x->out : x->in[k]];
      const Slot& with = b.slots[result ? y->out : y->in[k]];
      if (of.bytes != with.bytes || of.panel_dim != with.panel_dim || of.panels != with.panels)
        return false;
      const bool in_parts = of.own_part >= 0;
      if (in_parts != (with.own_part >= 0) ||
          (in_parts && !(a.slots[of.own_part].desc == b.slots[with.own_part].desc)))
        return false;
    }
  }
}

class ProgramEdit {
 protected:
  ProgramEdit(const Program& program, const PlanOptions& options)
      : program_(program),
        options_(options),
        entries_(program.entries()),
        before_(entries_.size()),
        dropped_(entries_.size()) {
    for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
      if (program.tensor(t).adopted) adopted_.push_back(t);
  }

  /// Calls visit(t) for each tensor that was there before operator i, number of `e`, and whose
  /// values it may change.
  template <class Visit> void for_each_changed(const ProgramEntry& e, int i, const Visit& visit) {
    const auto of = [&](int written) {
      if (written < 0 || program_.tensor(written).made == i) return;
      visit(written);
      if (program_.tensor(written).made >= 0 || adopted_.empty()) return;
      if (!program_.tensor(written).adopted) {
        for (const int t : adopted_) visit(t);
        return;
      }
      for (int t = 0; t < static_cast<int>(program_.tensors().size()); ++t)
        if (t != written && program_.may_overlap(written, t)) visit(t);
    };
    of(e.result);
    for (const int t : e.also) of(t);
  }

  /// Returns the plan of an operator on this program's mesh and process; null where it breaks the
  /// contract of the call in whose place it stands.
  std::shared_ptr<const Plan> planned(const Operation& operation, const TensorDescs& descs,
                                      Destination destination, const Contract& contract) const {
    Digest digest;
    digest.add(operation.digest());
    add_to(digest, descs);
    const auto [first, last] = known_.equal_range(digest.value());
    for (auto at = first; at != last; ++at)
      if (const Known& known = at->second; known.operation == operation && known.descs == descs &&
                                           known.destination == destination &&
                                           known.contract == contract)
        return known.plan;
    PlanOptions options = options_;
    options.destination = destination;
    options.contract = contract;
    auto plan = std::make_shared<const Plan>(
        operation.plan(descs, {program_.mesh, program_.process, options}));
    if (!contract.covers(plan->needs)) plan = nullptr;
    known_.emplace(digest.value(), Known{operation, descs, destination, contract, plan});
    return plan;
  }
  /// Returns the most that one process sends by a plan.
  Index payload(const std::shared_ptr<const Plan>& plan) const {
    const auto [at, fresh] = payloads_.try_emplace(plan);
    if (fresh) at->second = plan->payload_bytes();
    return at->second;
  }
  /// Returns the descriptions of an operator's operands, as its plan reads them.
  static TensorDescs operands_of(const ProgramEntry& e) {
    TensorDescs descs;
    for (int k = 0; k < e.operands.size(); ++k) descs.push_back(e.plan->slots[k].desc);
    return descs;
  }
  /// Returns the plan of an operator of this program on other operands; null where it may not read
  /// them: it refuses them, breaks its contract, or a result, the first or a further one, would lie
  /// otherwise, or be an operand itself and was not. (The first result's sharding is stated by the
  /// operator; that of a further one may follow an operand's.) `may_end`: nothing may be left to
  /// do, so that its only result is an operand.
  std::shared_ptr<const Plan> planned_on(const ProgramEntry& e, const TensorDescs& descs,
                                         bool may_end = false) const {
    const Operation& op = *e.operation;
    if (!op.check(descs).ok() || !(op.results(descs) == op.results(operands_of(e)))) return nullptr;
    std::shared_ptr<const Plan> plan = planned(op, descs, e.plan->destination, e.contract);
    if (plan == nullptr) return nullptr;
    const auto given = [](const Plan& p, int slot) { return slot < p.operands ? slot : -1; };
    bool same = given(*plan, plan->result) == given(*e.plan, e.plan->result) ||
                (may_end && plan->also.empty());
    for (int k = 0; k < plan->also.size(); ++k)
      same = same && given(*plan, plan->also[k]) == given(*e.plan, e.plan->also[k]);
    return same ? plan : nullptr;
  }
  /// Returns an operator that moves a tensor for another one, in its layer.
  static ProgramEntry reshard(const std::shared_ptr<const Operation>& operation,
                              const std::shared_ptr<const Plan>& plan, const ProgramEntry& other,
                              int tensor, int moved) {
    ProgramEntry entry{plan, "reshard", other.where};
    entry.layer = other.layer;
    entry.operands.push_back(tensor);
    entry.result = moved;
    entry.operation = operation;
    entry.contract = other.contract;
    return entry;
  }
  /// Adds a tensor, which operator `first` makes.
  int add(const TensorDesc& desc, std::size_t first) {
    const Index bytes = saturating_mul(block_volume(desc.extents, desc.sharding, program_.mesh,
                                                    program_.mesh.coordinates(program_.process)),
                                       static_cast<Index>(size_of(desc.type)));
    const int at = static_cast<int>(first);
    return program_.add({desc, arena_charge(bytes), at, at, at});
  }
  /// Returns the program with what was changed; as it was where `changes` is false.
  Program finished(bool changes = true) {
    if (!changes) return std::move(program_);
    std::vector<ProgramEntry> list;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      for (ProgramEntry& e : before_[i]) list.push_back(std::move(e));
      if (!dropped_[i]) list.push_back(std::move(entries_[i]));
    }
    for (ProgramEntry& e : after_) list.push_back(std::move(e));
    program_.relist(std::move(list));
    return std::move(program_);
  }

  Program program_;
  PlanOptions options_;
  std::vector<ProgramEntry> entries_;
  std::vector<std::vector<ProgramEntry>> before_;  ///< what is added before each entry
  std::vector<ProgramEntry> after_;                ///< what is added at the end
  std::vector<bool> dropped_;
  std::vector<int> adopted_;  ///< tensors of the application's memory

 private:
  /// Layers that are alike ask for the same plans, and for what is sent by them.
  struct Known {
    Operation operation;
    TensorDescs descs;
    Destination destination;
    Contract contract;
    std::shared_ptr<const Plan> plan;  ///< null where it breaks the contract
  };
  mutable std::unordered_multimap<std::uint64_t, Known> known_;
  mutable std::unordered_map<std::shared_ptr<const Plan>, Index> payloads_;
};

}  // namespace tessera::detail
