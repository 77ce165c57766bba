// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Messages between the members of a loopback group: the halves of exchanges that their members
/// start by themselves (Call::channel).
///
///     auto ends = messages.post(call, send, receive);     // waits for nobody
///     messages.done(ends);
///
/// Laws: messages of one channel from one member to another are received in the order in which they
/// were sent; a half is done when all of its messages have been copied, by whichever side comes
/// last.
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/mesh/call.hpp>

namespace tessera::detail {

class LoopbackMessages {
 public:
  /// One end of a message.
  struct End {
    const std::byte* from = nullptr;  ///< null: it receives
    std::byte* to = nullptr;
    Index bytes = 0;
    int peer = 0;  ///< the other member
    bool done = false;
  };
  using Ends = std::vector<std::shared_ptr<End>>;

  /// Posts the ends of a call's messages. Throws MismatchError where a message that waits for one
  /// of them has another size.
  Ends post(const Call& call, const void* send, void* receive) {
    const Index size = static_cast<Index>(size_of(call.type));
    Ends all;
    const std::lock_guard lock(mutex_);
    for (const Piece& piece : call.receive)
      if (piece.count > 0)
        all.push_back(add({piece.peer, call.own, call.channel},
                          {nullptr, static_cast<std::byte*>(receive) + piece.offset * size,
                           piece.count * size, piece.peer}));
    for (const Piece& piece : call.send)
      if (piece.count > 0)
        all.push_back(add({call.own, piece.peer, call.channel},
                          {static_cast<const std::byte*>(send) + piece.offset * size, nullptr,
                           piece.count * size, piece.peer}));
    return all;
  }
  bool done(const Ends& ends) {
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<End>& end : ends)
      if (!end->done) return false;
    return true;
  }
  /// Their buffers are no longer there.
  void forget(const Ends& ends) {
    const std::lock_guard lock(mutex_);
    for (auto& [way, waiting] : waiting_)
      std::erase_if(waiting, [&](const std::shared_ptr<End>& end) {
        for (const std::shared_ptr<End>& gone : ends)
          if (gone == end) return true;
        return false;
      });
  }

 private:
  using Way = std::tuple<int, int, int>;  ///< sender, receiver, channel

  std::shared_ptr<End> add(const Way& way, const End& end) {
    auto posted = std::make_shared<End>(end);
    std::deque<std::shared_ptr<End>>& waiting = waiting_[way];
    if (waiting.empty() || (waiting.front()->from == nullptr) == (end.from == nullptr)) {
      waiting.push_back(posted);
      return posted;
    }
    End& other = *waiting.front();
    if (other.bytes != end.bytes)
      throw MismatchError("process " + std::to_string(std::get<0>(way)) + " of the group sends " +
                          std::to_string(end.from != nullptr ? end.bytes : other.bytes) +
                          " bytes to process " + std::to_string(std::get<1>(way)) +
                          ", which expects " +
                          std::to_string(end.from != nullptr ? other.bytes : end.bytes) +
                          "; both plan the same exchange");
    std::memcpy(end.from != nullptr ? other.to : end.to,
                end.from != nullptr ? end.from : other.from, static_cast<std::size_t>(end.bytes));
    other.done = posted->done = true;
    waiting.pop_front();
    return posted;
  }

  std::mutex mutex_;
  std::map<Way, std::deque<std::shared_ptr<End>>> waiting_;  ///< all senders, or all receivers
};

}  // namespace tessera::detail
