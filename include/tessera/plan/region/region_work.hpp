// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A step that takes regions, computed for a process: one exchange for all its inputs, with one
/// message for every peer.
///
///     MoveWork work = region_work(plan, step);        // of a step with step.region >= 0
///
/// Laws: the pieces of all inputs for one peer travel together, in order of the inputs; a piece
/// that is a run of the block and alone in its message is sent directly from the block.
#include <vector>

#include <tessera/plan/move/move_cost.hpp>
#include <tessera/plan/move/move_work.hpp>
#include <tessera/plan/region/region_transfer.hpp>
#include <tessera/plan/region/stored.hpp>

namespace tessera::detail {

/// A block of memory: the box that it holds, and its layout.
struct BoxInMemory {
  Box box;
  Extents strides;
};
/// Returns where a piece's elements lie in the block of one side: the source's (`owner`), or the
/// region's.
constexpr Strided place_of(const RegionPiece& piece, const BoxInMemory& block, bool owner) {
  const auto& [box, strides] = block;
  Strided place;
  for (int d = 0; d < piece.size(); ++d) {
    place.counts.push_back(piece[d].count);
    place.offset += ((owner ? piece[d].source : piece[d].at) - box[d].lo) * strides[d];
    place.strides.push_back((owner ? piece[d].source_step : piece[d].step) * strides[d]);
  }
  return place;
}
/// Returns whether elements with this layout are contiguous in memory.
constexpr bool is_run(const Strided& place) {
  const auto& [counts, offset, strides] = place;
  Index next = 1;
  for (int d = counts.size() - 1; d >= 0; --d) {
    if (counts[d] == 1) continue;
    if (strides[d] != next) return false;
    next *= counts[d];
  }
  return true;
}

/// Returns how many elements with this layout come before the first gap.
constexpr Index run_of(const Extents& counts, const Extents& strides) {
  Index run = 1;
  for (int d = counts.size() - 1; d >= 0; --d) {
    if (counts[d] == 1) continue;
    if (strides[d] != run) break;
    run *= counts[d];
  }
  return run;
}
/// Whether the sources of the copies are so scattered that another process should not read them in
/// place: every run costs it a cache line, to which the owner writes.
class Scatter {
 public:
  constexpr explicit Scatter(Index unit) : unit_(unit) {}
  constexpr void add(const StridedCopy& copy) {
    const Index elements = volume(copy.extents);
    bytes_ = saturating_add(bytes_, saturating_mul(elements, unit_));
    runs_ = saturating_add(runs_, elements / run_of(copy.extents, copy.from_strides));
  }
  constexpr bool wide() const { return bytes_ / 128 < runs_; }

 private:
  Index unit_;
  Index bytes_ = 0;
  Index runs_ = 0;
};

/// Returns the region of input k of a step that takes regions, or its number in the plan.
constexpr int number_of_region(const Step& step, int k) {
  return k == 0 || step.also_regions.empty() ? step.region + k : step.also_regions[k - 1];
}
constexpr const Region& region_of(const Plan& plan, const Step& step, int k) {
  return plan.regions[number_of_region(step, k)];
}

/// One step, on one process.
class RegionWork {
 public:
  constexpr RegionWork(const Plan& plan, const Step& step, int process)
      : plan_(plan), step_(step), at_(plan.mesh.coordinates(process)) {}

