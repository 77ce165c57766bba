// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Collectives by reading each other's memory. A call is cut into steps; in each, every member puts
/// what others need into one half of its staging memory and raises its flag, and then reads from
/// the others; the other half serves the next step meanwhile. A send buffer that lies in the
/// arena's window is read where it is.
///
///     WindowTeam team(members, own, half_bytes, arena, arena_bytes);
///     team.run(call, send, receive, [&](auto come) { while (!come()) pause(); });
///
/// Laws: reductions go in the order of the members, so that the result depends on nothing else.
/// A half is written again only when all have finished the step before the last.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/comm/detail/local_collective.hpp>
#include <tessera/comm/detail/window_flags.hpp>
#include <tessera/kernel/join.hpp>

namespace tessera::detail {

class WindowTeam {
 public:
  /// `half_bytes` is a multiple of 64 that leaves 64 bytes for each member.
  WindowTeam(std::vector<WindowMember> members, int own, Index half_bytes,
             const std::byte* arena = nullptr, Index arena_bytes = 0)
      : members_(std::move(members)),
        own_(own),
        half_bytes_(half_bytes),
        arena_(arena),
        arena_bytes_(arena_bytes),
        sources_(members_.size()) {}

  /// Makes a call that has a window_weight; `wait(come)` returns once come() is true. Collective
  /// over: the members.
  template <class Wait>
  void run(const Call& call, const void* send, void* receive, const Wait& wait) {
    const Job job = job_of(call, send, receive);
    if (call.kind == Collective::all_reduce)
      all_reduce(job, wait);
    else
      one_way(job, wait);
  }

  /// Returns, on all members alike, whether all their send buffers lie in the arena's window.
  /// Collective over: the members; a step without data.
  template <class Wait>
  bool all_in_place(const Call& call, const void* send, void* receive, const Wait& wait) {
    offer(job_of(call, send, receive), step_, wait, [](std::byte*) {});
    wait_for_all(&WindowFlags::ready, step_ + 1, wait);
    bool all = true;
    for (int member = 0; member < size(); ++member)
      all = all && flags_of(member).source[step_ % 2].load(std::memory_order_relaxed) != 0;
    own_flags().finished.store(++step_, std::memory_order_release);
    return all;
  }

 private:
  struct Job {
    const Call* call = nullptr;
    Index size = 0;
    const std::byte* data = nullptr;  ///< the first piece of what is sent
    std::byte* receive = nullptr;
    Index first = 0;  ///< the offset of the first piece, elements
    std::uint64_t source = 0;
  };

  Job job_of(const Call& call, const void* send, void* receive) const {
    Job job;
    job.call = &call;
    job.size = static_cast<Index>(size_of(call.type));
    job.receive = static_cast<std::byte*>(receive);
    const std::byte* data = call.in_place ? static_cast<const std::byte*>(receive)
                                          : static_cast<const std::byte*>(send);
    const Index first = (call.in_place ? call.receive : call.send).front().offset;
    job.data = data + first * job.size;
    job.first = call.send.front().offset;
    Index bytes = 0;
    for (const Piece& piece : call.send) bytes += piece.count * job.size;
    job.source = in_arena(job.data, bytes);
    return job;
  }

  WindowFlags& own_flags() { return *members_[static_cast<std::size_t>(own_)].flags; }
  const WindowFlags& flags_of(int member) const {
    return *members_[static_cast<std::size_t>(member)].flags;
  }
  int size() const { return static_cast<int>(members_.size()); }
  std::byte* half(int member, std::uint64_t step) const {
    return members_[static_cast<std::size_t>(member)].stage +
           static_cast<Index>(step % 2) * half_bytes_;
  }

  /// Returns 1 + the offset of [data, data + bytes) in the arena's window, or 0 when it is outside.
  /// Nothing lies anywhere.
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
    const std::uint64_t source = flags_of(member).source[step % 2].load(std::memory_order_relaxed);
    if (source == 0) return half(member, step) + staged;
    return members_[static_cast<std::size_t>(member)].arena + (source - 1) + direct;
  }

  template <class Wait>
  void wait_for(std::atomic<std::uint64_t> WindowFlags::*counter, int member, std::uint64_t value,
                const Wait& wait) const {
    const std::atomic<std::uint64_t>& flag = flags_of(member).*counter;
    if (flag.load(std::memory_order_acquire) >= value) return;
    wait([&] { return flag.load(std::memory_order_acquire) >= value; });
  }
  template <class Wait>
  void wait_for_all(std::atomic<std::uint64_t> WindowFlags::*counter, std::uint64_t value,
                    const Wait& wait) const {
    for (int k = 1; k < size(); ++k) wait_for(counter, (own_ + k) % size(), value, wait);
  }

  /// Puts the data of `step` where the others find it, by put(half), unless it lies there.
  template <class Wait, class Put>
  void offer(const Job& job, std::uint64_t step, const Wait& wait, const Put& put) {
    if (step >= 2) wait_for_all(&WindowFlags::finished, step - 1, wait);
    own_flags().source[step % 2].store(job.source, std::memory_order_relaxed);
    if (job.source == 0) put(half(own_, step));
    own_flags().ready.store(step + 1, std::memory_order_release);
  }

