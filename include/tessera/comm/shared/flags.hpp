// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What each member of a group tells the others through shared memory: how far it has come, in
/// steps counted since the group's start, and where its data lies. comm/shared/team.hpp
/// defines a step.
///
///     own.ready.store(step + 1, std::memory_order_release);        // my data of `step` are there
///     peer.ready.load(std::memory_order_acquire) > step            // so are the peer's
///
/// Laws: only its owner writes a member's flags; counters never fall; all zero is a valid start.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tessera/comm/shared/block.hpp>

namespace tessera::detail {

/// Each counter has its own cache line, so that polling one does not slow writes to another.
struct alignas(64) SharedFlags {
  alignas(64) std::atomic<std::uint64_t> ready;     ///< steps whose data may be read
  alignas(64) std::atomic<std::uint64_t> reduced;   ///< steps whose own part is reduced
  alignas(64) std::atomic<std::uint64_t> finished;  ///< steps in which nothing more is read
  /// For the step with this parity: 0 when the data is staged, else 1 + the offset of the send
  /// buffer in the member's part of the arena's shared memory.
  alignas(64) std::atomic<std::uint64_t> source[2];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Most blocks that a group shares at once (comm/shared/block.hpp); their turns lie after the
/// flags.
inline constexpr int max_shared_blocks = 124;
inline constexpr std::size_t flag_bytes =
    sizeof(SharedFlags) + max_shared_blocks * sizeof(SharedTurns);

/// A member as this process addresses it: flags, two halves of staging memory, and the arena's
/// shared memory or null.
struct SharedMember {
  SharedFlags* flags = nullptr;
  std::byte* stage = nullptr;
  const std::byte* arena = nullptr;
  SharedTurns* turns() const {
    return reinterpret_cast<SharedTurns*>(reinterpret_cast<std::byte*>(flags) +
                                          sizeof(SharedFlags));
  }
};

}  // namespace tessera::detail