  constexpr MoveWork make(bool reads = false) {
    const bool moves = step_.kind == StepKind::communicate;
    const int inputs = step_.in.size();
    work_.adds = step_.adjoint;
    std::vector<std::vector<PeerPiece>> out, in;  // for each input
    for (int k = 0; k < inputs; ++k) {
      const Region& region = region_of(k);
      out.push_back(pieces_sent(region, plan_.mesh, step_.group, at_));
      in.push_back(pieces_received(region, plan_.mesh, step_.group, at_));
      if (step_.adjoint) std::swap(out.back(), in.back());
      keep(k, in.back());
      if (const DType type = this->type(); step_.adjoint && is_short(type))
        work_.sum_bytes = max_of(
            work_.sum_bytes, saturating_mul(box_of(k, true, at_).size(),
                                            static_cast<Index>(size_of(facts_of(type).compute))));
    }
    const bool in_place = reads && inputs == 1 && step_.collective == Collective::exchange;
    if (moves && in_place) read(in[0]);
    if (step_.fills && inputs == 1 && !step_.adjoint) leave(in[0]);
    if (!moves) return std::move(work_);
    Call& call = work_.call;
    call.kind = step_.collective;
    call.group = step_.group;
    call.type = type();
    call.own = own();
    call.members = plan_.mesh.group_size(step_.group);
    if (step_.collective == Collective::broadcast) keep_one_message(out[0]);
    const bool send_runs = inputs == 1 && all_runs(out[0], !step_.adjoint);
    const bool receive_runs = inputs == 1 && !step_.adjoint && all_runs(in[0], false);
    MessageSide send(Flow::out, send_runs, call.type, step_.in[0]);
    MessageSide receive(Flow::in, receive_runs, call.type, step_.out);
    lay_out(out, true, send);
    lay_out(in, false, receive);
    work_.send_bytes = send.staging();
    work_.receive_bytes = receive.staging();
    put_sides(work_, send, receive);
    const bool to_all = call.kind == Collective::broadcast;
    if (to_all) send_to_all(call);
    for (const Piece& piece : to_all ? call.receive : call.send)
      if (!on_one_node(step_.node, at_, member(piece.peer))) call.network += piece.count;
    if (in_place && !send_runs) pack_scattered(out[0]);
    return std::move(work_);
  }
  /// The memory of one side of input k: the source's (`owner`), or the region's.
  constexpr BoxInMemory memory_of(int k, bool owner, const Coordinates& at) const {
    if (regroups(region_of(k))) {  // its pieces are places in memory
      BoxInMemory memory{{}, Extents(max_dims, 1)};
      memory.box.side.resize(max_dims);
      return memory;
    }
    const Slot& slot = plan_.slots[owner != step_.adjoint ? step_.in[k] : step_.output(k)];
    const Box box = box_of(k, owner, at);
    return {box,
            has_gaps(plan_, slot) ? strides_of(plan_, slot, at) : row_major_strides(box.extents())};
  }

