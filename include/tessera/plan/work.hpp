// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A plan's steps worked out for its process: the exact call, what is packed and unpacked, the
/// local arithmetic. Made once when a plan enters the cache; the executor only carries it out.
///
///     std::vector<StepWork> work = work_of(plan);
///
/// Laws: the calls are those that a PMPI layer intercepts; their payload_bytes and network_bytes
/// add up to the step's; the staging buffers make up step.scratch.
#include <algorithm>
#include <vector>

#include <tessera/plan/indexed_work.hpp>
#include <tessera/plan/merge_split.hpp>
#include <tessera/plan/relocation.hpp>
#include <tessera/plan/row_work.hpp>
#include <tessera/plan/staged.hpp>
#include <tessera/plan/step_work.hpp>
#include <tessera/plan/transfer.hpp>
#include <tessera/plan/window_work.hpp>

namespace tessera {

namespace detail {

/// Works out one communicate step.
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

inline ContractionBlock contraction_block(const Slot& slot, const Plan& plan,
                                          const Coordinates& at) {
  return {slot.labels, local_extents(slot, plan, at), slot.panel_dim, slot.panels,
          has_gaps(plan, slot) ? strides_of(plan, slot, at) : Extents{}};
}

inline StridedCopy permute_work(const Slot& from, const Slot& to, const Plan& plan,
                                const Coordinates& at) {
  StridedCopy copy;
  copy.extents = local_extents(to, plan, at);
  copy.to_strides = strides_of(plan, to, at);
  const Extents strides = strides_of(plan, from, at);
  for (char label : to.labels) copy.from_strides.push_back(strides[from.labels.find(label)]);
  return copy;
}

/// Returns the copy of the part of the diagonal that this process holds, into its block of the
/// diagonal; its extents are 0 when it holds none.
inline StridedCopy diagonal_work(const Slot& from, const Slot& to, const Plan& plan,
                                 const Coordinates& at) {
  const Box source = block(from.desc.extents, from.desc.sharding, plan.mesh, at);
  const Box target = block(to.desc.extents, to.desc.sharding, plan.mesh, at);
  const Extents strides = strides_of(plan, from, at);
  StridedCopy copy;
  copy.to_strides = row_major_strides(target.extents());
  for (int t = 0; t < target.rank(); ++t) {
    Interval held = target[t];
    for (int d = 0; d < source.rank(); ++d)
      if (from.labels[d] == to.labels[t]) held = intersect(held, source[d]);
    Index stride = 0;
    for (int d = 0; d < source.rank(); ++d)
      if (from.labels[d] == to.labels[t]) {
        stride += strides[d];
        copy.from_offset += (held.lo - source[d].lo) * strides[d];
      }
    copy.to_offset += (held.lo - target[t].lo) * copy.to_strides[t];
    copy.extents.push_back(held.size());
    copy.from_strides.push_back(stride);
  }
  return copy;
}

inline LocalMap map_work(const Plan& plan, const Step& step, const Coordinates& at) {
  const Slot& to = plan.slots[step.out];
  LocalMap work;
  work.extents = local_extents(to, plan, at);
  if (has_gaps(plan, to)) work.result = strides_of(plan, to, at);
  for (int slot : step.in) {
    const Slot& from = plan.slots[slot];
    const Extents own = strides_of(plan, from, at);
    Extents strides(work.extents.size(), 0);
    for (int d = 0; d < strides.size(); ++d)
      if (const int source = from.labels.find(to.labels[d]);
          source >= 0 && from.desc.extents[source] == to.desc.extents[d])
        strides[d] = own[source];
    work.strides.push_back(strides);
  }
  work.flat = work.result.empty();
  for (const Extents& strides : work.strides)
    work.flat = work.flat && strides == row_major_strides(work.extents);
  return work;
}
}  // namespace detail

namespace detail {
/// Returns the copy of `count` elements that lie behind one another on both sides.
constexpr StridedCopy run_copy(Index from_offset, Index to_offset, Index count) {
  return {{count}, from_offset, {1}, to_offset, {1}};
}

/// One side of a joined call: for every peer, what each tensor has for it, in order.
class JoinedSide {
 public:
  /// Adds a tensor's pieces; `staged` are its copies to (or from) pieces of its own staging memory.
  void add(const std::vector<Piece>& pieces, const std::vector<StridedCopy>* staged) {
    tensors_.push_back({&pieces, staged});
  }
  /// Lays the pieces out; visit(tensor, copy) gets each copy between its block and the staging
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

/// Returns the work of one step on the plan's process; of a step in several rounds, of that round.
inline StepWork work_of(const Plan& plan, const Step& step, Index round = 0) {
  if (step.region >= 0) return region_work(plan, step);
  if (is_relocation(plan, step)) return relocation_work(plan, step, round);
  if (step.merges) return merge_work(plan, step, round);
  const Coordinates at = plan.mesh.coordinates(plan.process);
  const Slot& first = plan.slots[step.in[0]];
  const Slot& out = plan.slots[step.out];
  StepWork work;
  switch (step.kind) {
    case StepKind::communicate:
      if (!step.also.empty()) return joined_work(plan, step);
      return step.near.empty() ? detail::CommunicationWork(plan, step).make()
                               : detail::StagedWork(plan, step).make();
    case StepKind::slice:
    case StepKind::copy: {
      const auto strides = [&](const Slot& slot, const Box& box) {
        return slot.stored < 0 ? row_major_strides(box.extents())
                               : detail::strides_of(plan, slot, at);
      };
      const Box source = Holding(first.desc, first.place, plan.mesh).box(plan.process);
      const Box target = Holding(out.desc, out.place, plan.mesh).box(plan.process);
      if (!target.empty())
        work.local.push_back(
            detail::box_copy(target, source, strides(first, source), target, strides(out, target)));
      break;
    }
    case StepKind::permute:
      work.local.push_back(detail::permute_work(first, out, plan, at));
      break;
    case StepKind::diagonal: {
      const StridedCopy held = detail::diagonal_work(first, out, plan, at);
      work.zeroed = !(held.extents == detail::local_extents(out, plan, at));
      if (volume(held.extents) > 0) work.local.push_back(held);
      break;
    }
    case StepKind::contract: {
      const Slot& second = plan.slots[step.in[1]];
      work.contract = contraction_work(detail::contraction_block(first, plan, at),
                                       detail::contraction_block(second, plan, at),
                                       detail::contraction_block(out, plan, at));
      break;
    }
    case StepKind::round:
    case StepKind::widen:
      break;  // the whole block
    case StepKind::reduce:
      work.reduce = detail::reduce_work(first, out, plan, at);
      break;
    case StepKind::map:
      work.map = detail::map_work(plan, step, at);
      break;
    case StepKind::find:
      work.find = detail::find_work(first, out, plan, at);
      break;
    case StepKind::scan:
    case StepKind::fold:
      work.scan = detail::scan_work(plan, step, at);
      break;
    case StepKind::sort:
    case StepKind::order:
    case StepKind::arrange:
      work.sort = detail::sort_work(plan, step, at);
      break;
    case StepKind::exponent:
    case StepKind::bins:
    case StepKind::unbin:
      work.bins = detail::bins_work(plan, step, at);
      break;
    case StepKind::convolve:
      work.convolve = detail::convolve_work(plan, step, at);
      break;
    case StepKind::reduce_window:
      work.reduce_window = detail::reduce_window_work(plan, step, at);
      break;
    case StepKind::select_and_scatter:
      work.select = detail::select_work(plan, step, at);
      break;
    case StepKind::take:
      work.take = detail::take_work(plan, step, at);
      break;
    case StepKind::scatter:
      work.scatter = detail::scatter_work(plan, step, at);
      work.send_staging = detail::work_bytes(plan, step, at);
      break;
    case StepKind::one_hot:
      work.one_hot = detail::one_hot_work(plan, step, at);
      break;
    case StepKind::slide:
    case StepKind::put:
      work.slide = detail::slide_work(plan, step, at);
      break;
  }
  return work;
}

/// Returns the work of every step, in order; of a step in several rounds, that of the first.
inline std::vector<StepWork> work_of(const Plan& plan) {
  std::vector<StepWork> all;
  all.reserve(static_cast<std::size_t>(plan.steps.size()));
  for (const Step& step : plan.steps) all.push_back(work_of(plan, step));
  return all;
}

}  // namespace tessera
