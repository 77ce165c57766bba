// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// All processes of a mesh as threads of one program, without MPI: the same programs, for
/// exhaustive tests, sanitizers, debuggers, and machines without MPI.
///
///     run_loopback(4, [](std::shared_ptr<Transport> transport) {
///       auto mesh = make_mesh_core(transport, MeshShape{2, 2}, {"data", "model"});
///     });
///
/// Laws: reductions add in the order of the members: the same bits in every run. When one process
/// fails, no other waits forever: each wait ends with an error that names the first failure.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/loopback/detail/world.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {

/// Most processes of a loopback run.
inline constexpr int max_loopback_processes = detail::max_parties;

struct LoopbackOptions {
  /// Seconds that a call may wait for the others; 0: no limit. Negative: TESSERA_TIME_LIMIT, else
  /// 600.
  double time_limit = -1;
};

namespace detail {

class LoopbackGroup final : public Group {
 public:
  LoopbackGroup(std::shared_ptr<LoopbackWorld> world, std::shared_ptr<LoopbackRoom> room, int rank,
                int process, const TransportSettings& settings)
      : world_(std::move(world)),
        room_(std::move(room)),
        rank_(rank),
        process_(process),
        time_limit_(settings.time_limit),
        shares_(settings.windows == Windows::on) {}

  int rank() const override { return rank_; }
  int size() const override { return room_->size(); }

  void run(const Call& call, const void* send, void* receive) override {
    LoopbackFailure found;
    const LoopbackRoom::Outcome outcome =
        room_->meet(rank_, call, send, receive, time_limit_, found);
    if (outcome == LoopbackRoom::Outcome::done) return;
    if (outcome == LoopbackRoom::Outcome::found) world_->fail(std::move(found));
    raise(world_->alarm().failure());
  }

  /// Only where windows are `on`: the threads of a process can read all memory without it.
  std::unique_ptr<SharedBlock> share(const void* block, Index bytes) override;

 private:
  friend class LoopbackSharedBlock;
  [[noreturn]] void raise(const LoopbackFailure& failure) const {
    if (failure.kind == LoopbackFailure::Kind::mismatch && failure.room == room_.get())
      throw MismatchError(failure.text);
    if (failure.kind != LoopbackFailure::Kind::exception) throw CommunicationError(failure.text);
    throw CommunicationError("process " + std::to_string(failure.process) +
                             " failed while process " + std::to_string(process_) +
                             " made a call with others: " + failure.text);
  }

  std::shared_ptr<LoopbackWorld> world_;
  std::shared_ptr<LoopbackRoom> room_;
  int rank_;
  int process_;
  double time_limit_;
  bool shares_;
};

/// The members' turns live as long as any member reads them.
class LoopbackSharedBlock final : public SharedBlock {
 public:
  using Turns = std::shared_ptr<SharedTurns>;
  LoopbackSharedBlock(std::shared_ptr<LoopbackWorld> world, int process, double time_limit,
                      int own_rank, std::vector<Turns> turns, std::vector<Member> members)
      : SharedBlock(own_rank, *turns[static_cast<std::size_t>(own_rank)], std::move(members),
                    ~std::uintptr_t{0}),
        world_(std::move(world)),
        turns_(std::move(turns)),
        process_(process),
        time_limit_(time_limit) {}

 private:
  void wait_until(Come come, const void* what) override {
    const auto start = std::chrono::steady_clock::now();
    double look = 0.25;
    while (!come(what)) {
      std::this_thread::yield();
      if (world_->alarm().raised())
        throw CommunicationError("process " + std::to_string(world_->alarm().failure().process) +
                                 " failed while process " + std::to_string(process_) +
                                 " waited for others: " + world_->alarm().failure().text);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (waited.count() > look) {
        look = waited.count() + 0.25;
        if (std::string text = standstill(world_->board(), process_); !text.empty()) {
          world_->fail({process_, LoopbackFailure::Kind::late, text, nullptr});
          throw CommunicationError(text);
        }
      }
      if (time_limit_ > 0 && waited.count() > time_limit_) {
        world_->fail({process_, LoopbackFailure::Kind::late,
                      late_message(process_, time_limit_, world_->board()), nullptr});
        throw CommunicationError(late_message(process_, time_limit_, world_->board()));
      }
    }
  }

  std::shared_ptr<LoopbackWorld> world_;
  std::vector<Turns> turns_;
  int process_;
  double time_limit_;
};

inline std::unique_ptr<SharedBlock> LoopbackGroup::share(const void* block, Index) {
  if (!shares_) return nullptr;
  using Turns = LoopbackSharedBlock::Turns;
  const Turns own = std::make_shared<SharedTurns>();
  const auto address = [](const void* p) {
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(p));
  };
  const auto count = static_cast<std::size_t>(size());
  std::vector<std::int64_t> facts(2 * count);
  Call call;
  call.kind = Collective::all_gather;
  call.type = DType::i64;
  call.even = true;
  call.own = rank_;
  call.members = size();
  call.send = {{rank_, 0, 2}};
  for (int member = 0; member < size(); ++member) call.receive.push_back({member, 2 * member, 2});
  const std::int64_t mine[2] = {address(block), address(&own)};
  run(call, mine, facts.data());
  std::vector<Turns> turns;
  std::vector<SharedBlock::Member> members;
  for (std::size_t member = 0; member < count; ++member) {
    turns.push_back(*reinterpret_cast<const Turns*>(facts[2 * member + 1]));
    members.push_back(
        {reinterpret_cast<const std::byte*>(facts[2 * member]), turns.back().get(), 0, 0, 0});
  }
  run(control_all_reduce(*this, Reduction::min, 0), nullptr, nullptr);  // all have read `own`
  return std::make_unique<LoopbackSharedBlock>(world_, process_, time_limit_, rank_,
                                               std::move(turns), std::move(members));
}

