// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where the members of one loopback group meet: each leaves its call and waits; the last to arrive
/// checks that the calls fit together and, when they are small, does the work for all. The members
/// share the work of large calls.
///
///     room.meet(member, call, send, receive, time_limit);
///
/// Laws: no member leaves while another reads its buffers; results do not depend on the order in
/// which members arrive.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/blackboard.hpp>
#include <tessera/comm/detail/local_collective.hpp>
#include <tessera/comm/detail/standstill.hpp>
#include <tessera/comm/loopback/detail/messages.hpp>
#include <tessera/comm/watchdog.hpp>

namespace tessera::detail {

/// Why a loopback run ends early.
struct LoopbackFailure {
  enum class Kind { exception, mismatch, late };
  int process = 0;
  Kind kind = Kind::exception;
  std::string text;
  const void* room = nullptr;  ///< the room of a mismatch
};

/// The first failure of a run, and which processes have ended.
class LoopbackAlarm {
 public:
  explicit LoopbackAlarm(int processes) : ended_(static_cast<std::size_t>(processes)) {}

  bool raised() const { return raised_.load(std::memory_order_acquire); }
  bool raise(LoopbackFailure failure) {
    const std::lock_guard lock(mutex_);
    if (raised()) return false;
    failure_ = std::move(failure);
    raised_.store(true, std::memory_order_release);
    return true;
  }
  /// Only after raised().
  const LoopbackFailure& failure() const { return failure_; }

  void end(int process) {
    ended_[static_cast<std::size_t>(process)].store(true, std::memory_order_release);
  }
  bool has_ended(int process) const {
    return ended_[static_cast<std::size_t>(process)].load(std::memory_order_acquire);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> raised_{false};
  LoopbackFailure failure_;
  std::vector<std::atomic<bool>> ended_;
};

class LoopbackRoom {
 public:
  LoopbackRoom(std::vector<int> members, LoopbackAlarm& alarm, Blackboard& board)
      : members_(std::move(members)), parties_(members_.size()), alarm_(alarm), board_(board) {}

  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<int>& members() const { return members_; }
  /// Returns the messages of calls that members make by themselves.
  LoopbackMessages& messages() { return messages_; }

  /// done: the call is made. abandoned: the alarm was raised, the call is not made. found: the call
  /// cannot be made, `found` says why, and the caller raises the alarm (not here, where this room's
  /// lock is held).
  enum class Outcome { done, abandoned, found };

  /// Makes member `own`'s call.
  Outcome meet(int own, const Call& call, const void* send, void* receive, double time_limit,
               LoopbackFailure& found) {
    std::unique_lock lock(mutex_);
    if (alarm_.raised()) return Outcome::abandoned;
    parties_[at(own)] = {&call, static_cast<const std::byte*>(send),
                         static_cast<std::byte*>(receive)};
    ++arrived_;
    const Outcome outcome =
        arrived_ < size() ? wait_for_others(own, lock, time_limit, found) : begin(own, found);
    if (outcome == Outcome::done) {
      if (shared_out_) work_together(own, lock);
    } else {  // a process that leaves takes its call along
      parties_[at(own)] = {};
      --arrived_;
    }
    return outcome;
  }

