// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The members of a group that read each other's memory: where the data of a step lies, and how one
/// member waits for another.
///
///     members.wait_for(&SharedFlags::ready, member, step + 1, wait);
///     const std::byte* theirs = members.data_of(member, step, staged, direct);
///
/// Laws: as in comm/shared/flags.hpp.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/comm/shared/flags.hpp>

namespace tessera::detail {

class SharedMembers {
 public:
  Index arena_bytes() const { return arena_bytes_; }
  const SharedMember& member(int i) const { return members_[static_cast<std::size_t>(i)]; }
  /// Returns the offset of [data, data + bytes) in this process's part of the arena's shared
  /// memory, or -1 when it lies elsewhere.
  Index offset_in_arena(const void* data, Index bytes) const {
    return static_cast<Index>(in_arena(static_cast<const std::byte*>(data), bytes)) - 1;
  }

 protected:
  SharedMembers(std::vector<SharedMember> members, int own, Index half_bytes,
                const std::byte* arena, Index arena_bytes)
      : members_(std::move(members)),
        own_(own),
        half_bytes_(half_bytes),
        arena_(arena),
        arena_bytes_(arena_bytes) {}

  SharedFlags& own_flags() { return *members_[static_cast<std::size_t>(own_)].flags; }
  const SharedFlags& flags_of(int member) const {
    return *members_[static_cast<std::size_t>(member)].flags;
  }
  int size() const { return static_cast<int>(members_.size()); }
  std::byte* half(int member, std::uint64_t step) const {
    return members_[static_cast<std::size_t>(member)].stage +
           static_cast<Index>(step % 2) * half_bytes_;
  }

  /// Returns 1 + the offset of [data, data + bytes) in the arena's shared memory, or 0 when it lies
  /// elsewhere. An empty range lies anywhere.
  std::uint64_t in_arena(const std::byte* data, Index bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    const auto base = reinterpret_cast<std::uintptr_t>(arena_);
    if (arena_ != nullptr && bytes == 0) return 1;
    if (arena_ == nullptr || at < base || at - base > static_cast<std::uintptr_t>(arena_bytes_) ||
        bytes > arena_bytes_ - static_cast<Index>(at - base))
      return 0;
    return 1 + static_cast<std::uint64_t>(at - base);
  }

  /// Returns where a member's data of `step` lies: `staged` bytes into its half, or `direct` bytes
  /// into its send buffer.
  const std::byte* data_of(int member, std::uint64_t step, Index staged, Index direct) const {
    const std::uint64_t source = source_of(member, step);
    if (source == 0) return half(member, step) + staged;
    return members_[static_cast<std::size_t>(member)].arena + (source - 1) + direct;
  }

  template <class Wait>
  void wait_for(std::atomic<std::uint64_t> SharedFlags::*counter, int member, std::uint64_t value,
                const Wait& wait) const {
    const std::atomic<std::uint64_t>& flag = flags_of(member).*counter;
    if (flag.load(std::memory_order_acquire) >= value) return;
    wait([&] { return flag.load(std::memory_order_acquire) >= value; });
  }
  template <class Wait>
  void wait_for_all(std::atomic<std::uint64_t> SharedFlags::*counter, std::uint64_t value,
                    const Wait& wait) const {
    for (int k = 1; k < size(); ++k) wait_for(counter, (own_ + k) % size(), value, wait);
  }

  std::uint64_t source_of(int member, std::uint64_t step) const {
    return flags_of(member).source[step % 2].load(std::memory_order_relaxed);
  }

  std::vector<SharedMember> members_;
  int own_;
  Index half_bytes_;
  const std::byte* arena_;
  Index arena_bytes_;
};

}  // namespace tessera::detail
