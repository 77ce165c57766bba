// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How memory of operands is reused.
///
///     reuse(program, options)
///
/// Laws: those of program/reuse.hpp; it takes time linear in the operators.
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/pieces.hpp>
#include <tessera/program/detail/program_edit.hpp>
#include <tessera/program/reuse.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

class ReusePass : ProgramEdit {
 public:
  ReusePass(const Program& program, const PlanOptions& options) : ProgramEdit(program, options) {}

  Reuse make() {
    made_.peak_before = program_.peak_bytes();
    now_.resize(program_.tensors().size());
    std::iota(now_.begin(), now_.end(), 0);
    for (int i = 0; i < static_cast<int>(entries_.size()); ++i) {
      ProgramEntry& e = entries_[static_cast<std::size_t>(i)];
      for (int& t : e.operands) t = now(t);
      if (e.result >= 0) e.result = now(e.result);
      for (int& t : e.also) t = now(t);
      take_over(e, i);
    }
    made_.program = finished(!made_.changes.empty());
    made_.peak_after = made_.program.peak_bytes();
    return std::move(made_);
  }

 private:
  int& now(int t) { return now_[static_cast<std::size_t>(t)]; }

  /// Returns the operand that ends with operator i, and lies as its result does; -1: none.
  int that_ends(const ProgramEntry& e, int i) const {
    const Slot& result = e.plan->slots[e.plan->result];
    for (int k = 0; k < e.operands.size(); ++k) {
      const ProgramTensor& t = program_.tensor(e.operands[k]);
      const Slot& slot = e.plan->slots[k];
      if (t.last == i && !t.adopted && !t.seen && slot.desc == e.plan->result_desc() &&
          slot.labels == result.labels && !elsewhere(e, k))
        return k;
    }
    return -1;
  }
  /// Returns whether operand k is read in another order by the same operator.
  bool elsewhere(const ProgramEntry& e, int k) const {
    for (int j = 0; j < e.operands.size(); ++j)
      if (program_.may_overlap(e.operands[j], e.operands[k]) &&
          !(e.plan->slots[j].desc == e.plan->slots[k].desc &&
            e.plan->slots[j].labels == e.plan->slots[k].labels))
        return true;
    return false;
  }
  void take_over(ProgramEntry& e, int i) {
    const Plan& plan = *e.plan;
    if (e.operation == nullptr || plan.kind != OperatorKind::map || !e.also.empty() ||
        !plan.halos.empty() || plan.destination != Destination::fresh ||
        plan.result < plan.operands || e.result < 0)
      return;
    const int k = that_ends(e, i);
    if (k < 0 || program_.tensor(e.result).made != i || program_.tensor(e.result).seen) return;
    const auto again = planned(*e.operation, operands_of(e), Destination::accumulated, e.contract);
    if (again == nullptr || payload(again) > payload(e.plan) || again->cost > plan.cost) return;
    const int gone = e.result;
    ProgramTensor& kept = program_.tensor_to_change(e.operands[k]);
    ProgramTensor& result = program_.tensor_to_change(gone);
    made_.changes.push_back({e.layer, e.operands[k], gone});
    made_.bytes = saturating_add(made_.bytes, result.bytes);
    kept.last = std::exchange(result.last, -1);
    e.replaces = gone;
    now(gone) = e.result = e.operands[k];
    e.plan = again;
  }

  Reuse made_;
  std::vector<int> now_;  ///< the tensor in whose memory each one lies
};
}  // namespace detail

TESSERA_FUNCTION Reuse reuse(const Program& program, const PlanOptions& options) {
  if (!program.parts().empty())
    return detail::in_pieces<Reuse>(
        program, options, max_int64,
        [](const Program& one, const PlanOptions& there) { return reuse(one, there); },
        [&](Reuse& all, const Reuse& made, const detail::ProgramPieces& pieces) {
          for (const ReusedMemory& one : made.changes)
            all.changes.push_back(
                {one.layer, pieces.number(one.operand), pieces.number(one.result)});
          if (program.place_on(pieces.part(), program.process) >= 0)
            all.bytes = detail::saturating_add(all.bytes, made.bytes);
        });
  return detail::ReusePass(program, options).make();
}

TESSERA_FUNCTION std::string explain(const Reuse& reused) {
  struct Total {
    int operators = 0;
    Index bytes = 0;
  };
  std::map<std::string, Total> layers;
  for (const ReusedMemory& change : reused.changes) {
    Total& total = layers[reused.program.layer_path(change.layer)];
    ++total.operators;
    total.bytes = detail::saturating_add(total.bytes, reused.program.tensor(change.result).bytes);
  }
  detail::TextTable table;
  for (const auto& [path, total] : layers)
    table.row({path.empty() ? "outside layers" : path, detail::counted(total.operators, "operator"),
               detail::bytes_text(total.bytes) + " less"});
  const std::string done =
      reused.changes.empty()
          ? "no result lies where an operand ends"
          : detail::counted(static_cast<int>(reused.changes.size()), "result") +
                " where an operand ends, " + detail::bytes_text(reused.bytes) + " less allocated";
  return "reuse: " + done + "; peak memory " + detail::bytes_text(reused.peak_before) +
         " before, " + detail::bytes_text(reused.peak_after) + " after\n" + table.text("  ");
}

}  // namespace tessera
