// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The work of a communicate step on one process: the call, and the packing and unpacking, for one
/// tensor or for several in one call.
///
///     StepWork one = detail::CommunicationWork(plan, step).make();
///     StepWork all = joined_work(plan, step);
///
/// Laws: see plan/work/work.hpp, which uses this header.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/plan/move/transfer.hpp>
#include <tessera/plan/region/stored.hpp>
#include <tessera/plan/work/step_work.hpp>

namespace tessera {
namespace detail {

/// Computes one communicate step.
class CommunicationWork {
 public:
  CommunicationWork(const Plan& plan, const Step& step)
      : mesh_(plan.mesh),
        at_(mesh_.coordinates(plan.process)),
        step_(step),
        from_(plan.slots[step.in[0]].desc),
        to_(plan.slots[step.out].desc.sharding),
        mine_(block(from_.extents, from_.sharding, mesh_, at_)),
        wanted_(block(from_.extents, to_, mesh_, at_)),
        from_strides_(strides_of(plan, plan.slots[step.in[0]], at_)),
        to_strides_(strides_of(plan, plan.slots[step.out], at_)),
        send_panels_(plan.slots[step.in[0]].panel_dim >= 0),
        receive_panels_(plan.slots[step.out].panel_dim >= 0) {
    Call& call = work_.call;
    call.kind = step.collective;
    call.group = step.group;
    call.type = from_.type;
    call.reduction =
        step.collective == Collective::reduce_scatter || step.collective == Collective::all_reduce
            ? from_.sharding.reduction
            : Reduction::none;
    call.even = step.even;
    call.in_place = step.takes >= 0;
    call.own = mesh_.group_rank(step.group, at_);
    call.members = mesh_.group_size(step.group);
    work_.send = step.direct_send ? Buffer::block : Buffer::send_staging;
    work_.receive = step.direct_receive ? Buffer::block : Buffer::receive_staging;
    call.bound = largest_block(from_, to_, mesh_);
  }

  StepWork make() {
    switch (step_.collective) {
      case Collective::all_gather:
        whole(work_.call.send, mine_.size());
        for_members([&](int q, const Coordinates& peer) {
          receive(q, block(from_.extents, from_.sharding, mesh_, peer));
        });
        break;
      case Collective::reduce_scatter:
        for_members([&](int q, const Coordinates& peer) {
          send(q, block(from_.extents, to_, mesh_, peer));
        });
        whole(work_.call.receive, wanted_.size());
        break;
      case Collective::all_reduce:
        whole(work_.call.send, mine_.size());
        whole(work_.call.receive, mine_.size());
        break;
      case Collective::all_to_all:
        for_members([&](int q, const Coordinates& peer) {
          send(q, intersect(mine_, block(from_.extents, to_, mesh_, peer)));
          receive(q, intersect(wanted_, block(from_.extents, from_.sharding, mesh_, peer)));
        });
        break;
      case Collective::collective_permute:
      case Collective::exchange:
        point_to_point();
        break;
    }
    const Index unit = static_cast<Index>(size_of(from_.type));
    work_.call.network = step_.network_payload / unit;
    if (!step_.direct_send) work_.send_staging = sent_ * unit;
    if (!step_.direct_receive) work_.receive_staging = received_ * unit;
    return std::move(work_);
  }

 private:
  template <class Visit> void for_members(const Visit& visit) const {
    for (int q = 0; q < work_.call.members; ++q) visit(q, mesh_.member(step_.group, at_, q));
  }
  void whole(std::vector<Piece>& side, Index count) const {
    side.push_back({work_.call.own, 0, count});
  }
  static Index offset_in(const Box& box, const Box& container) {
    return box.empty() ? 0 : box_copy(box, container, box).from_offset;
  }

  void send(int peer, const Box& box) {
    if (step_.direct_send) {
      work_.call.send.push_back({peer, send_panels_ ? sent_ : offset_in(box, mine_), box.size()});
      sent_ += box.size();
      return;
    }
    work_.call.send.push_back({peer, sent_, box.size()});
    if (!box.empty()) work_.pack.push_back(pack_copy(box, mine_, from_strides_, sent_));
    sent_ += box.size();
  }
  void receive(int peer, const Box& box) {
    if (step_.direct_receive) {
      work_.call.receive.push_back(
          {peer, receive_panels_ ? received_ : offset_in(box, wanted_), box.size()});
      received_ += box.size();
      return;
    }
    work_.call.receive.push_back({peer, received_, box.size()});
    if (!box.empty()) work_.unpack.push_back(unpack_copy(box, wanted_, to_strides_, received_));
    received_ += box.size();
  }
  void point_to_point() {
    struct Part {
      int peer;
      Box box;
    };
    const auto sorted = [](std::vector<Part>& parts) {
      std::sort(parts.begin(), parts.end(),
                [](const Part& x, const Part& y) { return x.peer < y.peer; });
    };
    std::vector<Part> out, in;
    for_each_receiver(from_.extents, from_.sharding, to_, mesh_, at_,
                      [&](const Coordinates& peer, const Box& box) {
                        out.push_back({mesh_.group_rank(step_.group, peer), box});
                      });
    for_each_sender(from_.extents, from_.sharding, to_, mesh_, at_,
                    [&](const Coordinates& peer, const Box& box) {
                      in.push_back({mesh_.group_rank(step_.group, peer), box});
                    });
    sorted(out);
    sorted(in);
    for (const Part& part : out)
      if (part.peer == work_.call.own)
        work_.local.push_back(box_copy(part.box, mine_, from_strides_, wanted_, to_strides_));
      else
        send(part.peer, part.box);
    for (const Part& part : in)
      if (part.peer != work_.call.own) receive(part.peer, part.box);
  }

