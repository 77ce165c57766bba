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
#include <cstddef>
#include <memory>
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
      if (piece.peer != stays) add(piece.offset * unit, piece.count * unit);
    }
    memory_ = new char[static_cast<std::size_t>((end - first) * unit)];
    staged_ = memory_ - first * unit;
  }
  StagedBuffer(const StagedBuffer&) = delete;
  StagedBuffer& operator=(const StagedBuffer&) = delete;
  ~StagedBuffer() { delete[] memory_; }

  char* data() const { return const_cast<char*>(staged_); }
  /// Copies the device's elements here.
  void fetch() const {
    for (const Piece& bytes : bytes_)
      start_copy_to_host(data() + bytes.offset, data_ + bytes.offset, bytes.count);
    if (!bytes_.empty()) fence();
  }
  /// Copies them back.
  void deliver() const {
    for (const Piece& bytes : bytes_)
      start_copy_from_host(const_cast<char*>(data_) + bytes.offset, staged_ + bytes.offset,
                           bytes.count);
    if (!bytes_.empty()) fence();
  }

 private:
  void add(Index begin, Index count) {
    if (!bytes_.empty() && bytes_.back().offset + bytes_.back().count == begin)
      bytes_.back().count += count;
    else
      bytes_.push_back({0, begin, count});
  }

  const char* data_;
  const char* staged_;  ///< where offset 0 would be
  char* memory_ = nullptr;
  std::vector<Piece> bytes_;  ///< what is copied; neighbours are one
};

/// The buffers of a call in host memory.
struct StagedBuffers {
  bool in_place;
  StagedBuffer sent, received;

  StagedBuffers(const Call& call, const void* send, void* receive, OnHost host)
      : in_place(call.in_place),
        sent(call.send, static_cast<Index>(size_of(call.type)), in_place ? nullptr : send,
             host.send),
        received(call.receive, static_cast<Index>(size_of(call.type)), receive, host.receive,
                 call.own_stays ? call.own : -1) {}
  const char* send() const { return in_place ? received.data() : sent.data(); }
  void fetch() const { (in_place ? received : sent).fetch(); }
};

/// A call in progress between copies.
class StagedPending final : public PendingCall {
 public:
  StagedPending(Group& group, const Call& call, const void* send, void* receive, OnHost host)
      : buffers_(call, send, receive, host) {
    buffers_.fetch();
    call_ = group.start(call, buffers_.send(), buffers_.received.data());
    if (call_ == nullptr) buffers_.received.deliver();
  }
  bool over() const { return call_ == nullptr; }
  bool done() override {
    if (over()) return true;
    if (!call_->done()) return false;
    end();
    return true;
  }
  void wait() override {
    if (over()) return;
    call_->wait();
    end();
  }

 private:
  void end() {
    call_.reset();
    buffers_.received.deliver();
  }
  StagedBuffers buffers_;
  std::unique_ptr<PendingCall> call_;  ///< ends before its buffers
};

class StagedRepeated final : public RepeatedCall {
 public:
  StagedRepeated(Group& group, const Call& call, const void* send, void* receive, OnHost host)
      : buffers_(call, send, receive, host),
        call_(group.repeated(call, buffers_.send(), buffers_.received.data())) {}
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
    buffers_.received.deliver();
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
  group.run(call, buffers.send(), buffers.received.data());
  buffers.received.deliver();
}
inline std::unique_ptr<PendingCall> start_call(Group& group, const Call& call, const void* send,
                                               void* receive, OnHost host) {
  if (!stages(group)) return group.start(call, send, receive);
  auto* const staged = new StagedPending(group, call, send, receive, host);
  std::unique_ptr<PendingCall> pending(staged);
  if (staged->over()) pending.reset();
  return pending;
}
inline std::unique_ptr<RepeatedCall> repeat_call(Group& group, const Call& call, const void* send,
                                                 void* receive, OnHost host) {
  if (!stages(group)) return group.repeated(call, send, receive);
  return std::unique_ptr<RepeatedCall>(new StagedRepeated(group, call, send, receive, host));
}

}  // namespace tessera::detail
