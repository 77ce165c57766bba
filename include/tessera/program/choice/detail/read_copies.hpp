// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The second half of sharing: a value that lies under several shardings is read where that costs
/// least.
///
///     shared = ReadCopies(program, options, nullptr).make(shared).made;
///
/// A program that has brought x to every process slices that copy where another operator needs x
/// split otherwise, in place of moving x a second time.
///
/// Laws: those of program/share.hpp; a copy is read while neither it nor the tensor it was made of
/// is written.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/detail/program_edit.hpp>
#include <tessera/program/share.hpp>

namespace tessera::detail {

class ReadCopies : ProgramEdit {
 public:
  /// `some`: which operands are replaced, sorted; null: all where that pays.
  ReadCopies(const Program& program, const PlanOptions& options, const std::vector<int>* some)
      : ProgramEdit(program, options),
        some_(some),
        values_(program.tensors().size()),
        now_(values_.size()),
        written_(values_.size()) {
    for (std::size_t t = 0; t < values_.size(); ++t) {
      values_[t] = now_[t] = static_cast<int>(t);
      copies_.push_back({static_cast<int>(t)});
    }
    for (int i = 0; i < program.size(); ++i)
      for_each_changed(program.entry(i), i,
                       [&](int t) { written_[static_cast<std::size_t>(t)] = true; });
  }

  /// Puts the program that reads copies in place of `shared`'s, and adds what is saved.
  Attempt<Sharing> make(Sharing shared) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      ProgramEntry& e = entries_[i];
      for (int& t : e.operands) t = now_[static_cast<std::size_t>(t)];
      if (e.operation != nullptr && e.plan->halos.empty())
        for (int k = 0; k < e.operands.size() && !dropped_[i]; ++k)
          dropped_[i] = read_copy(e, k, static_cast<int>(i), shared);
      if (!dropped_[i]) made(e, static_cast<int>(i));
    }
    if (!changes_.empty()) {
      shared.program = finished();
      shared.peak_after = shared.program.peak_bytes();
    }
    return {std::move(shared), std::move(changes_)};
  }

 private:
  static constexpr std::size_t most_copies = 4;  ///< of a value that are tried, the last ones

  int& value(int t) { return values_[static_cast<std::size_t>(t)]; }
  /// Returns the tensors that have the value of tensor t.
  std::vector<int>& copies_of(int t) { return copies_[static_cast<std::size_t>(value(t))]; }

  /// Returns whether an operator reads operand k under the description that its memory has in the
  /// program: under another one it has another value.
  bool as_it_lies(const ProgramEntry& e, int k) const {
    return e.plan->slots[k].desc == program_.tensor(e.operands[k]).desc;
  }
  void made(const ProgramEntry& e, int i) {
    const auto changed = [&](int t) {
      std::vector<int>& others = copies_of(t);
      std::erase(others, t);
      value(t) = static_cast<int>(copies_.size());
      copies_.push_back({t});
    };
    for_each_changed(e, i, changed);
    const Plan& plan = *e.plan;
    const bool copies =
        e.operation != nullptr && plan.kind == OperatorKind::reshard && e.operands.size() == 1 &&
        e.result >= 0 && e.result != e.operands[0] && e.also.empty() && as_it_lies(e, 0) &&
        program_.tensor(e.result).desc == plan.result_desc() &&
        plan.slots[0].desc.sharding.partial.empty() &&
        plan.result_desc().sharding.partial.empty() && program_.tensor(e.result).made == i;
    if (!copies) return;
    value(e.result) = value(e.operands[0]);
    std::vector<int>& all = copies_of(e.result);
    all.push_back(e.result);
  }
  /// Returns whether operator i, a reshard, makes what lies in `copy` already, and others may read
  /// that in place of its result.
  bool makes_again(const ProgramEntry& e, int i, int copy) const {
    const auto stays = [&](int t) { return !written_[static_cast<std::size_t>(t)]; };
    return e.plan->kind == OperatorKind::reshard && e.also.empty() && e.result >= 0 &&
           program_.tensor(e.result).made == i &&
           program_.tensor(e.result).last < program_.size() && stays(e.result) && stays(copy);
  }
  /// Lets operator i read another tensor of the same value as operand k, if that pays. Returns
  /// whether nothing is left for it to do.
  bool read_copy(ProgramEntry& e, int k, int i, Sharing& shared) {
    const int from = e.operands[k];
    const bool written = e.result == from || e.also.contains(from);
    const int number = i * max_operands + k;
    const bool left_out =
        some_ != nullptr && !std::binary_search(some_->begin(), some_->end(), number);
    if (left_out || written || !as_it_lies(e, k) || payload(e.plan) == 0) return false;
    const std::vector<int>& copies = copies_of(from);
    TensorDescs descs = operands_of(e);
    std::shared_ptr<const Plan> best = e.plan;
    int chosen = from;
    for (std::size_t n = 0; n < copies.size() && n < most_copies; ++n) {
      const int copy = copies[copies.size() - 1 - n];
      if (copy == from || program_.writes(e, copy)) continue;
      descs[k] = program_.tensor(copy).desc;
      const auto plan = planned_on(e, descs, true);
      if (plan == nullptr || payload(plan) >= payload(best) || plan->cost > best->cost) continue;
      if (plan->result < plan->operands && !makes_again(e, i, copy)) continue;
      best = plan;
      chosen = copy;
    }
    if (chosen == from) return false;
    SharedMove move{from, chosen, 1};
    move.payload = payload(e.plan) - payload(best);
    move.cost = e.plan->cost - best->cost;
    move.layer = e.layer;
    move.rounds = !sums_alike(*best, *e.plan);
    shared.moves.push_back(move);
    changes_.push_back({number, static_cast<double>(move.payload), {chosen}});
    if (best->result < best->operands) {
      now_[static_cast<std::size_t>(e.result)] = chosen;
      return true;
    }
    e.operands[k] = chosen;
    e.plan = best;
    return false;
  }

  const std::vector<int>* some_;
  std::vector<MadeChange> changes_;
  std::vector<int> values_;               ///< the number of each tensor's value
  std::vector<std::vector<int>> copies_;  ///< the tensors that have each value
  std::vector<int> now_;                  ///< the tensor that is read in the place of each one
  std::vector<bool> written_;             ///< whether an operator writes a tensor that is there
};

TESSERA_FUNCTION Sharing reading_copies(const Sharing& shared, const PlanOptions& options,
                                        Index limit) {
  return within_limit(shared.program, limit, [&](const std::vector<int>* some) {
    return ReadCopies(shared.program, options, some).make(shared);
  });
}

}  // namespace tessera::detail
