// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Writes instructions one after the other, with the copies, calls and kernels that they name.
/// plan/work/instructions.hpp says which.
///
///     class InstructionList : private InstructionWriter { … add(Action::fence); … };
///
/// Laws: calls and kernels are numbered in the order in which they are written.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/plan/work/instruction.hpp>

namespace tessera::detail {

class InstructionWriter {
 protected:
  explicit InstructionWriter(const Plan& plan) : plan_(plan) {}

  const Step& step() const { return plan_.steps[at_]; }
  DType type_of(int slot) const { return plan_.slots[slot].desc.type; }
  static MemoryNumber memory(int slot) { return static_cast<MemoryNumber>(slot); }
  Instruction& add(Action action, MemoryNumber to = no_memory, MemoryNumber from = no_memory) {
    Instruction& made = list_.all.emplace_back();
    made.action = action;
    made.to = to;
    made.from = from;
    made.step = static_cast<std::int16_t>(at_);
    return made;
  }
  void allocate(MemoryNumber to, Index bytes, bool host = false) {
    Instruction& made = add(Action::allocate, to);
    made.bytes = bytes;
    made.host = host;
  }
  void fence() { add(Action::fence); }

  /// Adds the copies of one tensor, or (negative) of all, in runs between the same two memories.
  /// `to`: writes there in place of the copies' own.
  void copy(const std::vector<MemoryCopy>& copies, int tensor = -1, bool adds = false,
            MemoryNumber to = no_memory) {
    const MemoryCopy* last = nullptr;
    for (const MemoryCopy& next : copies) {
      if (tensor >= 0 && next.tensor != tensor) continue;
      const bool run = last != nullptr && last->from == next.from && last->to == next.to &&
                       last->type == next.type;
      if (!run) {
        Instruction& made = add(adds ? Action::accumulate : Action::copy,
                                to == no_memory ? next.to : to, next.from);
        made.type = next.type;
        made.first = static_cast<std::int32_t>(list_.copies.size());
      }
      ++list_.all.back().count;
      list_.copies.push_back(next.copy);
      last = &next;
    }
  }
  void copy_blocks(const std::vector<StridedCopy>& copies, MemoryNumber to, MemoryNumber from) {
    if (copies.empty()) return;
    Instruction& made = add(Action::copy, to, from);
    made.type = type_of(to);
    made.first = static_cast<std::int32_t>(list_.copies.size());
    made.count = static_cast<std::int32_t>(copies.size());
    for (const StridedCopy& one : copies) list_.copies.push_back(one);
  }

  /// Adds a call; `action`: how it begins.
  Instruction& call(Action action, const Call& call, MemoryNumber to, MemoryNumber from) {
    Instruction& made = add(action, to, from);
    made.first = static_cast<std::int32_t>(list_.calls.size());
    list_.calls.push_back(call);
    return made;
  }
  void call(Action action, const CallWork& work) {
    call(action, work.call, work.receive, work.send);
  }
  std::int32_t last_call() const { return static_cast<std::int32_t>(list_.calls.size()) - 1; }
  void wait() { add(Action::wait).first = last_call(); }

  const Plan& plan_;
  Instructions list_;
  int at_ = 0;  ///< the step whose instructions are written
};

}  // namespace tessera::detail
