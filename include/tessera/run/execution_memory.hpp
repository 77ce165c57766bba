// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memories that a list of instructions names (plan/move/memory.hpp): tensors' storage and
/// staging.
///
///     class Execution : private ExecutionMemory { … allocate(i); data(i.to); release(i.to); … };
///
/// Laws: staging that is still held goes back to the arena at the end.
#include <cstddef>
#include <memory>
#include <new>

#include <tessera/plan/move/memory.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/work/instruction.hpp>
#include <tessera/run/copy_between.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// Memory for `N` values, which are made one by one: a call has few of the slots that a plan may
/// have.
template <class T, int N> union MadeLater {
  MadeLater() {}
  ~MadeLater() {}
  MadeLater(const MadeLater&) = delete;
  MadeLater& operator=(const MadeLater&) = delete;
  T of[N];
};

class ExecutionMemory {
 protected:
  ExecutionMemory(const Plan& plan, const std::shared_ptr<MeshCore>& mesh)
      : plan_(plan), mesh_(mesh), slots_(plan.slots.size()) {
    for (int slot = 0; slot < slots_; ++slot) {
      new (&storage_.of[slot]) std::shared_ptr<Storage>;
      new (&memory_.of[slot]) Side;
    }
    for (int m = send_staging; m < max_memories; ++m) new (&memory_.of[m]) Side;
  }
  ExecutionMemory(const ExecutionMemory&) = delete;
  ExecutionMemory& operator=(const ExecutionMemory&) = delete;
  ~ExecutionMemory() {
    for (MemoryNumber m = send_staging; held_ != 0; ++m)
      if (holds(m)) give_back(m);
    for (int slot = 0; slot < slots_; ++slot) storage_.of[slot].~shared_ptr();
  }

  Side& memory(MemoryNumber m) { return memory_.of[m]; }
  void* data(MemoryNumber m) { return memory(m).data; }
  std::shared_ptr<Storage>& storage(int slot) { return storage_.of[slot]; }

  /// Places a slot's block at `begin`.
  void lay(int slot, void* begin) {
    const Slot& s = plan_.slots[slot];
    memory_.of[slot] = {
        s.first == 0 || begin == nullptr
            ? begin
            : static_cast<std::byte*>(begin) + s.first * static_cast<Index>(size_of(s.desc.type)),
        s.place.kind == Placement::Kind::root};
  }
  void allocate(const Instruction& i) {
    if (i.to < send_staging) {
      storage(i.to) = make_storage(mesh_, i.bytes);
      memory(i.to) = {storage(i.to)->data(), false};
      return;
    }
    const bool on_host = i.host && !default_memory_is_host;
    Staging& staging = *new (&this->staging(i.to)) Staging{{}, on_host};
    if (on_host)
      staging.block.data = new char[static_cast<std::size_t>(i.bytes)];
    else
      staging.block = mesh_->arena().allocate(i.bytes);
    held_ |= 1U << (i.to - send_staging);
    memory(i.to) = {staging.block.data, i.host};
  }
  void release(MemoryNumber m) {
    memory(m) = {};  // a later call with no element of it names it
    m < send_staging ? storage(m).reset() : give_back(m);
  }
  /// Never frees what the list has held so far, nor the operands' storage.
  void keep_for_ever(const OperandList& operands) {
    const auto keep = [](const std::shared_ptr<Storage>& storage) {
      if (storage != nullptr) new std::shared_ptr<Storage>(storage);
    };
    for (int slot = 0; slot < slots_; ++slot) keep(storage(slot));
    for (const TensorCore* operand : operands) keep(operand->storage());
    held_ = 0;
  }

  const Plan& plan_;
  const std::shared_ptr<MeshCore>& mesh_;
  MadeLater<Side, max_memories> memory_;  ///< of the plan's slots and of staging

 private:
  struct Staging {
    Block block;
    bool on_host;  ///< in memory of the host's where the mesh's is a device's
  };
  Staging& staging(MemoryNumber m) { return staging_.of[m - send_staging]; }
  bool holds(MemoryNumber m) const { return (held_ >> (m - send_staging) & 1U) != 0; }
  void give_back(MemoryNumber m) {
    held_ &= ~(1U << (m - send_staging));
    Staging& staging = this->staging(m);
    staging.on_host ? delete[] static_cast<char*>(staging.block.data)
                    : mesh_->arena().release(staging.block);
  }

  int slots_;
  unsigned held_ = 0;  ///< the staging that is held, a bit each
  MadeLater<std::shared_ptr<Storage>, Plan::max_slots> storage_;
  MadeLater<Staging, max_memories - send_staging> staging_;
};

}  // namespace tessera::detail