  /// Wakes all who wait here.
  void wake() {
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

  /// Returns a message when some member waits here for one that has ended, else nothing.
  std::string waits_for_ended() {
    const std::lock_guard lock(mutex_);
    return arrived_ > 0 && !working_ ? absent_and_ended() : std::string();
  }

 private:
  static std::size_t at(int member) { return static_cast<std::size_t>(member); }

  Outcome wait_for_others(int own, std::unique_lock<std::mutex>& lock, double time_limit,
                          LoopbackFailure& found) {
    const auto late = [&](std::string text) {
      found = {members_[at(own)], LoopbackFailure::Kind::late, std::move(text), nullptr};
      return Outcome::found;
    };
    if (std::string text = absent_and_ended(); !text.empty()) return late(std::move(text));
    const std::uint64_t round = round_.load();
    const auto done = [&] { return round_.load() != round || alarm_.raised(); };
    yield_until(lock, done);
    const auto start = std::chrono::steady_clock::now();
    for (double waited = 0;;) {
      constexpr double look = 0.25;
      const double slice =
          time_limit > 0 && time_limit - waited < look ? time_limit - waited : look;
      if (changed_.wait_for(lock, std::chrono::duration<double>(slice), done)) break;
      waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (time_limit > 0 && waited >= time_limit)
        return late(late_message(members_[at(own)], time_limit, board_));
      if (std::string text = standstill(board_, members_[at(own)]); !text.empty())
        return late(std::move(text));
    }
    return round_.load() == round ? Outcome::abandoned : Outcome::done;
  }

  /// Called when all have arrived: checks, and does small work at once.
  Outcome begin(int own, LoopbackFailure& found) {
    std::vector<const Call*>& calls = calls_;
    calls.clear();
    for (const Party& party : parties_) calls.push_back(party.call);
    if (const Disagreement bad = disagreement(calls); bad.first >= 0) {
      found = {members_[at(own)], LoopbackFailure::Kind::mismatch, mismatch_text(bad), this};
      return Outcome::found;
    }
    const Call& call = *parties_.front().call;
    const Index size = static_cast<Index>(size_of(call.type));
    Index volume = 0;
    for (const Party& party : parties_) volume += total_count(party.call->receive) * size;
    shared_out_ = volume > 256 * 1024;
    if (call.kind == Collective::all_reduce)
      scratch_.resize(static_cast<std::size_t>(call.send.front().count * size));
    if (!shared_out_) {
      if (call.kind == Collective::all_reduce) {
        reduce_slice(parties_, 0, call.send.front().count, scratch_.data());
        for (const Party& party : parties_) deliver(party, scratch_.data());
      } else {
        for (int member = 0; member < this->size(); ++member) fill(parties_, member);
      }
    }
    working_ = shared_out_;
    next_round();
    return Outcome::done;
  }

  /// Each member does its part. Failures elsewhere do not end these waits, which are only for
  /// members at work.
  void work_together(int own, std::unique_lock<std::mutex>& lock) {
    const Party& party = parties_[at(own)];
    const bool reduces = party.call->kind == Collective::all_reduce;
    lock.unlock();
    if (reduces) {
      const Index n = party.call->send.front().count;
      const Index first = min_of(n, own * ceil_div(n, size()));
      const Index element = static_cast<Index>(size_of(party.call->type));
      reduce_slice(parties_, first, block_size(n, size(), own), scratch_.data() + first * element);
      lock.lock();
      wait_for_workers(lock);
      lock.unlock();
      deliver(party, scratch_.data());
    } else {
      fill(parties_, own);
    }
    lock.lock();
    wait_for_workers(lock, true);
  }

  void wait_for_workers(std::unique_lock<std::mutex>& lock, bool last = false) {
    const std::uint64_t round = round_.load();
    if (++arrived_ < size()) {
      const auto done = [&] { return round_.load() != round; };
      yield_until(lock, done);
      changed_.wait(lock, done);
    } else {
      if (last) working_ = false;
      next_round();
    }
  }

  /// Lets other threads run a few times before it sleeps: waking up costs ten times as much. On a
  /// busy machine a yield may cost a whole time slice, and one who sleeps is woken up before
  /// others.
  template <class F> static void yield_until(std::unique_lock<std::mutex>& lock, F done) {
    using Clock = std::chrono::steady_clock;
    lock.unlock();
    const auto end = Clock::now() + std::chrono::microseconds(100);
    for (int i = 0; i < 40 && !done() && Clock::now() < end; ++i) std::this_thread::yield();
    lock.lock();
  }

  void next_round() {
    arrived_ = 0;
    if (!working_)
      for (Party& party : parties_) party = {};
    round_.fetch_add(1);
    changed_.notify_all();
  }

  std::string absent_and_ended() const {
    int waiting = -1;
    int ended = -1;
    for (int i = size() - 1; i >= 0; --i) {
      if (parties_[at(i)].call != nullptr)
        waiting = i;
      else if (alarm_.has_ended(members_[at(i)]))
        ended = i;
    }
    if (ended < 0 || waiting < 0) return {};
    const int waits = members_[at(waiting)];
    return "process " + std::to_string(members_[at(ended)]) + " has ended, but process " +
           std::to_string(waits) + " waits for it in " + describe(*parties_[at(waiting)].call) +
           "; all processes must make the same calls. What each did last:" + board_.report();
  }

  std::string mismatch_text(const Disagreement& bad) const {
    const auto who = [&](int member) {
      const int process = members_[at(member)];
      return "process " + std::to_string(process) + " calls " +
             describe(*parties_[at(member)].call) + " (" + board_.describe(process) + ")";
    };
    std::string text = "the calls of two processes do not fit together: " + who(bad.first) + "; " +
                       who(bad.second);
    if (bad.counts)
      text += "; the first has " + std::to_string(bad.sent) +
              " elements for the second, which expects " + std::to_string(bad.expected);
    return text + ". All members of a group must make the same calls, in the same order";
  }

  const std::vector<int> members_;
  LoopbackMessages messages_;
  std::vector<Party> parties_;
  std::vector<const Call*> calls_;
  std::vector<std::byte> scratch_;
  LoopbackAlarm& alarm_;
  Blackboard& board_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint64_t> round_{0};  ///< written under the lock
  int arrived_ = 0;
  bool shared_out_ = false;
  bool working_ = false;
};

}  // namespace tessera::detail
