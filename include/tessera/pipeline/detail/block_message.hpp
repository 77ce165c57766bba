// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Messages between the parts of a mesh: process k of one part sends its block of a tensor to
/// process k of another, which lays it out alike. Each flow has a channel of its own, so that what
/// one process sends in an order of its own meets what the other expects.
///
///     BlockMessages messages(whole, own_part, where);
///     messages.send(flow, micro_batch, x, there);           // waits for nobody
///     messages.receive(flow, micro_batch, y, from);         // y has memory
///     messages.finish_receiving(flow, micro_batch);         // now y has its values
///
/// Laws: only the two processes of a message make a call; memory that MPI may still read or write
/// is not freed, whatever is thrown.
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/mesh_core.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/mesh/machine.hpp>
#include <tessera/tensor/part_core.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// Returns the number in `whole` of the process of its part `other` that stands where `own` stands
/// in its own.
inline int partner(const MeshCore& own, const MeshCore& other, const MeshCore& whole) {
  return members_in(other, whole)[static_cast<std::size_t>(own.process())];
}

/// Returns how far the farthest message between two parts of `whole` goes.
inline Level level_between(const MeshCore& a, const MeshCore& b, const MeshCore& whole) {
  const Machine& machine = whole.options().machine;
  if (machine.processes_per_node <= 0) return Level::node;
  const std::vector<int> from = members_in(a, whole), to = members_in(b, whole);
  for (std::size_t k = 0; k < from.size(); ++k)
    if (from[k] / machine.processes_per_node != to[k] / machine.processes_per_node)
      return Level::network;
  return Level::node;
}

class BlockMessages {
 public:
  BlockMessages(std::shared_ptr<MeshCore> whole, std::shared_ptr<MeshCore> own, Where where)
      : whole_(std::move(whole)), own_(std::move(own)), where_(where) {}
  BlockMessages(const BlockMessages&) = delete;
  BlockMessages& operator=(const BlockMessages&) = delete;
  ~BlockMessages() {
    if (under_way_.empty()) return;
    whole_->poison("an exception passed while messages between stages were under way");
    for (UnderWay& one : under_way_) {  // MPI may still use their memory
      (void)one.pending.release();
      (void)new TensorCore(std::move(one.tensor));
    }
  }

  void send(int flow, int micro_batch, const TensorCore& x, const MeshCore& to) {
    if (x.halo() != nullptr)
      throw UsageError(
          "a tensor within a halo goes from stage to stage; a halo exchange and what reads it "
          "belong "
          "to one stage",
          where_);
    start(flow, micro_batch, x, partner(*own_, to, *whole_), true);
  }
  /// x will have the values.
  void receive(int flow, int micro_batch, const TensorCore& x, const MeshCore& from) {
    start(flow, micro_batch, x, partner(*own_, from, *whole_), false);
  }
  /// Lets messages that are under way go on: MPI moves large ones while it is called, and a process
  /// that computes calls it here.
  void progress() {
    for (UnderWay& one : under_way_)
      if (one.pending != nullptr) (void)one.pending->done();
  }
  void finish_sending(int flow, int micro_batch) { finish(flow, micro_batch, true); }
  void finish_receiving(int flow, int micro_batch) { finish(flow, micro_batch, false); }

 private:
  struct UnderWay {
    int flow, micro_batch;
    bool sends;
    TensorCore tensor;
    Call call;
    std::unique_ptr<PendingCall> pending;
  };
  static constexpr std::string_view label = "a message between stages";

  void start(int flow, int micro_batch, const TensorCore& x, int peer, bool sends) {
    UnderWay& one = under_way_.emplace_back(
        UnderWay{flow, micro_batch, sends, x, call_of(flow, x, peer, sends), nullptr});
    if (one.call.bound == 0) return;  // neither of the two has an element of it
    const void* const from = sends ? x.read() : nullptr;
    void* const to = sends ? nullptr : x.data();
    if (!whole_->dry()) fence();
    one.pending = whole_->start(one.call, from, to, label, where_);
  }
  Call call_of(int flow, const TensorCore& x, int peer, bool sends) const {
    Call call;
    call.kind = Collective::exchange;
    call.group = whole_->shape().axes();
    call.type = x.type();
    call.own = whole_->process();
    call.members = whole_->shape().processes();
    call.channel = 1 + flow;
    const Index count = x.local_size();
    if (count > 0) (sends ? call.send : call.receive) = {{peer, 0, count}};
    const std::int64_t node = whole_->options().machine.processes_per_node;
    if (sends && node > 0 && call.own / node != peer / node) call.network = count;
    call.bound = count;
    return call;
  }
  void finish(int flow, int micro_batch, bool sends) {
    for (std::size_t i = 0; i < under_way_.size();) {
      UnderWay& one = under_way_[i];
      if (one.flow != flow || one.micro_batch != micro_batch || one.sends != sends) {
        ++i;
        continue;
      }
      if (one.pending != nullptr) whole_->finish(*one.pending, one.call, label, where_);
      under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  std::shared_ptr<MeshCore> whole_, own_;
  Where where_;
  std::vector<UnderWay> under_way_;
};

}  // namespace tessera::detail
