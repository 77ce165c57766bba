// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A group of a loopback run, and a block of memory that its members read where it lies.
///
///     std::shared_ptr<Group> group = transport.group({0, 2}, key);
///
/// Laws: a failure that a member finds ends the waits of all.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/loopback/detail/half.hpp>
#include <tessera/comm/loopback/detail/world.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

class LoopbackGroup final : public Group {
 public:
  LoopbackGroup(std::shared_ptr<LoopbackWorld> world, std::shared_ptr<LoopbackRoom> room, int own,
                int process, const TransportSettings& settings)
      : world_(std::move(world)),
        room_(std::move(room)),
        own_(own),
        process_(process),
        time_limit_(settings.time_limit),
        shares_(settings.shared == Shared::on) {}

  int own() const override { return own_; }
  int size() const override { return room_->size(); }

  void run(const Call& call, const void* send, void* receive) override {
    LoopbackFailure found;
    const LoopbackRoom::Outcome outcome =
        room_->meet(own_, call, send, receive, time_limit_, found);
    if (outcome == LoopbackRoom::Outcome::done) return;
    if (outcome == LoopbackRoom::Outcome::found) world_->fail(std::move(found));
    raise(world_->alarm().failure());
  }

  std::unique_ptr<PendingCall> start(const Call& call, const void* send, void* receive) override {
    if (call.channel == 0) return Group::start(call, send, receive);
    return std::unique_ptr<PendingCall>(new LoopbackHalf(
        world_, room_, room_->messages().post(call, send, receive), process_, time_limit_));
  }

  /// Only where it is `on`: the threads of a process can read all memory without it.
  inline std::unique_ptr<SharedBlock> share(const void* block, Index bytes) override;

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
  int own_;
  int process_;
  double time_limit_;
  bool shares_;
};

/// The members' turns live as long as any member reads them.
class LoopbackSharedBlock final : public SharedBlock {
 public:
  using Turns = std::shared_ptr<SharedTurns>;
  LoopbackSharedBlock(std::shared_ptr<LoopbackWorld> world, int process, double time_limit, int own,
                      std::vector<Turns> turns, std::vector<Member> members)
      : SharedBlock(own, *turns[static_cast<std::size_t>(own)], std::move(members),
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
  call.own = own_;
  call.members = size();
  call.send = {{own_, 0, 2}};
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
  return std::make_unique<LoopbackSharedBlock>(world_, process_, time_limit_, own_,
                                               std::move(turns), std::move(members));
}

}  // namespace tessera::detail
