// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The shared state of the threads of one loopback run: their groups, their blackboard, and the
/// first failure, which ends everybody else's wait.
///
///     world.fail({2, "out of memory"});        // process 2 ends; the others' waits throw
///
/// Laws: the first failure stays; the caller of fail() or end() holds no lock of a group.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/comm/blackboard.hpp>
#include <tessera/comm/loopback/detail/room.hpp>

namespace tessera::detail {

class LoopbackWorld {
 public:
  explicit LoopbackWorld(int size)
      : memory_(std::calloc(Blackboard::bytes_for(size) + alignment, 1)),
        board_(aligned(memory_.get()), slots(size)),
        alarm_(size) {}

  int size() const { return board_.size(); }
  Blackboard& board() { return board_; }
  LoopbackAlarm& alarm() { return alarm_; }

  /// Returns the room where these processes meet under this key; the first to ask makes it.
  std::shared_ptr<LoopbackRoom> room(std::uint64_t context, std::uint64_t key,
                                     const std::vector<int>& members) {
    const std::lock_guard lock(mutex_);
    if (rooms_.size() >= sweep_at_) {  // rooms of meshes that have ended
      std::erase_if(rooms_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = 2 * rooms_.size() + 64;
    }
    std::weak_ptr<LoopbackRoom>& place = rooms_[{context, key, members}];
    std::shared_ptr<LoopbackRoom> room = place.lock();
    if (room == nullptr) place = room = std::make_shared<LoopbackRoom>(members, alarm_, board_);
    return room;
  }

  /// Records a failure, unless there is one already, and wakes everybody. Returns whether it was
  /// the first.
  bool fail(LoopbackFailure failure) {
    const bool first = alarm_.raise(std::move(failure));
    if (first)
      for (const auto& room : all_rooms()) room->wake();
    return first;
  }

  /// Process `process` has returned: whoever waits for it waits in vain.
  void end(int process) {
    board_.end(process);
    alarm_.end(process);
    for (const auto& room : all_rooms())
      if (std::string text = room->waits_for_ended(); !text.empty()) {
        fail({process, LoopbackFailure::Kind::late, std::move(text), nullptr});
        return;
      }
  }

 private:
  static std::vector<int> slots(int size) {
    std::vector<int> slot;
    for (int i = 0; i < size; ++i) slot.push_back(i);
    return slot;
  }
  std::vector<std::shared_ptr<LoopbackRoom>> all_rooms() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<LoopbackRoom>> rooms;
    for (const auto& entry : rooms_)
      if (auto room = entry.second.lock()) rooms.push_back(std::move(room));
    return rooms;
  }

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  static constexpr std::size_t alignment = 64;
  static void* aligned(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    std::size_t room = 2 * alignment;
    return std::align(alignment, alignment, memory, room);
  }
  std::unique_ptr<void, Free> memory_;  // zero until written; unwritten pages take no memory
  Blackboard board_;
  LoopbackAlarm alarm_;
  std::mutex mutex_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::vector<int>>, std::weak_ptr<LoopbackRoom>>
      rooms_;
  std::size_t sweep_at_ = 64;
};

}  // namespace tessera::detail