  MeshShape mesh_;
  Coordinates at_;
  Step step_;
  TensorDesc from_;
  Sharding to_;
  Box mine_;
  Box wanted_;
  Extents from_strides_;
  Extents to_strides_;
  bool send_panels_;
  bool receive_panels_;
  StepWork work_;
  Index sent_ = 0;
  Index received_ = 0;
};

/// Returns the copy of `count` elements that are contiguous on both sides.
constexpr StridedCopy run_copy(Index from_offset, Index to_offset, Index count) {
  return {{count}, from_offset, {1}, to_offset, {1}};
}

/// One side of a joined call: for every peer, each tensor's pieces for it, in order.
class JoinedSide {
 public:
  /// Adds a tensor's pieces; `staged` are its copies to (or from) pieces of its own staging memory.
  void add(const std::vector<Piece>& pieces, const std::vector<StridedCopy>* staged) {
    tensors_.push_back({&pieces, staged});
  }
  /// Lays out the pieces; visit(tensor, copy) gets each copy between its block and the staging
  /// memory. `unpacks`: the copies go from the staging memory to the block.
  template <class Visit> std::vector<Piece> lay_out(bool unpacks, const Visit& visit) {
    std::vector<Piece> pieces;
    std::vector<std::size_t> next(tensors_.size(), 0);
    // All tensors have a piece for each peer of the call, in the same order.
    for (std::size_t i = 0; i < tensors_[0].pieces->size(); ++i) {
      Piece& piece = pieces.emplace_back((*tensors_[0].pieces)[i]);
      piece.offset = total_;
      piece.count = 0;
      for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const Piece& own = (*tensors_[t].pieces)[i];
        if (own.count == 0) continue;
        StridedCopy copy = tensors_[t].staged != nullptr
                               ? (*tensors_[t].staged)[next[t]++]
                               : (unpacks ? run_copy(0, own.offset, own.count)
                                          : run_copy(own.offset, 0, own.count));
        (unpacks ? copy.from_offset : copy.to_offset) = total_;
        visit(t, copy);
        piece.count += own.count;
        total_ += own.count;
      }
    }
    return pieces;
  }
  Index total() const { return total_; }

 private:
  struct Tensor {
    const std::vector<Piece>* pieces;
    const std::vector<StridedCopy>* staged;
  };
  std::vector<Tensor> tensors_;
  Index total_ = 0;
};
}  // namespace detail

/// Returns the work of a step that moves several tensors in one call.
inline StepWork joined_work(const Plan& plan, const Step& step) {
  std::vector<StepWork> single;
  for (int k = 0; k < step.in.size(); ++k) {
    Step one = step;
    one.in = {step.in[k]};
    one.out = k == 0 ? step.out : step.also[k - 1];
    one.also = {};
    single.push_back(detail::CommunicationWork(plan, one).make());
  }
  StepWork work;
  work.call = single[0].call;
  work.call.bound = 0;
  work.joined.resize(single.size());
  const bool packed =
      step.collective == Collective::reduce_scatter || step.collective == Collective::all_to_all;
  const bool unpacked =
      step.collective == Collective::all_gather || step.collective == Collective::all_to_all;
  detail::JoinedSide send, receive;
  for (const StepWork& one : single) {
    send.add(one.call.send, packed ? &one.pack : nullptr);
    receive.add(one.call.receive, unpacked ? &one.unpack : nullptr);
    work.call.bound += one.call.bound;
  }
  work.call.send = send.lay_out(
      false, [&](std::size_t t, const StridedCopy& copy) { work.joined[t].pack.push_back(copy); });
  work.call.receive = receive.lay_out(
      true, [&](std::size_t t, const StridedCopy& copy) { work.joined[t].unpack.push_back(copy); });
  const Index unit = static_cast<Index>(size_of(work.call.type));
  work.call.network = step.network_payload / unit;
  work.call.in_place = step.collective == Collective::all_reduce;
  work.send = work.call.in_place ? Buffer::receive_staging : Buffer::send_staging;
  work.receive = Buffer::receive_staging;
  if (!work.call.in_place) work.send_staging = send.total() * unit;
  work.receive_staging = receive.total() * unit;
  return work;
}

}  // namespace tessera
