// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A loopback run: a thread for each process, and their end.
///
///     LoopbackRun<>::threads(4, program, f, {});
///
/// Laws: those of comm/loopback/loopback.hpp.
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/loopback/detail/transport.hpp>
#include <tessera/comm/loopback/loopback.hpp>

namespace tessera::detail {

static_assert(max_loopback_processes <= max_parties);

/// Counts the finished threads of a run.
class Finish {
 public:
  void one_more() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  /// Waits until `count` threads have finished, or `give_up`, called every tenth of a second,
  /// returns true. Returns whether they have finished.
  template <class F> bool wait_for(int count, F give_up) {
    std::unique_lock lock(mutex_);
    while (
        !changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return count_ >= count; }))
      if (give_up()) return false;
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

inline std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

template <class Any>
void LoopbackRun<Any>::threads(int processes, LoopbackProgram program, void* f,
                               const LoopbackOptions& options) {
  if (processes < 1 || processes > max_loopback_processes)
    throw UsageError("run_loopback was asked for " + std::to_string(processes) +
                     " processes; it takes 1 to " + std::to_string(max_loopback_processes));
  TransportSettings settings = settings_from_environment();
  if (options.time_limit >= 0) settings.time_limit = options.time_limit;
  warn_of_unknown_variables();

  const auto world = std::make_shared<LoopbackWorld>(processes);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(processes));
  Finish finish;
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process)
    threads.emplace_back([&, process] {
      try {
        program(f, std::make_shared<LoopbackTransport>(world, all_members(processes), process, 1,
                                                       settings));
        world->end(process);
      } catch (...) {
        auto& error = errors[static_cast<std::size_t>(process)];
        error = std::current_exception();
        world->fail({process, LoopbackFailure::Kind::exception, what_of(error), nullptr});
        world->end(process);
      }
      finish.one_more();
    });

  std::chrono::steady_clock::time_point since{};
  const bool done = finish.wait_for(processes, [&] {
    if (!world->alarm().raised() || settings.time_limit <= 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (since == std::chrono::steady_clock::time_point{}) since = now;
    return std::chrono::duration<double>(now - since).count() > 2 * settings.time_limit + 1;
  });
  if (!done) {
    std::fprintf(stderr,
                 "[tessera] a process of a loopback run does not end after a failure, so the "
                 "program is ended: %s%s\n",
                 world->alarm().failure().text.c_str(), world->board().report().c_str());
    std::_Exit(3);
  }
  for (std::thread& thread : threads) thread.join();
  if (!world->alarm().raised()) return;
  const LoopbackFailure& failure = world->alarm().failure();
  if (const auto& error = errors[static_cast<std::size_t>(failure.process)])
    std::rethrow_exception(error);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

TESSERA_INSTANTIATE(struct LoopbackRun<void>)

}  // namespace tessera::detail
