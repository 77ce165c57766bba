// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How calls are found and joined.
///
///     join(program, options)
///
/// Laws: those of program/join.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/op/move/together.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/rows/reduce.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/pieces.hpp>
#include <tessera/program/detail/program_edit.hpp>
#include <tessera/program/join.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

/// Returns the slot of an unfinished value that a plan's last steps finish, and do nothing else
/// with; -1 where there is none.
inline int unfinished_slot(const Plan& plan) {
  int slot = plan.result;
  for (int i = plan.steps.size() - 1; i >= 0; --i) {
    const Step& step = plan.steps[i];
    if (step.out != slot || step.kind != StepKind::communicate || step.in.size() != 1 ||
        !step.also.empty() || step.loop || step.merges || step.region >= 0)
      break;
    slot = step.in[0];
    if (slot < plan.operands) return -1;
  }
  const Slot& from = plan.slots[slot];
  const TensorDesc result = plan.result_desc();
  const bool same = from.desc.type == result.type && from.desc.extents == result.extents &&
                    from.labels == plan.slots[plan.result].labels && from.panel_dim < 0;
  return slot != plan.result && same && !from.desc.sharding.partial.empty() ? slot : -1;
}

/// Returns the operator with an unfinished result; none where it has no such form.
inline std::optional<Operation> left_unfinished(const Operation& operation,
                                                const TensorDescs& operands, const Sharding& out) {
  if (operation.view().scale(operands) != 1) return {};
  if (const auto* einsum = operation.view().get_if<ops::Einsum>(); einsum && !einsum->epilogue) {
    ops::Einsum open = *einsum;
    open.out = out;
    if (open.check(operands).ok()) return Operation(open);
  }
  if (const auto* reduce = operation.view().get_if<ops::Reduce>();
      reduce && !reduce->mean && !reduce->deterministic) {
    ops::Reduce open = *reduce;
    open.out = out;
    if (open.check(operands).ok()) return Operation(open);
  }
  return {};
}

/// One attempt at the pass, with some of the joined calls, or all.
class JoinPass : ProgramEdit {
 public:
  /// `some`: numbers of calls, sorted; null: all.
  JoinPass(const Program& program, const PlanOptions& options, const std::vector<int>* some)
      : ProgramEdit(program, options), some_(some) {}

