// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The work of a communicate step between shardings, on one process: the call, and the packing and
/// unpacking, for one tensor or for several in one call.
///
///     detail::MoveWork work = detail::CollectiveWork(plan, step).make();
///
/// Laws: a message for a member has each tensor's elements for it, in order; with one tensor,
/// elements that lie as the call needs them are not copied.
#include <algorithm>
#include <utility>
#include <vector>

#include <tessera/plan/move/move_work.hpp>
#include <tessera/plan/move/transfer.hpp>
#include <tessera/plan/region/stored.hpp>

namespace tessera::detail {

class CollectiveWork {
 public:
  CollectiveWork(const Plan& plan, const Step& step)
      : mesh_(plan.mesh), at_(mesh_.coordinates(plan.process)), step_(step) {
    for (int k = 0; k < step.in.size(); ++k) tensors_.push_back(Tensor(plan, step, k, at_));
    const TensorDesc& from = tensors_[0].from;
    Call& call = work_.call;
    call.kind = step.collective;
    call.group = step.group;
    call.type = from.type;
    call.reduction =
        step.collective == Collective::reduce_scatter || step.collective == Collective::all_reduce
            ? from.sharding.reduction
            : Reduction::none;
    call.even = step.even;
    call.in_place = joined() ? step.collective == Collective::all_reduce : step.takes >= 0;
    call.own_stays = !joined() && plan.slots[step.out].own_part >= 0;
    call.own = mesh_.place_in_group(step.group, at_);
    call.members = mesh_.group_size(step.group);
    for (const Tensor& t : tensors_) call.bound += largest_block(t.from, t.to, mesh_);
    call.network = step.network_payload / static_cast<Index>(size_of(call.type));
  }

  MoveWork make() {
    const DType type = work_.call.type;
    const bool in_place = joined() && work_.call.in_place;
    MessageSide send(Flow::out, !joined() && step_.direct_send, type, tensors_[0].in,
                     in_place ? receive_staging : send_staging);
    MessageSide receive(Flow::in, !joined() && step_.direct_receive, type, tensors_[0].out);
    switch (step_.collective) {
      case Collective::all_gather:
        whole(send, true);
        for_members([&](int q, const Coordinates& peer) {
          receive.begin(q);
          for (const Tensor& t : tensors_) part(receive, t, t.source(mesh_, peer), false);
        });
        break;
      case Collective::reduce_scatter:
        for_members([&](int q, const Coordinates& peer) {
          send.begin(q);
          for (const Tensor& t : tensors_) part(send, t, t.target(mesh_, peer), true);
        });
        whole(receive, false);
        break;
      case Collective::all_reduce:
        whole(send, true);
        whole(receive, false);
        break;
      case Collective::all_to_all:
        for_members([&](int q, const Coordinates& peer) {
          send.begin(q);
          receive.begin(q);
          for (const Tensor& t : tensors_) {
            part(send, t, intersect(t.mine, t.target(mesh_, peer)), true);
            part(receive, t, intersect(t.wanted, t.source(mesh_, peer)), false);
          }
        });
        break;
      case Collective::collective_permute:
      case Collective::exchange:
        point_to_point(send, receive);
        break;
      case Collective::broadcast:  // of regions and placements alone
        break;
    }
    work_.send_bytes = in_place ? 0 : send.staging();
    work_.receive_bytes = receive.staging();
    put_sides(work_, send, receive);
    return std::move(work_);
  }

 private:
  struct Tensor {
    Tensor(const Plan& plan, const Step& step, int k, const Coordinates& at)
        : in(step.in[k]),
          out(static_cast<MemoryNumber>(step.output(k))),
          from(plan.slots[in].desc),
          to(plan.slots[out].desc.sharding),
          mine(source(plan.mesh, at)),
          wanted(target(plan.mesh, at)),
          from_strides(strides_of(plan, plan.slots[in], at)),
          to_strides(strides_of(plan, plan.slots[out], at)),
          send_panels(plan.slots[in].panel_dim >= 0),
          receive_panels(plan.slots[out].panel_dim >= 0) {}
    Box source(const MeshShape& mesh, const Coordinates& process) const {
      return block(from.extents, from.sharding, mesh, process);
    }
    Box target(const MeshShape& mesh, const Coordinates& process) const {
      return block(from.extents, to, mesh, process);
    }
    MemoryNumber in, out;
    TensorDesc from;
    Sharding to;
    Box mine, wanted;
    Extents from_strides, to_strides;
    bool send_panels, receive_panels;
  };

  bool joined() const { return tensors_.size() > 1; }
  template <class Visit> void for_members(const Visit& visit) const {
    for (int q = 0; q < work_.call.members; ++q) visit(q, mesh_.member(step_.group, at_, q));
  }
  /// One message of whole blocks.
  void whole(MessageSide& side, bool sends) const {
    side.begin(work_.call.own);
    for (const Tensor& t : tensors_)
      side.add(sends ? t.in : t.out, t.from.type, row_at(0, (sends ? t.mine : t.wanted).size()));
  }
  /// A box of one tensor.
  static void part(MessageSide& side, const Tensor& t, const Box& box, bool sends) {
    Strided lies = box_at(box, sends ? t.mine : t.wanted, sends ? t.from_strides : t.to_strides);
    if (sends ? t.send_panels : t.receive_panels) lies.offset = side.total();
    side.add(sends ? t.in : t.out, t.from.type, lies);
  }
  void point_to_point(MessageSide& send, MessageSide& receive) {
    struct SentPart {
      int peer;
      Box box;
    };
    const auto sorted = [](std::vector<SentPart>& parts) {
      std::sort(parts.begin(), parts.end(),
                [](const SentPart& x, const SentPart& y) { return x.peer < y.peer; });
    };
    const Tensor& t = tensors_[0];
    std::vector<SentPart> out, in;
    for_each_receiver(t.from.extents, t.from.sharding, t.to, step_.group, mesh_, at_,
                      [&](const Coordinates& peer, const Box& box) {
                        out.push_back({mesh_.place_in_group(step_.group, peer), box});
                      });
    for_each_sender(t.from.extents, t.from.sharding, t.to, step_.group, mesh_, at_,
                    [&](const Coordinates& peer, const Box& box) {
                      in.push_back({mesh_.place_in_group(step_.group, peer), box});
                    });
    sorted(out);
    sorted(in);
    for (const SentPart& to : out) {
      if (to.peer == work_.call.own) {
        work_.local.push_back({t.in, t.out, t.from.type, 0,
                               copy_between(box_at(to.box, t.mine, t.from_strides),
                                            box_at(to.box, t.wanted, t.to_strides))});
        continue;
      }
      send.begin(to.peer);
      part(send, t, to.box, true);
    }
    for (const SentPart& from : in) {
      if (from.peer == work_.call.own) continue;
      receive.begin(from.peer);
      part(receive, t, from.box, false);
    }
  }

  MeshShape mesh_;
  Coordinates at_;
  Step step_;
  std::vector<Tensor> tensors_;
  MoveWork work_;
};

}  // namespace tessera::detail
