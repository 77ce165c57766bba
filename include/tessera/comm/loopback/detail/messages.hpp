// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Messages between the members of a loopback group: the halves of exchanges that their members
/// start by themselves (Call::channel).
///
///     auto numbers = messages.post(call, send, receive);     // waits for nobody
///     messages.awaited(numbers) < 0;                         // all have been copied
///
/// Laws: messages of one channel from one member to another are received in the order in which they
/// were sent; a half is done when all of its messages have been copied, by whichever side comes
/// last.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/mesh/call.hpp>

namespace tessera::detail {

class LoopbackMessages {
 public:
  /// Posts the ends of a call's messages, and returns their numbers. Throws MismatchError where a
  /// message that waits for one of them has another size.
  std::vector<std::uint64_t> post(const Call& call, const void* send, void* receive) {
    const Index size = static_cast<Index>(size_of(call.type));
    std::vector<std::uint64_t> numbers;
    const std::lock_guard lock(mutex_);
    for (const Piece& piece : call.receive)
      if (piece.count > 0)
        numbers.push_back(
            add({0, piece.peer, call.own, call.channel, nullptr,
                 static_cast<std::byte*>(receive) + piece.offset * size, piece.count * size}));
    for (const Piece& piece : call.send)
      if (piece.count > 0)
        numbers.push_back(add({0, call.own, piece.peer, call.channel,
                               static_cast<const std::byte*>(send) + piece.offset * size, nullptr,
                               piece.count * size}));
    return numbers;
  }
  /// Returns the member that one of these ends waits for, or -1.
  int awaited(const std::vector<std::uint64_t>& numbers) {
    const std::lock_guard lock(mutex_);
    for (const End& end : waiting_)
      if (is_among(end, numbers)) return end.receives() ? end.sender : end.receiver;
    return -1;
  }
  /// Their buffers are no longer there.
  void forget(const std::vector<std::uint64_t>& numbers) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = waiting_.size(); i-- > 0;)
      if (is_among(waiting_[i], numbers)) take(i);
  }

 private:
  /// One end of a message.
  struct End {
    std::uint64_t number;
    int sender, receiver, channel;
    const std::byte* from;  ///< null: it receives
    std::byte* to;
    Index bytes;

    bool receives() const { return from == nullptr; }
    bool meets(const End& other) const {
      return sender == other.sender && receiver == other.receiver && channel == other.channel &&
             receives() != other.receives();
    }
  };
  static bool is_among(const End& end, const std::vector<std::uint64_t>& numbers) {
    for (const std::uint64_t number : numbers)
      if (number == end.number) return true;
    return false;
  }

  std::uint64_t add(End end) {
    end.number = ++last_;
    std::size_t i = 0;
    while (i < waiting_.size() && !waiting_[i].meets(end)) ++i;
    if (i == waiting_.size()) {
      waiting_.push_back(end);
      return end.number;
    }
    const End& sent = end.receives() ? waiting_[i] : end;
    const End& expected = end.receives() ? end : waiting_[i];
    if (sent.bytes != expected.bytes)
      throw MismatchError("process " + std::to_string(end.sender) + " of the group sends " +
                          std::to_string(sent.bytes) + " bytes to process " +
                          std::to_string(end.receiver) + ", which expects " +
                          std::to_string(expected.bytes) + "; both plan the same exchange");
    std::memcpy(expected.to, sent.from, static_cast<std::size_t>(end.bytes));
    take(i);
    return end.number;
  }
  void take(std::size_t i) {
    for (; i + 1 < waiting_.size(); ++i) waiting_[i] = waiting_[i + 1];
    waiting_.pop_back();
  }

  std::mutex mutex_;
  std::vector<End> waiting_;  ///< in the order in which they were posted
  std::uint64_t last_ = 0;
};

}  // namespace tessera::detail