class LoopbackTransport final : public Transport {
 public:
  /// `processes` are the numbers, in the world, of this transport's processes; `rank` is the index
  /// of this one.
  LoopbackTransport(std::shared_ptr<LoopbackWorld> world, std::vector<int> processes, int rank,
                    std::uint64_t context, const TransportSettings& settings)
      : world_(std::move(world)),
        processes_(std::move(processes)),
        rank_(rank),
        context_(context),
        settings_(settings) {}

  std::string name() const override { return "loopback"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(processes_.size()); }
  std::vector<int> processes() const override { return processes_; }
  const TransportSettings& settings() const override { return settings_; }
  int sharers() const override { return world_->size(); }
  Blackboard* blackboard() override { return &world_->board(); }
  int seat() const override { return in_world(rank_); }
  int seat_of(int rank) const override { return in_world(rank); }
  std::uint64_t makings_id() const override { return context_ | std::uint64_t{1} << 63; }

  std::shared_ptr<Group> group(const std::vector<int>& members, std::uint64_t key) override {
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i] == rank_)
        return std::make_shared<LoopbackGroup>(world_,
                                               world_->room(context_, key, in_world(members)),
                                               static_cast<int>(i), seat(), settings_);
    throw CommunicationError(
        "process " + std::to_string(rank_) +
        " asked for a group that it is not a member of; only members make a group");
  }

  /// All processes duplicate in the same order, so that counting gives them the same context
  /// without communication.
  std::shared_ptr<Transport> duplicate(const TransportSettings& settings) override {
    return std::make_shared<LoopbackTransport>(world_, processes_, rank_,
                                               mix(context_, ++duplicates_), settings);
  }

  void barrier() override {
    if (everybody_ == nullptr) everybody_ = group(all_members(size()), ~std::uint64_t{0});
    everybody_->run(control_all_reduce(*everybody_, Reduction::min, 0), nullptr, nullptr);
  }

  [[noreturn]] void abort(const std::string& message, int) override {
    world_->fail({seat(), LoopbackFailure::Kind::exception, message, nullptr});
    throw CommunicationError(message);
  }

 protected:
  /// The members ask in the same order, so that the list and the number of times that it was asked
  /// for give them the same context without communication.
  std::shared_ptr<Transport> subset(const std::vector<int>& members) override {
    std::uint64_t context = mix(context_, std::uint64_t{0x5AB5'E700'0000'0001u});
    int rank = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      context = mix(context, static_cast<std::uint64_t>(members[i]));
      if (members[i] == rank_) rank = static_cast<int>(i);
    }
    context = mix(context, ++subsets_[members]);
    return std::make_shared<LoopbackTransport>(world_, in_world(members), rank, context, settings_);
  }

 private:
  int in_world(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  std::vector<int> in_world(const std::vector<int>& ranks) const {
    std::vector<int> result;
    for (int rank : ranks) result.push_back(in_world(rank));
    return result;
  }

  std::shared_ptr<LoopbackWorld> world_;
  std::vector<int> processes_;
  int rank_;
  std::uint64_t context_;
  std::uint64_t duplicates_ = 0;
  std::map<std::vector<int>, std::uint64_t> subsets_;
  TransportSettings settings_;
  std::shared_ptr<Group> everybody_;
};

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

}  // namespace detail

/// Calls f(std::shared_ptr<Transport>) on `processes` threads, one for each process, and returns
/// when all have returned. The first failure ends the others' waits (CommunicationError) and is
/// thrown again here. A call waits for its members no longer than the time limit; then all waits
/// end with an error that says what each process did last. A thread that still computes when the
/// limit has passed after a failure cannot be stopped: then the program ends with that message.
/// Throws UsageError unless 1 <= processes <= 64; the first exception of f; CommunicationError and
/// MismatchError as above.
template <class F> void run_loopback(int processes, F f, LoopbackOptions options = {}) {
  if (processes < 1 || processes > max_loopback_processes)
    throw UsageError("run_loopback was asked for " + std::to_string(processes) +
                     " processes; it takes 1 to " + std::to_string(max_loopback_processes));
  TransportSettings settings = detail::settings_from_environment();
  if (options.time_limit >= 0) settings.time_limit = options.time_limit;
  detail::warn_of_unknown_variables();

  const auto world = std::make_shared<detail::LoopbackWorld>(processes);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(processes));
  detail::Finish finish;
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process)
    threads.emplace_back([&, process] {
      try {
        f(std::shared_ptr<Transport>(std::make_shared<detail::LoopbackTransport>(
            world, detail::all_members(processes), process, 1, settings)));
        world->end(process);
      } catch (...) {
        auto& error = errors[static_cast<std::size_t>(process)];
        error = std::current_exception();
        world->fail(
            {process, detail::LoopbackFailure::Kind::exception, detail::what_of(error), nullptr});
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
  const detail::LoopbackFailure& failure = world->alarm().failure();
  if (const auto& error = errors[static_cast<std::size_t>(failure.process)])
    std::rethrow_exception(error);
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace tessera
