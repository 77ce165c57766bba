// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Blocks that stay in place and that the members of a group read there, turn after turn: repeated
/// exchanges of one tensor use them on a node.
///
///     auto shared = group.share(block, bytes);          // nullptr on all members, or on none
///     shared->offer(packed, packed_bytes);              // mine may be read, and what is packed
///     shared->wait_offered(call.receive);               // theirs may
///     copy_from(shared->block_of(peer));
///     shared->finish_reading();
///     shared->wait_read(call.send, shared->turn());     // mine may be written again
///
/// Scattered elements are read faster when their owner has packed them: the packed elements lie
/// anywhere in memory that the others can address; where that is impossible, the others read the
/// block.
///
/// Laws: all members take the same turns in the same order, each at its own time; a member that
/// neither reads nor is read waits for nobody. Turns of different blocks do not depend on each
/// other.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/mesh/call.hpp>

namespace tessera::detail {

/// How far a member has come with a block. Only the member writes this; the numbers never fall,
/// even when the place serves another block later. Each has its own cache line, so that polling one
/// does not slow writes to the other.
struct alignas(64) SharedTurns {
  alignas(64) std::atomic<std::uint64_t> offered;
  std::atomic<std::uint64_t> packed;  ///< 1 + offset in this turn, from Member::base; 0: none
  alignas(64) std::atomic<std::uint64_t> read;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class SharedBlock {
 public:
  /// A member's block and turns as this process addresses them, and where its turns began.
  struct Member {
    const std::byte* block = nullptr;
    const SharedTurns* turns = nullptr;
    std::uint64_t offered = 0;
    std::uint64_t read = 0;
    std::uintptr_t base = 0;  ///< of the member's memory that others can address
  };

  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  virtual ~SharedBlock() = default;

  const std::byte* block_of(int member) const { return of(member).block; }
  /// Returns how many turns have begun.
  std::uint64_t turn() const { return turn_; }

  /// Returns the packed data of a member that has offered its block, or nullptr.
  const std::byte* packed_of(int member) const {
    const std::uint64_t at = of(member).turns->packed.load(std::memory_order_relaxed);
    return at == 0 ? nullptr : reinterpret_cast<const std::byte*>(of(member).base + (at - 1));
  }

  /// Begins a turn: the others may read until each has finished this turn.
  void offer(const void* packed = nullptr, Index bytes = 0) {
    ++turn_;
    const auto at = reinterpret_cast<std::uintptr_t>(packed) - of(own_place_).base;
    const bool reachable =
        packed != nullptr && at <= reach_ && reach_ - at >= static_cast<std::uintptr_t>(bytes);
    own_.packed.store(reachable ? 1 + at : 0, std::memory_order_relaxed);
    own_.offered.store(of(own_place_).offered + turn_, std::memory_order_release);
  }
  /// Returns whether the members from which pieces come have offered their blocks too.
  bool offered(const std::vector<Piece>& from) const {
    for (const Piece& piece : from)
      if (!has_offered(piece.peer)) return false;
    return true;
  }
  /// Waits until they have. Throws CommunicationError.
  void wait_offered(const std::vector<Piece>& from) {
    for (const Piece& piece : from)
      wait(&SharedTurns::offered, &Member::offered, piece.peer, turn_);
  }
  /// Announces that this process reads nothing more in this turn.
  void finish_reading() { own_.read.store(of(own_place_).read + turn_, std::memory_order_release); }
  /// Waits until the members to which pieces go have finished `turn`. Throws CommunicationError.
  void wait_read(const std::vector<Piece>& to, std::uint64_t turn) {
    for (const Piece& piece : to) wait(&SharedTurns::read, &Member::read, piece.peer, turn);
  }

 protected:
  using Come = bool (*)(const void*);
  /// `reach`: the bytes of this process's memory that the others can address.
  SharedBlock(int own_place, SharedTurns& own, std::vector<Member> members, std::uintptr_t reach)
      : own_place_(own_place), own_(own), members_(std::move(members)), reach_(reach) {}
  /// Returns when come(what) is true; another member makes it true.
  virtual void wait_until(Come come, const void* what) = 0;

 private:
  struct Awaited {
    const std::atomic<std::uint64_t>* counter;
    std::uint64_t value;
    static bool come(const void* what) {
      const auto* self = static_cast<const Awaited*>(what);
      return self->counter->load(std::memory_order_acquire) >= self->value;
    }
  };
  const Member& of(int member) const { return members_[static_cast<std::size_t>(member)]; }
  bool has_offered(int member) const {
    return of(member).turns->offered.load(std::memory_order_acquire) >= of(member).offered + turn_;
  }
  void wait(std::atomic<std::uint64_t> SharedTurns::*counter, std::uint64_t Member::*begin,
            int member, std::uint64_t turn) {
    const Awaited awaited{&(of(member).turns->*counter), of(member).*begin + turn};
    for (int i = 0; i < 64; ++i)
      if (Awaited::come(&awaited)) return;
    wait_until(&Awaited::come, &awaited);
  }

  int own_place_;
  SharedTurns& own_;
  std::vector<Member> members_;
  std::uintptr_t reach_;
  std::uint64_t turn_ = 0;
};
}  // namespace tessera::detail
