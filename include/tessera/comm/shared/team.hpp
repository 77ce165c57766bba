// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Collectives in which members read each other's memory. A call is cut into steps; in each step
/// every member writes the data that others need to one half of its staging memory, raises its
/// flag, and then reads from the others; meanwhile the other half serves the next step. A send
/// buffer in the arena's shared memory is read where it lies.
///
///     SharedTeam team(members, own, half_bytes, arena, arena_bytes);
///     team.run(call, send, receive, [&](auto come) { while (!come()) pause(); });
///
/// Laws: reductions go in the order of the members, so that the result depends on nothing else. A
/// half is overwritten only when all have finished the step before the last.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/local_collective.hpp>
#include <tessera/comm/shared/members.hpp>
#include <tessera/kernel/copy/stream_copy.hpp>
#include <tessera/kernel/join.hpp>

namespace tessera::detail {

class SharedTeam : public SharedMembers {
 public:
  /// `half_bytes` is a multiple of 64 that leaves 64 bytes for each member.
  SharedTeam(std::vector<SharedMember> members, int own, Index half_bytes,
             const std::byte* arena = nullptr, Index arena_bytes = 0)
      : SharedMembers(std::move(members), own, half_bytes, arena, arena_bytes),
        sources_(members_.size()) {}

  /// Makes a reduction, an all-gather or an even all-to-all; `wait(come)` returns once come() is
  /// true. Collective over: the members.
  template <class Wait>
  void run(const Call& call, const void* send, void* receive, const Wait& wait) {
    const Job job = job_of(call, send, receive);
    if (call.kind != Collective::all_reduce)
      one_way(job, wait);
    else if (call.send.front().count * job.size * max_of(1, size() - 1) <=
             min_of(small_bytes, half_bytes_))
      small_all_reduce(job, wait);
    else
      all_reduce(job, wait);
  }

  /// Makes a call without a reduction in one step, if the send buffer of each member lies in the
  /// arena's shared memory or fits its staging memory. Else returns false on all members.
  /// Collective over: the members. Throws CommunicationError when a member does not send what this
  /// one receives.
  template <class Wait>
  bool take(const Call& call, const void* send, void* receive, const Wait& wait) {
    const auto unit = static_cast<Index>(size_of(call.type));
    const auto* from = static_cast<const std::byte*>(send);
    const Job job = job_to_take(call, from, unit);
    offer(job, step_, wait, [&](std::byte* to) {
      if (job.source == cannot) return;
      std::byte* data = to + table_bytes(call);
      const auto enter = [&](const Offered& one) {
        std::memcpy(to, &one, sizeof one);
        to += sizeof one;
      };
      Index staged = 0;
      for (const Piece& piece : call.send) {
        if (!sends_to_all(call.kind) && piece.peer == own_) continue;
        const Index bytes = piece.count * unit;
        if (job.source == 0) stream_bytes(data + staged, from + piece.offset * unit, bytes);
        enter({piece.peer,
               job.source == 0 ? table_bytes(call) + staged : (piece.offset - job.first) * unit,
               bytes});
        staged += round_up(bytes, 64);
      }
      enter({});
    });
    wait_for_all(&SharedFlags::ready, step_ + 1, wait);
    bool all = true;
    for (int member = 0; member < size(); ++member) all = all && source_of(member, step_) != cannot;
    if (all) take_pieces(call, from, static_cast<std::byte*>(receive), unit);
    own_flags().finished.store(++step_, std::memory_order_release);
    if (!all || job.source == 0) return all;
    for (const Piece& piece : call.send)
      if (sends_to_all(call.kind))
        wait_for_all(&SharedFlags::finished, step_, wait);
      else if (piece.count > 0)
        wait_for(&SharedFlags::finished, piece.peer, step_, wait);
    return true;
  }

 private:
  struct Job {
    const Call* call = nullptr;
    Index size = 0;
    const std::byte* data = nullptr;  ///< the first piece to be sent
    std::byte* receive = nullptr;
    Index first = 0;  ///< the offset of the first piece, elements
    std::uint64_t source = 0;
  };

  /// All-reduces of at most this many bytes from the other members are done in one step.
  static constexpr Index small_bytes = 16384;
  /// At most this many bytes are staged even where they could be read in place.
  static constexpr Index few_bytes = 512;
  /// The source of a member whose data can neither be staged nor read in place.
  static constexpr std::uint64_t cannot = ~std::uint64_t{0};