 private:
  constexpr const Region& region_of(int k) const { return detail::region_of(plan_, step_, k); }
  constexpr DType type() const { return plan_.slots[step_.in[0]].desc.type; }
  constexpr Index unit() const { return static_cast<Index>(size_of(type())); }
  constexpr int own() const { return plan_.mesh.place_in_group(step_.group, at_); }
  constexpr Coordinates member(int peer) const { return plan_.mesh.member(step_.group, at_, peer); }
  /// The box that a process holds of one side: the source's (`owner`), or the region's.
  constexpr Box box_of(int k, bool owner, const Coordinates& at) const {
    const Slot& slot = plan_.slots[owner != step_.adjoint ? step_.in[k] : step_.output(k)];
    if (slot.region >= 0) return needed(plan_.regions[slot.region], plan_.mesh, at);
    return owner ? source_block(region_of(k), plan_.mesh, at)
                 : needed(region_of(k), plan_.mesh, at);
  }
  constexpr Strided place(int k, const RegionPiece& piece, bool owner) const {
    return place_of(piece, memory_of(k, owner, at_), owner);
  }
  /// The copy of a piece from the box of the process at `from` to the output of this process.
  constexpr StridedCopy copy_from(int k, const RegionPiece& piece, const Coordinates& from) const {
    const bool adjoint = step_.adjoint;
    return copy_between(place_of(piece, memory_of(k, !adjoint, from), !adjoint),
                        place(k, piece, adjoint));
  }
  /// Copies the process's own elements; in place, only those that move.
  constexpr void keep(int k, const std::vector<PeerPiece>& in) {
    for (const PeerPiece& p : in) {
      if (step_.kind == StepKind::communicate && p.peer != own()) continue;
      const StridedCopy copy = copy_from(k, p.piece, at_);
      const bool stays = step_.in[k] == step_.output(k) && copy.from_offset == copy.to_offset &&
                         copy.from_strides == copy.to_strides;
      if (!stays)
        work_.local.push_back({step_.in[k], static_cast<MemoryNumber>(step_.output(k)), type(),
                               static_cast<std::int8_t>(k), copy});
    }
  }
  /// Reads others' elements in place, or from where they pack them, as lay_out() does there.
  constexpr void read(const std::vector<PeerPiece>& in) {
    std::vector<PeerCopies>& reads = work_.reads.peers;
    for (const PeerPiece& p : in) {
      if (p.peer == own()) continue;
      if (reads.empty() || reads.back().peer != p.peer) reads.push_back({p.peer, {}, {}});
      reads.back().copies.push_back(copy_from(0, p.piece, member(p.peer)));
    }
    for (PeerCopies& from : reads) {
      Scatter scatter(unit());
      for (const StridedCopy& copy : from.copies) scatter.add(copy);
      if (!scatter.wide()) continue;
      Index next = 0;
      const Coordinates there = member(from.peer);
      for (const PeerPiece& p : step_.adjoint
                                    ? pieces_received(region_of(0), plan_.mesh, step_.group, there)
                                    : pieces_sent(region_of(0), plan_.mesh, step_.group, there))
        if (p.peer < own() && p.peer != from.peer) next += volume(p.piece);
      for (StridedCopy copy : from.copies) {
        copy.from_offset = next;
        copy.from_strides = row_major_strides(copy.extents);
        next += volume(copy.extents);
        from.packed.push_back(copy);
      }
    }
  }
  /// Packs for the others what is scattered, a peer at a time.
  constexpr void pack_scattered(const std::vector<PeerPiece>& out) {
    std::size_t next = 0;  // of work_.pack, which has a copy for each piece that is not empty
    for (std::size_t i = 0; i < out.size();) {
      const int peer = out[i].peer;
      const std::size_t first = next;
      Scatter scatter(unit());
      for (; i < out.size() && out[i].peer == peer; ++i)
        if (peer != own() && volume(out[i].piece) > 0) scatter.add(work_.pack[next++].copy);
      for (std::size_t k = first; scatter.wide() && k < next; ++k)
        work_.reads.packed.push_back(work_.pack[k]);
    }
  }
  /// The rest around the taken elements, if these form one box: for each dimension the part below
  /// and the part above, within the box in the dimensions before it.
  constexpr void leave(const std::vector<PeerPiece>& in) {
    const Box whole = box_of(0, false, at_);
    Box taken, rest = whole;
    Index elements = 0;
    for (const PeerPiece& p : in) {
      if (volume(p.piece) == 0) continue;
      for (int d = 0; d < whole.rank(); ++d) {
        const Interval here = p.piece[d].coordinates();
        if (elements == 0)
          taken.side.push_back(here);
        else
          taken[d] = {min_of(taken[d].lo, here.lo), max_of(taken[d].hi, here.hi)};
      }
      elements = saturating_add(elements, volume(p.piece));
    }
    work_.boxed = elements > 0 && elements == taken.size();
    const Extents strides = row_major_strides(whole.extents());
    for (int d = 0; work_.boxed && d < whole.rank(); ++d) {
      for (const Interval side :
           {Interval{whole[d].lo, taken[d].lo}, Interval{taken[d].hi, whole[d].hi}}) {
        rest[d] = side;
        StridedCopy gap{rest.extents(), 0, Extents(whole.rank(), 0), 0, strides};
        for (int e = 0; e < whole.rank(); ++e)
          gap.to_offset += (rest[e].lo - whole[e].lo) * strides[e];
        if (rest.size() > 0) work_.gaps.push_back(gap);
      }
      rest[d] = taken[d];
    }
  }
  /// Whether every piece for another process is a run of the block, one for each peer.
  constexpr bool all_runs(const std::vector<PeerPiece>& pieces, bool owner) const {
    int last = -1;
    for (const PeerPiece& p : pieces) {
      if (p.peer == own()) continue;
      if (p.peer == last || !is_run(place(0, p.piece, owner))) return false;
      last = p.peer;
    }
    return true;
  }
  /// Leaves the pieces of one message of several to all others, which are alike, and the own.
  constexpr void keep_one_message(std::vector<PeerPiece>& out) const {
    int peer = -1;
    std::vector<PeerPiece> kept;
    for (const PeerPiece& p : out) {
      if (peer < 0 && p.peer != own()) peer = p.peer;
      if (p.peer == own() || p.peer == peer) kept.push_back(p);
    }
    out = std::move(kept);
  }
  /// Lays out the messages of one side, one for each peer.
  constexpr void lay_out(const std::vector<std::vector<PeerPiece>>& pieces, bool sends,
                         MessageSide& side) const {
    const bool owner = sends != step_.adjoint;
    std::vector<std::size_t> next(pieces.size(), 0);
    for (;;) {
      int peer = -1;
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        while (next[k] < pieces[k].size() && pieces[k][next[k]].peer == own()) ++next[k];
        if (next[k] < pieces[k].size() && (peer < 0 || pieces[k][next[k]].peer < peer))
          peer = pieces[k][next[k]].peer;
      }
      if (peer < 0) return;
      side.begin(peer);
      for (std::size_t k = 0; k < pieces.size(); ++k)
        for (; next[k] < pieces[k].size() && pieces[k][next[k]].peer == peer; ++next[k]) {
          const int input = static_cast<int>(k);
          side.add(static_cast<MemoryNumber>(sends ? step_.in[input] : step_.output(input)), type(),
                   place(input, pieces[k][next[k]].piece, owner), input);
        }
    }
  }

  const Plan& plan_;
  const Step& step_;
  Coordinates at_;
  MoveWork work_;
};

/// Returns the work of a step that takes regions on the plan's process; `reads`: with the copies of
/// processes that read each other's memory.
constexpr MoveWork region_work(const Plan& plan, const Step& step, bool reads = false) {
  return RegionWork(plan, step, plan.process).make(reads);
}
}  // namespace tessera::detail
