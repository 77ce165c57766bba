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
#include <utility>
#include <vector>

#include <tessera/plan/move/move_work.hpp>

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
        in_(step.in[0]),
        out_(step.out),
        from_(plan.slots[in_].desc),
        to_(plan.slots[out_].desc.sharding),
        mine_(source(at_)),
        wanted_(target(at_)) {}

  MoveWork make() {
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
      case Collective::broadcast:
        break;
    }
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

  MessageSide packed_out() const { return {Flow::out, false, from_.type, in_}; }
  MessageSide packed_in() const { return {Flow::in, false, from_.type, out_}; }
  /// A side whose elements lie in `memory` in the order of the call.
  MessageSide in_order(MemoryNumber memory) const { return {Flow::out, true, from_.type, memory}; }
  static void next(MessageSide& side, int peer, Index count) {
    const Index before = side.total();
    side.begin(peer);
    side.add(row_at(before, count));
  }
  void box(MessageSide& side, const Box& of, bool sends) const {
    side.add(sends ? in_ : out_, from_.type, box_at(of, sends ? mine_ : wanted_));
  }
  int own(bool far) const { return mesh_.place_in_group(far ? far_ : near_, at_); }

  void stage(Collective kind, bool far, bool even, MessageSide send, MessageSide receive,
             std::vector<MemoryCopy> moved = {}) {
    CallWork one;
    one.call.kind = kind;
    one.call.group = far ? far_ : near_;
    one.call.type = from_.type;
    if (reduces(kind)) one.call.reduction = from_.sharding.reduction;
    one.call.even = even;
    one.call.in_place = kind == Collective::all_reduce;
    one.call.own = own(far);
    one.call.members = far ? fars_ : nears_;
    one.call.bound = saturating_mul(nears_, largest_block(from_, to_, mesh_));
    for (const MessageSide* side : {&send, &receive}) {
      if (side->memory() == send_staging) needs(work_.send_bytes, *side);
      if (side->memory() == receive_staging) needs(work_.receive_bytes, *side);
    }
    put_sides(one, send, receive);
    if (!moved.empty()) one.pack = std::move(moved);
    if (far) one.call.network = payload_elements(one.call);
    if (stages_++ == 0)
      static_cast<CallWork&>(work_) = std::move(one);
    else
      work_.then.push_back(std::move(one));
  }
  void needs(Index& bytes, const MessageSide& side) const {
    bytes = max_of(bytes, saturating_mul(side.total(), static_cast<Index>(size_of(from_.type))));
  }

  /// The block is split as one row of elements, whatever its dimensions are.
  void all_reduce() {
    const Index n = mine_.size(), share = block_size(n, nears_, own(false));
    const bool even = n % nears_ == 0;
    MessageSide block = in_order(in_), result = in_order(out_), held = in_order(send_staging),
                held_far = in_order(send_staging);
    for (int i = 0; i < nears_; ++i) {
      next(block, i, block_size(n, nears_, i));
      next(result, i, block_size(n, nears_, i));
    }
    next(held, own(false), share);
    next(held_far, own(true), share);
    stage(Collective::reduce_scatter, false, even, block, held);
    stage(Collective::all_reduce, true, false, held_far, held_far);
    stage(Collective::all_gather, false, even, held, result);
  }

  void reduce_scatter() {
    MessageSide send = packed_out(), held = in_order(receive_staging), far = held,
                result = in_order(out_);
    for (int i = 0; i < nears_; ++i) {
      send.begin(i);
      for (int o = 0; o < fars_; ++o) box(send, target(member(o, i)), true);
    }
    for (int o = 0; o < fars_; ++o) next(far, o, target(far_member(o)).size());
    next(held, own(false), far.total());
    next(result, own(true), wanted_.size());
    stage(Collective::reduce_scatter, false, step_.even, send, held);
    stage(Collective::reduce_scatter, true, step_.even, far, result);
  }

  void all_gather() {
    MessageSide block = in_order(in_), far = in_order(send_staging), held = far,
                receive = packed_in();
    next(block, own(true), mine_.size());
    for (int o = 0; o < fars_; ++o) next(far, o, source(far_member(o)).size());
    next(held, own(false), far.total());
    for (int i = 0; i < nears_; ++i) {
      receive.begin(i);
      for (int o = 0; o < fars_; ++o) box(receive, source(member(o, i)), false);
    }
    stage(Collective::all_gather, true, step_.even, block, far);
    stage(Collective::all_gather, false, step_.even, held, receive);
  }

  void all_to_all() {
    MessageSide send = packed_out(), arrived = in_order(receive_staging),
                far = in_order(send_staging), receive = packed_in();
    for (int i = 0; i < nears_; ++i) {
      send.begin(i);
      for (int o = 0; o < fars_; ++o) box(send, intersect(mine_, target(member(o, i))), true);
    }
    // Arrives by sender, and for each sender by the node it goes to; leaves by node.
    std::vector<Index> start(static_cast<std::size_t>(nears_ * fars_));
    std::vector<Index> count(start.size());
    for (int i = 0; i < nears_; ++i) {
      Index all = 0;
      for (int o = 0; o < fars_; ++o) {
        const auto k = static_cast<std::size_t>(i * fars_ + o);
        start[k] = arrived.total() + all;
        count[k] = intersect(source(near_member(i)), target(far_member(o))).size();
        all += count[k];
      }
      next(arrived, i, all);
    }
    std::vector<MemoryCopy> moved;
    for (int o = 0; o < fars_; ++o) {
      Index all = 0;
      for (int i = 0; i < nears_; ++i) {
        const auto k = static_cast<std::size_t>(i * fars_ + o);
        if (count[k] > 0)
          moved.push_back(
              {receive_staging, send_staging, from_.type, 0,
               copy_between(row_at(start[k], count[k]), row_at(far.total() + all, count[k]))});
        all += count[k];
      }
      next(far, o, all);
    }
    for (int o = 0; o < fars_; ++o) {
      receive.begin(o);
      for (int i = 0; i < nears_; ++i)
        box(receive, intersect(source(member(o, i)), wanted_), false);
    }
    stage(Collective::all_to_all, false, step_.even, send, arrived);
    stage(Collective::all_to_all, true, step_.even, far, receive, std::move(moved));
  }

  MeshShape mesh_;
  Coordinates at_;
  Step step_;
  AxisGroup near_;
  AxisGroup far_;
  int nears_;
  int fars_;
  MemoryNumber in_;
  MemoryNumber out_;
  TensorDesc from_;
  Sharding to_;
  Box mine_;
  Box wanted_;
  MoveWork work_;
  int stages_ = 0;
};

}  // namespace tessera::detail