  /// What take() offers to a member: bytes from the arena's shared memory, or from the staging
  /// memory. The last has no peer.
  struct Offered {
    Index peer = -1;
    Index offset = 0;
    Index bytes = 0;
  };
  static Index table_bytes(const Call& call) {
    return round_up(static_cast<Index>((call.send.size() + 1) * sizeof(Offered)), 64);
  }
  Job job_to_take(const Call& call, const std::byte* send, Index unit) const {
    Job job;
    job.call = &call;
    Index last = 0;
    Index staged = table_bytes(call);
    for (const Piece& piece : call.send)
      if (piece.count > 0) {
        job.first = last == 0 ? piece.offset : min_of(job.first, piece.offset);
        last = max_of(last, piece.offset + piece.count);
        staged += round_up(piece.count * unit, 64);
      }
    const Index bytes = (last - job.first) * unit;
    const bool fits = table_bytes(call) <= half_bytes_;
    // A small piece is read from staging memory sooner than its sender could wait for it to be
    // read.
    if (fits && bytes > 0 && (bytes > few_bytes || staged > half_bytes_))
      job.source = in_arena(send + job.first * unit, bytes);
    if (job.source == 0 && staged > half_bytes_) job.source = cannot;
    return job;
  }
  /// Returns where the piece lies that `member` offers this process: the `which`-th, of `bytes`.
  const std::byte* offered(const Call& call, int member, int which, Index bytes) const {
    const std::byte* at = half(member, step_);
    Offered one;
    for (;; at += sizeof one) {
      std::memcpy(&one, at, sizeof one);
      if (one.peer < 0) break;
      if ((sends_to_all(call.kind) || one.peer == own_) && which-- == 0) break;
    }
    if (one.peer < 0 || one.bytes != bytes)
      throw CommunicationError("member " + std::to_string(own_) + " of a group receives " +
                               std::to_string(bytes) + " bytes from member " +
                               std::to_string(member) + ", which sends it " +
                               std::to_string(one.bytes) +
                               "; all processes must make the same calls, in the same order");
    const std::uint64_t source = source_of(member, step_);
    return one.offset + (source == 0
                             ? half(member, step_)
                             : members_[static_cast<std::size_t>(member)].arena + (source - 1));
  }
  /// Each member begins with the one after it, so that they do not all read from the same one.
  void take_pieces(const Call& call, const std::byte* send, std::byte* receive, Index unit) const {
    const std::size_t count = call.receive.size();
    Index whole = 0;
    for (const Piece& piece : call.receive) whole += piece.count * unit;
    std::size_t begin = 0;
    while (begin < count && call.receive[begin].peer < own_) ++begin;
    for (std::size_t turn = 0; turn < count; ++turn) {
      const std::size_t k = (begin + turn) % count;
      const Piece& piece = call.receive[k];
      const Index bytes = piece.count * unit;
      if (bytes == 0 || (call.own_stays && piece.peer == own_)) continue;
      const int which = occurrence(call.receive, k);
      const std::byte* from = nullptr;
      if (piece.peer != own_)
        from = offered(call, piece.peer, which, bytes);
      else if (call.kind == Collective::all_gather)
        from = send + call.send.front().offset * unit;
      else
        from = send + find_piece(call.send, own_, which)->offset * unit;
      put_bytes(receive + piece.offset * unit, from, bytes, whole);
    }
  }

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

