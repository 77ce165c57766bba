// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memories that a list of instructions names (plan/work/memory.hpp): tensors' storage and
/// staging.
///
///     class Execution : private ExecutionMemory { … allocate(i); data(i.to); release(i.to); … };
///
/// Laws: staging that is still held goes back to the arena at the end.
#include <array>
#include <cstddef>
#include <memory>

#include <tessera/plan/plan.hpp>
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/memory.hpp>
#include <tessera/run/copy_between.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

class ExecutionMemory {
 protected:
  ExecutionMemory(const Plan& plan, const std::shared_ptr<MeshCore>& mesh)
      : plan_(plan), mesh_(mesh) {}
  ExecutionMemory(const ExecutionMemory&) = delete;
  ExecutionMemory& operator=(const ExecutionMemory&) = delete;
  ~ExecutionMemory() {
    for (Block& block : staging_)
      if (block.serial != 0) mesh_->arena().release(block);
  }

  Side& memory(MemoryNumber m) { return memory_[static_cast<std::size_t>(m)]; }
  void* data(MemoryNumber m) { return memory(m).data; }
  std::shared_ptr<Storage>& storage(int slot) { return storage_[static_cast<std::size_t>(slot)]; }
  Block& staging(MemoryNumber m) { return staging_[static_cast<std::size_t>(m - send_staging)]; }

  /// Places a slot's block at `begin`.
  void lay(int slot, void* begin) {
    const Slot& s = plan_.slots[slot];
    memory_[static_cast<std::size_t>(slot)] = {
        s.first == 0 || begin == nullptr
            ? begin
            : static_cast<std::byte*>(begin) + s.first * static_cast<Index>(size_of(s.desc.type)),
        s.place.kind == Placement::Kind::root};
  }
  void allocate(const Instruction& i) {
    if (i.to < send_staging) {
      storage(i.to) = make_storage(mesh_, i.bytes);
      memory(i.to) = {storage(i.to)->data(), false};
    } else if (i.host && !default_memory_is_host) {
      auto& host = on_host_[static_cast<std::size_t>(i.to - send_staging)];
      host = std::make_unique<char[]>(static_cast<std::size_t>(i.bytes));
      memory(i.to) = {host.get(), true};
    } else {
      staging(i.to) = mesh_->arena().allocate(i.bytes);
      memory(i.to) = {staging(i.to).data, i.host};
    }
  }
  void release(MemoryNumber m) {
    memory(m) = {};  // a later call with no element of it names it
    if (m < send_staging) return storage(m).reset();
    on_host_[static_cast<std::size_t>(m - send_staging)].reset();
    mesh_->arena().release(staging(m));
  }

  const Plan& plan_;
  const std::shared_ptr<MeshCore>& mesh_;
  std::array<Side, max_memories> memory_{};

 private:
  std::array<std::shared_ptr<Storage>, Plan::max_slots> storage_;
  std::array<Block, max_memories - send_staging> staging_;
  std::array<std::unique_ptr<char[]>, max_memories - send_staging> on_host_;
};

}  // namespace tessera::detail