  Attempt<Joining> make() {
    made_.peak_before = program_.peak_bytes();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const ProgramEntry& e = entries_[i];
      flush_used(e, i);
      if (std::optional<Waiting> waits = may_wait(e, i)) {
        std::vector<Waiting>& others = waiting_[key_of(*waits)];
        if (static_cast<int>(others.size()) == max_operands) flush(others, i);
        others.push_back(std::move(*waits));
      }
    }
    for (auto& [key, calls] : waiting_) flush(calls, entries_.size());
    made_.program = finished(!changes_.empty());
    made_.peak_after = made_.program.peak_bytes();
    return {std::move(made_), std::move(changes_)};
  }

 private:
  /// A call that can wait.
  struct Waiting {
    std::size_t entry;
    TensorDesc from;  ///< what it moves
    Sharding to;
    std::shared_ptr<const Plan> move;  ///< the move alone
    std::optional<Operation> open{};   ///< the operator before it; none: the move is the operator
    std::shared_ptr<const Plan> before{};  ///< its plan
  };
  using Key = std::pair<std::uint64_t, int>;

  static const Step* first_call(const Plan& plan) {
    for (const Step& step : plan.steps)
      if (step.kind == StepKind::communicate) return &step;
    return nullptr;
  }
  static Key key_of(const Waiting& w) {
    const Step& step = *first_call(*w.move);
    return {std::uint64_t{step.group.bits} << 8 | static_cast<std::uint64_t>(w.from.type),
            static_cast<int>(step.collective) << 8 | static_cast<int>(w.from.sharding.reduction)};
  }

  std::optional<Waiting> may_wait(const ProgramEntry& e, std::size_t i) const {
    const Plan& plan = *e.plan;
    if (e.operation == nullptr || !plan.halos.empty() || !e.also.empty() ||
        plan.destination != Destination::fresh || plan.result < plan.operands || e.result < 0 ||
        program_.tensor(e.result).made != static_cast<int>(i))
      return {};
    const TensorDesc made = plan.result_desc();
    if (e.operation->view().get_if<ops::Reshard>() != nullptr) {
      Waiting w{i, plan.slots[0].desc, made.sharding, e.plan};
      return first_call(plan) == nullptr ? std::nullopt : std::optional(std::move(w));
    }
    const int slot = unfinished_slot(plan);
    if (slot < 0) return {};
    const TensorDescs descs = operands_of(e);
    Waiting w{i, plan.slots[slot].desc, made.sharding, nullptr};
    w.open = left_unfinished(*e.operation, descs, w.from.sharding);
    if (!w.open) return {};
    w.before = planned(*w.open, descs, Destination::fresh, e.contract);
    w.move = planned(Operation(ops::Reshard{w.to}), {w.from}, Destination::fresh, e.contract);
    const bool same = w.before != nullptr && w.move != nullptr &&
                      w.before->result_desc() == w.from && first_call(*w.move) != nullptr &&
                      payload(w.before) + payload(w.move) == payload(e.plan);
    return same ? std::optional(std::move(w)) : std::nullopt;
  }

  /// Makes the calls whose results an operator has, or whose operands it writes.
  void flush_used(const ProgramEntry& e, std::size_t i) {
    const auto has = [&](int t) {
      return e.operands.contains(t) || e.result == t || e.also.contains(t);
    };
    for (auto& [key, calls] : waiting_)
      for (const Waiting& w : calls) {
        const ProgramEntry& waits = entries_[w.entry];
        if (!has(waits.result) && !(!w.open && program_.writes(e, waits.operands[0]))) continue;
        flush(calls, i);
        break;
      }
  }
  /// Joins calls before operator `at`, if that pays.
  void flush(std::vector<Waiting>& waiting, std::size_t at) {
    const std::vector<Waiting> calls = std::exchange(waiting, {});
    if (calls.size() < 2) return;
    const int number = number_++;
    if (some_ != nullptr && !std::binary_search(some_->begin(), some_->end(), number)) return;
    ops::Together together;
    TensorDescs from;
    JoinedCall joined;
    joined.layer = entries_[calls[0].entry].layer;
    joined.tensors = static_cast<int>(calls.size());
    for (const Waiting& w : calls) {
      together.targets.push_back(w.to);
      from.push_back(w.from);
      joined.messages += w.move->messages();
      joined.cost += w.move->cost;
    }
    const auto operation = std::make_shared<const Operation>(together);
    const auto plan = planned(*operation, from, Destination::fresh, Contract{});
    joined.messages -= plan->messages();
    joined.cost -= plan->cost;
    if (joined.cost <= 0) return;
    const Step& call = *first_call(*plan);
    joined.collective = call.collective;
    joined.group = call.group;
    ProgramEntry entry{plan, "reshard_together", entries_[calls[0].entry].where};
    entry.layer = joined.layer;
    entry.operation = operation;
    MadeChange change{number, static_cast<double>(joined.cost)};
    for (const Waiting& w : calls) {
      ProgramEntry& e = entries_[w.entry];
      entry.result < 0 ? void(entry.result = e.result) : void(entry.also.push_back(e.result));
      if (w.open) {
        e.operation = std::make_shared<const Operation>(*w.open);
        e.plan = w.before;
        e.result = add(w.from, w.entry);
        entry.operands.push_back(e.result);
      } else {
        entry.operands.push_back(e.operands[0]);
        dropped_[w.entry] = true;
      }
      change.tensors.push_back(entry.operands.back());
    }
    changes_.push_back(std::move(change));
    (at < entries_.size() ? before_[at] : after_).push_back(std::move(entry));
    made_.calls.push_back(joined);
  }

  const std::vector<int>* some_;
  int number_ = 0;  ///< of the calls that could be joined
  std::vector<MadeChange> changes_;
  Joining made_;
  std::map<Key, std::vector<Waiting>> waiting_;
};
}  // namespace detail

TESSERA_FUNCTION Joining join(const Program& program, const PlanOptions& options, Index limit) {
  if (!program.parts().empty())
    return detail::in_pieces<Joining>(
        program, options, limit,
        [&](const Program& one, const PlanOptions& there) { return join(one, there, limit); },
        [&](Joining& all, const Joining& made, const detail::ProgramPieces& pieces) {
          for (JoinedCall call : made.calls) {
            call.group = program.axes_on(pieces.part(), call.group);
            all.calls.push_back(call);
          }
          all.refused += made.refused;
        });
  return detail::within_limit(program, limit, [&](const std::vector<int>* some) {
    return detail::JoinPass(program, options, some).make();
  });
}

TESSERA_FUNCTION std::string explain(const Joining& joined) {
  const AxisNames names = joined.program.names();
  detail::TextTable table;
  Index messages = 0;
  std::int64_t cost = 0;
  for (const JoinedCall& call : joined.calls) {
    table.row({joined.program.layer_path(call.layer),
               std::to_string(call.tensors) + " tensors in one",
               std::string(name_of(call.collective)), "over " + to_string(call.group, names),
               "saves " + detail::counted(call.messages, "message"), detail::time_text(call.cost),
               detail::reduces(call.collective) ? "to rounding" : "the same bits"});
    messages = detail::saturating_add(messages, call.messages);
    cost = detail::saturating_add(cost, call.cost);
  }
  const std::string done =
      joined.calls.empty() ? "no call is for several tensors"
                           : detail::counted(static_cast<int>(joined.calls.size()), "call") +
                                 " for several tensors, " + detail::counted(messages, "message") +
                                 " and " + detail::time_text(cost) + " saved";
  return "join: " + done + "; peak memory " + detail::bytes_text(joined.peak_before) + " before, " +
         detail::bytes_text(joined.peak_after) + " after" +
         (joined.refused > 0
              ? "; " + std::to_string(joined.refused) + " more would exceed the memory limit"
              : std::string()) +
         "\n" + table.text("  ");
}

}  // namespace tessera