  /// Announces which call `step` belongs to and where its data lies, after put(half) has written
  /// what the others need.
  template <class Wait, class Put>
  void offer(const Job& job, std::uint64_t step, const Wait& wait, const Put& put) {
    if (step >= 2) wait_for_all(&SharedFlags::finished, step - 1, wait);
    own_flags().source[step % 2].store(job.source, std::memory_order_relaxed);
    put(half(own_, step));
    own_flags().ready.store(step + 1, std::memory_order_release);
  }
  /// All-gather, reduce-scatter, all-to-all: write and read. The others' slots in a half are `slot`
  /// bytes apart; an all-gather has one slot for all.
  template <class Wait> void one_way(const Job& job, const Wait& wait) {
    const Call& call = *job.call;
    const bool gathers = call.kind == Collective::all_gather;
    const bool reduces = call.kind == Collective::reduce_scatter;
    const Index slot = gathers ? half_bytes_ : half_bytes_ / size() / 64 * 64;
    const Index most = slot / job.size;  // elements of a piece in one step
    Index longest = 0, whole = 0;        // whole: all bytes that are received
    for (const Piece& piece : call.receive) whole += piece.count * job.size;
    for (const Piece& piece : gathers ? call.receive : call.send)
      longest = max_of(longest, piece.count);
    const auto steps = static_cast<std::uint64_t>(ceil_div(longest, most));
    /// The part of a piece of `count` elements that belongs to this step.
    const auto part = [&](std::uint64_t k, Index count) {
      const Index start = min_of(count, static_cast<Index>(k) * most);
      return std::pair{start, min_of(most, count - start)};
    };
    const auto put = [&](std::uint64_t k) {
      offer(job, step_ + k, wait, [&](std::byte* to) {
        if (job.source != 0) return;
        for (const Piece& piece : call.send) {
          if (!gathers && piece.peer == own_) continue;
          const auto [start, count] = part(k, piece.count);
          stream_bytes(to + (gathers ? 0 : piece.peer * slot),
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
            if (call.own_stays) continue;
            put_bytes(to, job.data + direct * job.size, count * job.size, whole);
            continue;
          }
          wait_for(&SharedFlags::ready, member, step_ + k + 1, wait);
          put_bytes(to, data_of(member, step_ + k, gathers ? 0 : own_ * slot, direct * job.size),
                    count * job.size, whole);
        }
      own_flags().finished.store(step_ + k + 1, std::memory_order_release);
    }
    step_ += steps;
    if (job.source != 0) wait_for_all(&SharedFlags::finished, step_, wait);
  }

  template <class Wait>
  void reduce_scatter_step(const Job& job, std::uint64_t step, std::pair<Index, Index> part,
                           Index slot, const Wait& wait) {
    const auto [start, count] = part;
    const Call& call = *job.call;
    const Index direct =
        (call.send[static_cast<std::size_t>(own_)].offset - job.first + start) * job.size;
    wait_for_all(&SharedFlags::ready, step + 1, wait);
    for (int member = 0; member < size(); ++member)
      sources_[static_cast<std::size_t>(member)] =
          member == own_ ? job.data + direct : data_of(member, step, own_ * slot, direct);
    join(call.type, call.reduction, sources_.data(), size(), count,
         job.receive + (call.receive.front().offset + start) * job.size);
  }

  /// Every member reads all data and reduces for itself, always in the order of the members: one
  /// step, in which nobody waits twice.
  template <class Wait> void small_all_reduce(Job job, const Wait& wait) {
    const Call& call = *job.call;
    const Index n = call.send.front().count;
    job.source = 0;  // in place it is overwritten while others read
    offer(job, step_, wait, [&](std::byte* to) { stream_bytes(to, job.data, n * job.size); });
    wait_for_all(&SharedFlags::ready, step_ + 1, wait);
    for (int member = 0; member < size(); ++member)
      sources_[static_cast<std::size_t>(member)] = member == own_ ? job.data : half(member, step_);
    join(call.type, call.reduction, sources_.data(), size(), n,
         job.receive + call.receive.front().offset * job.size);
    own_flags().finished.store(++step_, std::memory_order_release);
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
    /// The start of a member's part in this step, and its length.
    const auto part = [&](std::uint64_t k, int member) {
      const Index length = min_of(most, n - static_cast<Index>(k) * most);
      const Index block = round_up(ceil_div(length, size()), line);
      const Index start = min_of(length, member * block);
      return std::pair{start, min_of(block, length - start)};
    };
    const auto put = [&](std::uint64_t k) {
      offer(job, step_ + k, wait, [&](std::byte* to) {
        if (job.source != 0) return;
        for (int member = 0; member < size(); ++member)
          if (member != own_) {
            const auto [start, count] = part(k, member);
            stream_bytes(to + start * job.size,
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
      wait_for_all(&SharedFlags::ready, step + 1, wait);
      for (int member = 0; member < size(); ++member)
        sources_[static_cast<std::size_t>(member)] =
            member == own_ ? job.data + (base + start) * job.size
                           : data_of(member, step, start * job.size, (base + start) * job.size);
      join(call.type, call.reduction, sources_.data(), size(), count,
           result + (base + start) * job.size, half(own_, step) + start * job.size);
      own_flags().reduced.store(step + 1, std::memory_order_release);
      if (k + 1 < steps) put(k + 1);
      // In place, data that others still read must not be overwritten: a part is taken once all
      // have reduced.
      wait_for_all(&SharedFlags::reduced, step + 1, wait);
      for (int turn = 1; turn < size(); ++turn) {
        const int member = (own_ + turn) % size();
        const auto [theirs, their_count] = part(k, member);
        put_bytes(result + (base + theirs) * job.size, half(member, step) + theirs * job.size,
                  their_count * job.size, n * job.size);
      }
      own_flags().finished.store(step + 1, std::memory_order_release);
    }
    step_ += steps;
  }

  std::uint64_t step_ = 0;
  std::vector<const void*> sources_;
};

}  // namespace tessera::detail