  /// All-gather, reduce-scatter, all-to-all: put and read. The others' slots in a half are `slot`
  /// bytes apart; an all-gather has one for all.
  template <class Wait> void one_way(const Job& job, const Wait& wait) {
    const Call& call = *job.call;
    const bool gathers = call.kind == Collective::all_gather;
    const bool reduces = call.kind == Collective::reduce_scatter;
    const Index slot = gathers ? half_bytes_ : half_bytes_ / size() / 64 * 64;
    const Index most = slot / job.size;  // elements of a piece in one step
    Index longest = 0;
    for (const Piece& piece : gathers ? call.receive : call.send)
      longest = max_of(longest, piece.count);
    const auto steps = static_cast<std::uint64_t>(ceil_div(longest, most));
    /// The part of a piece of `count` elements that is this step's.
    const auto part = [&](std::uint64_t k, Index count) {
      const Index start = min_of(count, static_cast<Index>(k) * most);
      return std::pair{start, min_of(most, count - start)};
    };
    const auto put = [&](std::uint64_t k) {
      offer(job, step_ + k, wait, [&](std::byte* to) {
        for (const Piece& piece : call.send) {
          if (!gathers && piece.peer == own_) continue;
          const auto [start, count] = part(k, piece.count);
          copy_bytes(to + (gathers ? 0 : piece.peer * slot),
                     job.data + (piece.offset - job.first + start) * job.size, count * job.size);
        }
      });
    };
    if (steps > 0) put(0);
    for (std::uint64_t k = 0; k < steps; ++k) {
      if (k + 1 < steps) put(k + 1);
      if (reduces)
        reduce_scatter_step(job, step_ + k, part(k, call.receive.front().count), slot, wait);
      else
        for (int turn = 0; turn < size(); ++turn) {
          const int member = (own_ + turn) % size();
          const Piece& piece = call.receive[static_cast<std::size_t>(member)];
          const auto [start, count] = part(k, piece.count);
          std::byte* to = job.receive + (piece.offset + start) * job.size;
          const Index direct =
              gathers ? start
                      : call.send[static_cast<std::size_t>(own_)].offset - job.first + start;
          if (member == own_) {
            copy_bytes(to, job.data + direct * job.size, count * job.size);
            continue;
          }
          wait_for(&WindowFlags::ready, member, step_ + k + 1, wait);
          copy_bytes(to, data_of(member, step_ + k, gathers ? 0 : own_ * slot, direct * job.size),
                     count * job.size);
        }
      own_flags().finished.store(step_ + k + 1, std::memory_order_release);
    }
    step_ += steps;
    if (job.source != 0) wait_for_all(&WindowFlags::finished, step_, wait);
  }

  template <class Wait>
  void reduce_scatter_step(const Job& job, std::uint64_t step, std::pair<Index, Index> part,
                           Index slot, const Wait& wait) {
    const auto [start, count] = part;
    const Call& call = *job.call;
    const Index direct =
        (call.send[static_cast<std::size_t>(own_)].offset - job.first + start) * job.size;
    wait_for_all(&WindowFlags::ready, step + 1, wait);
    for (int member = 0; member < size(); ++member)
      sources_[static_cast<std::size_t>(member)] =
          member == own_ ? job.data + direct : data_of(member, step, own_ * slot, direct);
    join(call.type, call.reduction, sources_.data(), size(), count,
         job.receive + (call.receive.front().offset + start) * job.size);
  }

  /// Each step's elements are divided among the members: each reduces its part, into its own half
  /// and its result, and takes the other parts from the others.
  template <class Wait> void all_reduce(const Job& job, const Wait& wait) {
    const Call& call = *job.call;
    const Index n = call.send.front().count;
    const Index line = 64 / job.size;
    const Index most = half_bytes_ / job.size;
    const auto steps = static_cast<std::uint64_t>(ceil_div(n, most));
    std::byte* result = job.receive + call.receive.front().offset * job.size;
    /// Start, in this step, and length of a member's part of it.
    const auto part = [&](std::uint64_t k, int member) {
      const Index length = min_of(most, n - static_cast<Index>(k) * most);
      const Index block = round_up(ceil_div(length, size()), line);
      const Index start = min_of(length, member * block);
      return std::pair{start, min_of(block, length - start)};
    };
    const auto put = [&](std::uint64_t k) {
      offer(job, step_ + k, wait, [&](std::byte* to) {
        for (int member = 0; member < size(); ++member)
          if (member != own_) {
            const auto [start, count] = part(k, member);
            copy_bytes(to + start * job.size,
                       job.data + (static_cast<Index>(k) * most + start) * job.size,
                       count * job.size);
          }
      });
    };
    if (steps > 0) put(0);
    for (std::uint64_t k = 0; k < steps; ++k) {
      const std::uint64_t step = step_ + k;
      const Index base = static_cast<Index>(k) * most;
      const auto [start, count] = part(k, own_);
      wait_for_all(&WindowFlags::ready, step + 1, wait);
      for (int member = 0; member < size(); ++member)
        sources_[static_cast<std::size_t>(member)] =
            member == own_ ? job.data + (base + start) * job.size
                           : data_of(member, step, start * job.size, (base + start) * job.size);
      join(call.type, call.reduction, sources_.data(), size(), count,
           half(own_, step) + start * job.size, result + (base + start) * job.size);
      own_flags().reduced.store(step + 1, std::memory_order_release);
      if (k + 1 < steps) put(k + 1);
      // In place, what others still read is not overwritten: a part is taken once all have reduced.
      wait_for_all(&WindowFlags::reduced, step + 1, wait);
      for (int turn = 1; turn < size(); ++turn) {
        const int member = (own_ + turn) % size();
        const auto [theirs, their_count] = part(k, member);
        copy_bytes(result + (base + theirs) * job.size, half(member, step) + theirs * job.size,
                   their_count * job.size);
      }
      own_flags().finished.store(step + 1, std::memory_order_release);
    }
    step_ += steps;
  }

  std::vector<WindowMember> members_;
  int own_;
  Index half_bytes_;
  const std::byte* arena_;
  Index arena_bytes_;
  std::uint64_t step_ = 0;
  std::vector<const void*> sources_;
};

}  // namespace tessera::detail
