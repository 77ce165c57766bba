// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A collective whose group spans nodes, in calls within nodes and calls between them, so that each
/// element crosses the network as few times as possible. plan/move/move_cost.hpp decides whether
/// that is cheaper.
///
///     all-reduce       reduce-scatter near, all-reduce far, all-gather near
///     reduce-scatter   reduce-scatter near (what goes to one member of each node, together), far
///     all-gather       all-gather far, then near
///     all-to-all       all-to-all near (what goes to one member of each node, together), far
///
/// `near` is the part of the group within a node, `far` the rest: a member is a pair of positions,
/// one in each. Where separate axes stand for nodes and cores, both are plain sets of axes.
///
/// Laws: the result equals that of the single call (floating-point sums up to their order); the
/// payload between nodes is divided by the size of `near`; for an all-to-all it stays the same, in
/// fewer messages.
#include <tessera/plan/work/step_work.hpp>

namespace tessera::detail {

/// Computes one communicate step in levels.
class StagedWork {
 public:
  StagedWork(const Plan& plan, const Step& step)
      : mesh_(plan.mesh),
        at_(mesh_.coordinates(plan.process)),
        step_(step),
        near_(step.near),
        far_(step.near.rest(step.group)),
        nears_(mesh_.group_size(near_)),
        fars_(mesh_.group_size(far_)),
        from_(plan.slots[step.in[0]].desc),
        to_(plan.slots[step.out].desc.sharding),
        mine_(source(at_)),
        wanted_(target(at_)) {}

  StepWork make() {
    switch (step_.collective) {
      case Collective::all_reduce:
        all_reduce();
        break;
      case Collective::reduce_scatter:
        reduce_scatter();
        break;
      case Collective::all_gather:
        all_gather();
        break;
      case Collective::all_to_all:
        all_to_all();
        break;
      case Collective::collective_permute:
      case Collective::exchange:
        break;
    }
    const Index unit = static_cast<Index>(size_of(from_.type));
    work_.send_staging = send_ * unit;
    work_.receive_staging = receive_ * unit;
    return std::move(work_);
  }

 private:
  Box source(const Coordinates& at) const {
    return block(from_.extents, from_.sharding, mesh_, at);
  }
  Box target(const Coordinates& at) const { return block(from_.extents, to_, mesh_, at); }
  Coordinates near_member(int i) const { return mesh_.member(near_, at_, i); }
  /// Returns the member of the group that is i-th of this node, but on the o-th.
  Coordinates member(int o, int i) const { return mesh_.member(far_, near_member(i), o); }
  Coordinates far_member(int o) const { return mesh_.member(far_, at_, o); }

  CallWork call(Collective kind, bool far, bool even, Buffer send, Buffer receive) const {
    CallWork one;
    one.call.kind = kind;
    one.call.group = far ? far_ : near_;
    one.call.type = from_.type;
    if (kind == Collective::all_reduce || kind == Collective::reduce_scatter)
      one.call.reduction = from_.sharding.reduction;
    one.call.even = even;
    one.call.own = mesh_.group_rank(one.call.group, at_);
    one.call.members = far ? fars_ : nears_;
    one.call.bound = saturating_mul(nears_, largest_block(from_, to_, mesh_));
    one.send = send;
    one.receive = receive;
    return one;
  }
  void put(CallWork one) {
    if (one.call.group == far_) one.call.network = payload_elements(one.call);
    if (stages_++ == 0)
      static_cast<CallWork&>(work_) = std::move(one);
    else
      work_.then.push_back(std::move(one));
  }
  /// Appends a piece after the existing pieces; returns where it starts.
  static Index append(std::vector<Piece>& pieces, int peer, Index count) {
    const Index offset = pieces.empty() ? 0 : pieces.back().offset + pieces.back().count;
    pieces.push_back({peer, offset, count});
    return offset;
  }

  /// The block is split as one row of elements, whatever its dimensions are.
  void all_reduce() {
    const Index n = mine_.size();
    const bool even = n % nears_ == 0;
    const int own = mesh_.group_rank(near_, at_);
    send_ = block_size(n, nears_, own);
    CallWork first =
        call(Collective::reduce_scatter, false, even, Buffer::block, Buffer::send_staging);
    CallWork last = call(Collective::all_gather, false, even, Buffer::send_staging, Buffer::block);
    for (int i = 0; i < nears_; ++i) {
      append(first.call.send, i, block_size(n, nears_, i));
      append(last.call.receive, i, block_size(n, nears_, i));
    }
    first.call.receive = last.call.send = {{own, 0, send_}};
    put(std::move(first));
    CallWork middle =
        call(Collective::all_reduce, true, false, Buffer::send_staging, Buffer::send_staging);
    middle.call.in_place = true;
    middle.call.send = middle.call.receive = {{middle.call.own, 0, send_}};
    put(std::move(middle));
    put(std::move(last));
  }

