// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One member's half of an exchange of a loopback run, under way.
///
///     std::unique_ptr<PendingCall> half = group.start(call, send, receive);   // with call.channel > 0
///
/// Laws: a failure of any process ends its wait, and the end of one that it waits for too.
#include <chrono>
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
  LoopbackHalf(std::shared_ptr<LoopbackWorld> world, std::shared_ptr<LoopbackMessages> messages,
               std::vector<int> members, LoopbackMessages::Ends ends, int process,
               double time_limit)
      : world_(std::move(world)),
        messages_(std::move(messages)),
        members_(std::move(members)),
        ends_(std::move(ends)),
        process_(process),
        time_limit_(time_limit) {}
  ~LoopbackHalf() override { messages_->forget(ends_); }

  bool done() override { return messages_->done(ends_); }
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
      std::this_thread::sleep_for(std::chrono::microseconds(turns < 2000 ? 50 : 1000));
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (waited.count() > 0.25) require_living();
      if (time_limit_ > 0 && waited.count() > time_limit_)
        end(late_message(process_, time_limit_, world_->board()));
    }
  }

 private:
  /// Who has ended sends and receives nothing more.
  void require_living() {
    for (const std::shared_ptr<LoopbackMessages::End>& e : ends_) {
      const int peer = members_[static_cast<std::size_t>(e->peer)];
      if (world_->alarm().has_ended(peer) && !done())
        end("process " + std::to_string(peer) + " has ended, but process " +
            std::to_string(process_) + " waits for a message " +
            (e->from == nullptr ? "from it" : "to it to be received"));
    }
  }
  [[noreturn]] void end(const std::string& text) {
    world_->fail({process_, LoopbackFailure::Kind::late, text, nullptr});
    throw CommunicationError(text);
  }

  std::shared_ptr<LoopbackWorld> world_;
  std::shared_ptr<LoopbackMessages> messages_;
  std::vector<int> members_;
  LoopbackMessages::Ends ends_;
  int process_;
  double time_limit_;
};

}  // namespace tessera::detail
