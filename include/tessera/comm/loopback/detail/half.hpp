// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One member's half of an exchange of a loopback run, under way.
///
///     std::unique_ptr<PendingCall> half = group.start(call, send, receive);   // with call.channel > 0
///
/// Laws: a failure of any process ends its wait, and the end of one that it waits for too.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/loopback/detail/messages.hpp>
#include <tessera/comm/loopback/detail/world.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

/// One member's half of an exchange.
class LoopbackHalf final : public PendingCall {
 public:
  LoopbackHalf(std::shared_ptr<LoopbackWorld> world, std::shared_ptr<LoopbackRoom> room,
               std::vector<std::uint64_t> ends, int process, double time_limit)
      : world_(std::move(world)),
        room_(std::move(room)),
        ends_(std::move(ends)),
        process_(process),
        time_limit_(time_limit) {}
  ~LoopbackHalf() override { room_->messages().forget(ends_); }

  bool done() override { return room_->messages().awaited(ends_) < 0; }
  void wait() override {
    const auto start = std::chrono::steady_clock::now();
    for (int turns = 0; !done(); ++turns) {
      const LoopbackAlarm& alarm = world_->alarm();
      if (alarm.raised())
        throw CommunicationError("process " + std::to_string(alarm.failure().process) +
                                 " failed while process " + std::to_string(process_) +
                                 " waited for a message: " + alarm.failure().text);
      if (turns < 200) {
        std::this_thread::yield();
        continue;
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(turns < 2000 ? 5e-5 : 1e-3));
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (waited.count() > 0.25) require_living();
      if (time_limit_ > 0 && waited.count() > time_limit_)
        end(late_message(process_, time_limit_, world_->board()));
    }
  }

 private:
  /// Who has ended sends and receives nothing more.
  void require_living() {
    const int awaited = room_->messages().awaited(ends_);
    if (awaited < 0) return;
    const int peer = room_->members()[static_cast<std::size_t>(awaited)];
    if (!world_->alarm().has_ended(peer) || done()) return;
    end("process " + std::to_string(peer) + " has ended, but process " + std::to_string(process_) +
        " waits for a message between them");
  }
  [[noreturn]] void end(const std::string& text) {
    world_->fail({process_, LoopbackFailure::Kind::late, text, nullptr});
    throw CommunicationError(text);
  }

  std::shared_ptr<LoopbackWorld> world_;
  std::shared_ptr<LoopbackRoom> room_;
  std::vector<std::uint64_t> ends_;
  int process_;
  double time_limit_;
};

}  // namespace tessera::detail