  void reduce_scatter() {
    CallWork first = call(Collective::reduce_scatter, false, step_.even, Buffer::send_staging,
                          Buffer::receive_staging);
    for (int i = 0; i < nears_; ++i) {
      const Index before = send_;
      for (int o = 0; o < fars_; ++o) pack(first, target(member(o, i)), mine_);
      append(first.call.send, i, send_ - before);
    }
    CallWork second =
        call(Collective::reduce_scatter, true, step_.even, Buffer::receive_staging, Buffer::block);
    for (int o = 0; o < fars_; ++o) {
      const Index count = target(far_member(o)).size();
      append(second.call.send, o, count);
      receive_ += count;
    }
    first.call.receive = {{first.call.own, 0, receive_}};
    second.call.receive = {{second.call.own, 0, wanted_.size()}};
    put(std::move(first));
    put(std::move(second));
  }

  void all_gather() {
    CallWork first =
        call(Collective::all_gather, true, step_.even, Buffer::block, Buffer::send_staging);
    first.call.send = {{first.call.own, 0, mine_.size()}};
    for (int o = 0; o < fars_; ++o) {
      const Index count = source(far_member(o)).size();
      append(first.call.receive, o, count);
      send_ += count;
    }
    put(std::move(first));
    CallWork second = call(Collective::all_gather, false, step_.even, Buffer::send_staging,
                           Buffer::receive_staging);
    second.call.send = {{second.call.own, 0, send_}};
    for (int i = 0; i < nears_; ++i) {
      const Index before = receive_;
      for (int o = 0; o < fars_; ++o) unpack(second, source(member(o, i)));
      append(second.call.receive, i, receive_ - before);
    }
    put(std::move(second));
  }

  void all_to_all() {
    CallWork first = call(Collective::all_to_all, false, step_.even, Buffer::send_staging,
                          Buffer::receive_staging);
    for (int i = 0; i < nears_; ++i) {
      const Index before = send_;
      for (int o = 0; o < fars_; ++o) pack(first, intersect(mine_, target(member(o, i))), mine_);
      append(first.call.send, i, send_ - before);
    }
    // Arrives by sender, and for each sender by the node it goes to; leaves by node.
    std::vector<Index> start(static_cast<std::size_t>(nears_ * fars_));
    std::vector<Index> count(start.size());
    Index gathered = 0;
    for (int i = 0; i < nears_; ++i) {
      const Index before = gathered;
      for (int o = 0; o < fars_; ++o) {
        const auto k = static_cast<std::size_t>(i * fars_ + o);
        start[k] = gathered;
        count[k] = intersect(source(near_member(i)), target(far_member(o))).size();
        gathered += count[k];
      }
      append(first.call.receive, i, gathered - before);
    }
    put(std::move(first));
    CallWork second = call(Collective::all_to_all, true, step_.even, Buffer::send_staging,
                           Buffer::receive_staging);
    Index packed = 0;
    for (int o = 0; o < fars_; ++o) {
      const Index before = packed;
      for (int i = 0; i < nears_; ++i) {
        const auto k = static_cast<std::size_t>(i * fars_ + o);
        if (count[k] > 0) {
          StridedCopy copy{.extents = {count[k]}, .from_strides = {1}, .to_strides = {1}};
          copy.from_offset = start[k];
          copy.to_offset = packed;
          second.pack.push_back(copy);
        }
        packed += count[k];
      }
      append(second.call.send, o, packed - before);
    }
    for (int o = 0; o < fars_; ++o) {
      const Index before = receive_;
      for (int i = 0; i < nears_; ++i) unpack(second, intersect(source(member(o, i)), wanted_));
      append(second.call.receive, o, receive_ - before);
    }
    put(std::move(second));
    send_ = max_of(send_, gathered);
    receive_ = max_of(receive_, gathered);
  }

  void pack(CallWork& one, const Box& box, const Box& source) {
    if (!box.empty()) one.pack.push_back(pack_copy(box, source, send_));
    send_ += box.size();
  }
  void unpack(CallWork& one, const Box& box) {
    if (!box.empty()) one.unpack.push_back(unpack_copy(box, wanted_, receive_));
    receive_ += box.size();
  }

  MeshShape mesh_;
  Coordinates at_;
  Step step_;
  AxisGroup near_;
  AxisGroup far_;
  int nears_;
  int fars_;
  TensorDesc from_;
  Sharding to_;
  Box mine_;
  Box wanted_;
  StepWork work_;
  int stages_ = 0;
  Index send_ = 0;  ///< elements in the staging buffers
  Index receive_ = 0;
};

}  // namespace tessera::detail
