// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Notices from its own thread that a call takes longer than the limit, since a process that spins
/// in a blocking call cannot. comm/blackboard.hpp tells what everybody did last.
///
///     detail::Watchdog dog([] { std::abort(); });      // what ends the job
///     dog.enter(600);  MPI_Barrier(comm);  dog.leave();
///
/// Laws: `late` is called at most once, from another thread, and only during a call; with limit 0,
/// never. `look` is called four times a second during a long call: it may find out earlier that the
/// others will not come.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <tessera/comm/blackboard.hpp>

namespace tessera::detail {

class Watchdog {
 public:
  explicit Watchdog(std::function<void()> late, std::function<void()> look = {})
      : late_(std::move(late)), look_(std::move(look)) {}
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() { stop(); }

  /// Returns the limit of the present call in seconds.
  double limit() const { return limit_.load(std::memory_order_relaxed); }

  /// Marks the start of a call. The thread starts with the first call that has a limit or needs
  /// `look`. Only one thread of the process may make calls.
  void enter(double limit) {
    if (limit != limit_.load(std::memory_order_relaxed)) change_limit(limit);
    entered_.store(detail::steady_nanoseconds(), std::memory_order_relaxed);
    if (!running_ && (limit > 0 || look_)) {
      running_ = true;
      thread_ = std::thread([this] { watch(); });
    }
  }
  void leave() { entered_.store(0, std::memory_order_relaxed); }

  /// Returns whether the present call has taken longer than its limit.
  bool overdue() const { return limit() > 0 && waited() > limit(); }
  /// Returns how long the present call has taken, in seconds.
  double waited() const {
    const std::int64_t entered = entered_.load(std::memory_order_relaxed);
    return entered == 0 ? 0 : 1e-9 * static_cast<double>(detail::steady_nanoseconds() - entered);
  }

  /// Ends the thread, after which nothing is watched.
  void stop() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void change_limit(double limit) {
    {
      const std::lock_guard lock(mutex_);
      limit_.store(limit, std::memory_order_relaxed);
      ++changes_;
    }
    wake_.notify_all();
  }

  void watch() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      const double least = look_ ? 0.25 : 10;
      const double tenth = limit() <= 0 || limit() > 10 * least ? least
                           : limit() < 0.2                      ? 0.02
                                                                : limit() / 10;
      const int changes = changes_;
      wake_.wait_for(lock, std::chrono::duration<double>(tenth),
                     [&] { return stopping_ || changes_ != changes; });
      if (!stopping_ && look_ && waited() > 0.25) {
        lock.unlock();
        look_();
        lock.lock();
      }
      if (!stopping_ && overdue()) {
        lock.unlock();
        late_();
        return;
      }
    }
  }

  std::function<void()> late_;
  std::function<void()> look_;
  std::atomic<double> limit_{0};
  std::atomic<std::int64_t> entered_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  int changes_ = 0;
  bool running_ = false;
  std::thread thread_;
};

/// Returns the message of a job that ends because some process does not come.
inline std::string late_message(int process, double limit, const Blackboard& board) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g s", limit);
  return "process " + std::to_string(process) + " has waited longer than the limit of " + seconds +
         " for the others; the calls of all processes must be the same, in the same order. What "
         "each did last:" +
         board.report() +
         "\nIf a step may take longer, raise the limit: TESSERA_TIME_LIMIT=<seconds>, 0 for none.";
}
}  // namespace tessera::detail
