// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Calls between buffers in the memory of the kernels. Where that is a device's, and the transport
/// takes host memory alone, a call is made between copies in host memory.
///
///     detail::run_call(group, call, block, result, {});      // block and result: device memory
///
/// Laws: what a call writes is what it would write without the copies; elements of the receive
/// buffer that the call does not name stay as they are. Where kernels' memory is the host's,
/// nothing here costs anything.
#include <memory>
#include <utility>
#include <vector>

#include <tessera/comm/device_memory.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/kernel/host_copy.hpp>

namespace tessera::detail {

/// Which buffers of a call lie in host memory, wherever kernels run.
struct OnHost {
  bool send = false;
  bool receive = false;
};

/// Host memory in place of what a call uses of a buffer, at the same offsets.
class StagedBuffer {
 public:
  StagedBuffer() = default;
  /// A piece of member `stays` may be written and is not copied back.
  StagedBuffer(const std::vector<Piece>& pieces, Index unit, const void* data, bool on_host,
               int stays = -1)
      : data_(static_cast<const char*>(data)), staged_(data_) {
    if (on_host || data == nullptr) return;
    Index first = 0, end = 0;
    for (const Piece& piece : pieces) {
      if (piece.count == 0) continue;
      first = end == 0 ? piece.offset : min_of(first, piece.offset);
      end = max_of(end, piece.offset + piece.count);
    }
    memory_.reset(new char[static_cast<std::size_t>((end - first) * unit)]);
    staged_ = memory_.get() - first * unit;
    for (const Piece& piece : pieces)
      if (piece.peer != stays) add(piece.offset * unit, piece.count * unit);
  }

  const void* data() const { return staged_; }
  void* writable() const { return const_cast<char*>(staged_); }
  /// Begins to copy the device's elements here.
  void fetch() const {
    for (const Range& range : ranges_)
      start_copy_to_host(const_cast<char*>(staged_) + range.begin, data_ + range.begin,
                         range.bytes);
  }
  /// Begins to copy them back.
  void deliver() const {
    for (const Range& range : ranges_)
      start_copy_from_host(const_cast<char*>(data_) + range.begin, staged_ + range.begin,
                           range.bytes);
  }
  bool empty() const { return ranges_.empty(); }

 private:
  struct Range {
    Index begin, bytes;
  };
  void add(Index begin, Index bytes) {
    if (bytes == 0) return;
    if (!ranges_.empty() && ranges_.back().begin + ranges_.back().bytes == begin)
      ranges_.back().bytes += bytes;
    else
      ranges_.push_back({begin, bytes});
  }

  const char* data_ = nullptr;
  const char* staged_ = nullptr;  ///< where offset 0 would be
  std::unique_ptr<char[]> memory_;
  std::vector<Range> ranges_;
};

/// The buffers of a call in host memory.
class StagedBuffers {
 public:
  StagedBuffers(const Call& call, const void* send, void* receive, OnHost host)
      : in_place_(call.in_place) {
    const auto unit = static_cast<Index>(size_of(call.type));
    received_ =
        StagedBuffer(call.receive, unit, receive, host.receive, call.own_stays ? call.own : -1);
    if (!in_place_) sent_ = StagedBuffer(call.send, unit, send, host.send);
  }

  const void* send() const { return in_place_ ? received_.data() : sent_.data(); }
  void* receive() const { return received_.writable(); }
  /// Copies what is sent from the device.
  void fetch() const {
    const StagedBuffer& from = in_place_ ? received_ : sent_;
    from.fetch();
    if (!from.empty()) fence();
  }
  /// Copies what has come to the device.
  void deliver() const {
    received_.deliver();
    if (!received_.empty()) fence();
  }

 private:
  bool in_place_;
  StagedBuffer sent_, received_;
};

/// A call in progress between copies.
class StagedPending final : public PendingCall {
 public:
  StagedPending(std::unique_ptr<StagedBuffers> buffers, std::unique_ptr<PendingCall> call)
      : buffers_(std::move(buffers)), call_(std::move(call)) {}
  bool done() override {
    if (call_ == nullptr) return true;
    if (!call_->done()) return false;
    end();
    return true;
  }
  void wait() override {
    if (call_ == nullptr) return;
    call_->wait();
    end();
  }

 private:
  void end() {
    call_.reset();
    buffers_->deliver();
  }
  std::unique_ptr<StagedBuffers> buffers_;
  std::unique_ptr<PendingCall> call_;  ///< ends before its buffers
};

class StagedRepeated final : public RepeatedCall {
 public:
  StagedRepeated(Group& group, const Call& call, const void* send, void* receive, OnHost host)
      : buffers_(call, send, receive, host),
        call_(group.repeated(call, buffers_.send(), buffers_.receive())) {}
  void start() override {
    buffers_.fetch();
    call_->start();
    under_way_ = true;
  }
  bool done() override {
    if (!under_way_) return true;
    if (!call_->done()) return false;
    end();
    return true;
  }
  void wait() override {
    if (!under_way_) return;
    call_->wait();
    end();
  }

 private:
  void end() {
    under_way_ = false;
    buffers_.deliver();
  }
  StagedBuffers buffers_;
  std::unique_ptr<RepeatedCall> call_;
  bool under_way_ = false;
};

/// Whether calls of the group go by copies in host memory.
inline bool stages(const Group& group) {
  return !default_memory_is_host && !group.takes_device_memory();
}

/// Group::run, start and repeated for buffers in the kernels' memory, but for those `host` names.
inline void run_call(Group& group, const Call& call, const void* send, void* receive, OnHost host) {
  if (!stages(group)) return group.run(call, send, receive);
  const StagedBuffers buffers(call, send, receive, host);
  buffers.fetch();
  group.run(call, buffers.send(), buffers.receive());
  buffers.deliver();
}
inline std::unique_ptr<PendingCall> start_call(Group& group, const Call& call, const void* send,
                                               void* receive, OnHost host) {
  if (!stages(group)) return group.start(call, send, receive);
  auto buffers = std::make_unique<StagedBuffers>(call, send, receive, host);
  buffers->fetch();
  auto pending = group.start(call, buffers->send(), buffers->receive());
  if (pending != nullptr)
    return std::make_unique<StagedPending>(std::move(buffers), std::move(pending));
  buffers->deliver();
  return nullptr;
}
inline std::unique_ptr<RepeatedCall> repeat_call(Group& group, const Call& call, const void* send,
                                                 void* receive, OnHost host) {
  if (!stages(group)) return group.repeated(call, send, receive);
  return std::make_unique<StagedRepeated>(group, call, send, receive, host);
}

}  // namespace tessera::detail
