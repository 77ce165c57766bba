// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A step that takes regions, computed for a process: one exchange for all its inputs, with one
/// message for every peer.
///
///     StepWork work = region_work(plan, step);        // of a step with step.region >= 0
///
/// Laws: the pieces of all inputs for one peer travel together, in order of the inputs; a piece
/// that is a run of the block and alone in its message is sent directly from the block.
#include <vector>

#include <tessera/plan/region/region_transfer.hpp>
#include <tessera/plan/region/stored.hpp>
#include <tessera/plan/work/step_work.hpp>

namespace tessera {
namespace detail {

/// A block of memory: the box that it holds, and its layout.
struct BoxInMemory {
  Box box;
  Extents strides;
};
/// The layout of a piece's elements in the block of one side: the source's (`owner`), or the
/// region's.
struct PieceLayout {
  Index offset = 0;
  Extents strides;
};
constexpr PieceLayout layout_of(const RegionPiece& piece, const BoxInMemory& block, bool owner) {
  const auto& [box, strides] = block;
  PieceLayout layout;
  for (int d = 0; d < piece.size(); ++d) {
    layout.offset += ((owner ? piece[d].source : piece[d].at) - box[d].lo) * strides[d];
    layout.strides.push_back((owner ? piece[d].source_step : piece[d].step) * strides[d]);
  }
  return layout;
}
constexpr Extents counts_of(const RegionPiece& piece) {
  Extents counts;
  for (const Strand& s : piece) counts.push_back(s.count);
  return counts;
}
/// Returns whether elements with this layout are contiguous in memory.
constexpr bool is_run(const Extents& counts, const Extents& strides) {
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
constexpr bool scattered(const std::vector<StridedCopy>& copies, std::size_t first, Index unit) {
  Index bytes = 0, runs = 0;
  for (std::size_t i = first; i < copies.size(); ++i) {
    const Index elements = volume(copies[i].extents);
    bytes = saturating_add(bytes, saturating_mul(elements, unit));
    runs = saturating_add(runs, elements / run_of(copies[i].extents, copies[i].from_strides));
  }
  return bytes / 128 < runs;
}

/// One step, on one process.
class RegionWork {
 public:
  constexpr RegionWork(const Plan& plan, const Step& step, int process)
      : plan_(plan), step_(step), at_(plan.mesh.coordinates(process)) {}

  /// `reads`: include the copies of processes that read each other's memory.
  constexpr StepWork make(bool reads = false) {
    const bool moves = step_.kind == StepKind::communicate;
    const int inputs = step_.in.size();
    work_.adds = step_.adjoint;
    work_.joined.resize(inputs > 1 ? static_cast<std::size_t>(inputs) : 0);
    std::vector<std::vector<PeerPiece>> out, in;  // for each input
    for (int k = 0; k < inputs; ++k) {
      const Region& region = region_of(k);
      out.push_back(pieces_sent(region, plan_.mesh, step_.group, at_));
      in.push_back(pieces_received(region, plan_.mesh, step_.group, at_));
      if (step_.adjoint) std::swap(out.back(), in.back());
      keep(k, in.back());
      if (const DType type = plan_.slots[step_.in[0]].desc.type; step_.adjoint && is_short(type))
        work_.sums =
            max_of(work_.sums, saturating_mul(box_of(k, true, at_).size(),
                                              static_cast<Index>(size_of(facts_of(type).compute))));
      if (moves && reads) read(k, in.back());
    }
    if (step_.fills && inputs == 1 && !step_.adjoint) leave(in[0]);
    if (!moves) return std::move(work_);
    Call& call = work_.call;
    call.kind = step_.collective;
    call.group = step_.group;
    call.type = plan_.slots[step_.in[0]].desc.type;
    call.own = own();
    call.members = plan_.mesh.group_size(step_.group);
    const bool send_runs = inputs == 1 && all_runs(out[0], !step_.adjoint);
    const bool receive_runs = inputs == 1 && !step_.adjoint && all_runs(in[0], false);
    work_.send = send_runs ? Buffer::block : Buffer::send_staging;
    work_.receive = receive_runs ? Buffer::block : Buffer::receive_staging;
    const Index sent = lay_out(out, true, send_runs, call.send);
    const Index received = lay_out(in, false, receive_runs, call.receive);
    for (const Piece& piece : call.send)
      if (!on_one_node(step_.node, at_, member(piece.peer))) call.network += piece.count;
    if (!send_runs) work_.send_staging = saturating_mul(sent, unit());
    if (!receive_runs) work_.receive_staging = saturating_mul(received, unit());
    return std::move(work_);
  }

 private:
  constexpr const Region& region_of(int k) const {
    return plan_.regions[k == 0 || step_.also_regions.empty() ? step_.region + k
                                                              : step_.also_regions[k - 1]];
  }
  constexpr Index unit() const {
    return static_cast<Index>(size_of(plan_.slots[step_.in[0]].desc.type));
  }
  constexpr int own() const { return plan_.mesh.group_rank(step_.group, at_); }
  constexpr Coordinates member(int peer) const { return plan_.mesh.member(step_.group, at_, peer); }
  /// The box that a process holds of one side: the source's (`owner`), or the region's.
  constexpr Box box_of(int k, bool owner, const Coordinates& at) const {
    const Slot& slot = plan_.slots[owner != step_.adjoint ? step_.in[k] : step_.output(k)];
    if (slot.region >= 0) return needed(plan_.regions[slot.region], plan_.mesh, at);
    return owner ? source_block(region_of(k), plan_.mesh, at)
                 : needed(region_of(k), plan_.mesh, at);
  }
  constexpr BoxInMemory memory_of(int k, bool owner, const Coordinates& at) const {
    const Slot& slot = plan_.slots[owner != step_.adjoint ? step_.in[k] : step_.output(k)];
    const Box box = box_of(k, owner, at);
    return {box,
            has_gaps(plan_, slot) ? strides_of(plan_, slot, at) : row_major_strides(box.extents())};
  }
  constexpr PieceLayout layout(int k, const RegionPiece& piece, bool owner) const {
    return layout_of(piece, memory_of(k, owner, at_), owner);
  }
  constexpr CallWork& of_input(int k) {
    return work_.joined.empty() ? work_ : work_.joined[static_cast<std::size_t>(k)];
  }
  /// The copy of a piece from the box of the process at `from` to the output of this process.
  constexpr StridedCopy copy_from(int k, const RegionPiece& piece, const Coordinates& from) const {
    const bool adjoint = step_.adjoint;
    const PieceLayout source = layout_of(piece, memory_of(k, !adjoint, from), !adjoint),
                      target = layout(k, piece, adjoint);
    return {counts_of(piece), source.offset, source.strides, target.offset, target.strides};
  }
  /// Copies the process's own elements; in place, only those that move.
  constexpr void keep(int k, const std::vector<PeerPiece>& in) {
    for (const PeerPiece& p : in) {
      if (step_.kind == StepKind::communicate && p.peer != own()) continue;
      const StridedCopy copy = copy_from(k, p.piece, at_);
      const bool stays = step_.in[k] == step_.output(k) && copy.from_offset == copy.to_offset &&
                         copy.from_strides == copy.to_strides;
      if (!stays) of_input(k).local.push_back(copy);
    }
  }
  /// Reads others' elements in place, or from where they pack them, as lay_out() does there.
  constexpr void read(int k, const std::vector<PeerPiece>& in) {
    std::vector<PeerCopies>& reads = of_input(k).reads;
    for (const PeerPiece& p : in) {
      if (p.peer == own()) continue;
      if (reads.empty() || reads.back().peer != p.peer) reads.push_back({p.peer, {}, {}});
      reads.back().copies.push_back(copy_from(k, p.piece, member(p.peer)));
    }
    for (PeerCopies& from : reads) {
      if (step_.in.size() > 1 || !scattered(from.copies, 0, unit())) continue;
      Index next = 0;
      const Coordinates there = member(from.peer);
      for (const PeerPiece& p : step_.adjoint
                                    ? pieces_received(region_of(k), plan_.mesh, step_.group, there)
                                    : pieces_sent(region_of(k), plan_.mesh, step_.group, there))
        if (p.peer < own() && p.peer != from.peer) next += volume(p.piece);
      for (StridedCopy copy : from.copies) {
        copy.from_offset = next;
        copy.from_strides = row_major_strides(copy.extents);
        next += volume(copy.extents);
        from.packed.push_back(copy);
      }
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
      if (p.peer == last || !is_run(counts_of(p.piece), layout(0, p.piece, owner).strides))
        return false;
      last = p.peer;
    }
    return true;
  }
  /// Lays out the messages of one side, one for each peer; returns the number of elements of all.
  constexpr Index lay_out(const std::vector<std::vector<PeerPiece>>& pieces, bool sends, bool runs,
                          std::vector<Piece>& messages) {
    const bool owner = sends != step_.adjoint;
    std::vector<std::size_t> next(pieces.size(), 0);
    Index total = 0;
    for (;;) {
      int peer = -1;
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        while (next[k] < pieces[k].size() && pieces[k][next[k]].peer == own()) ++next[k];
        if (next[k] < pieces[k].size() && (peer < 0 || pieces[k][next[k]].peer < peer))
          peer = pieces[k][next[k]].peer;
      }
      if (peer < 0) return total;
      Piece& message = messages.emplace_back(Piece{peer, total, 0});
      const std::size_t packed = work_.pack.size();
      for (std::size_t k = 0; k < pieces.size(); ++k)
        for (; next[k] < pieces[k].size() && pieces[k][next[k]].peer == peer; ++next[k]) {
          const RegionPiece& piece = pieces[k][next[k]].piece;
          const Extents counts = counts_of(piece);
          const PieceLayout lies = layout(static_cast<int>(k), piece, owner);
          const Index count = volume(counts);
          if (runs)
            message.offset = lies.offset;
          else if (sends)
            of_input(static_cast<int>(k))
                .pack.push_back(
                    {counts, lies.offset, lies.strides, total, row_major_strides(counts)});
          else
            of_input(static_cast<int>(k))
                .unpack.push_back(
                    {counts, total, row_major_strides(counts), lies.offset, lies.strides});
          message.count += count;
          total += count;
        }
      if (sends && !runs && pieces.size() == 1 && scattered(work_.pack, packed, unit()))
        work_.scattered.insert(work_.scattered.end(),
                               work_.pack.begin() + static_cast<std::ptrdiff_t>(packed),
                               work_.pack.end());
    }
  }

  const Plan& plan_;
  const Step& step_;
  Coordinates at_;
  StepWork work_;
};
}  // namespace detail

/// Returns the work of a step that takes regions on the plan's process.
constexpr StepWork region_work(const Plan& plan, const Step& step) {
  return detail::RegionWork(plan, step, plan.process).make(true);
}

namespace detail {
/// Fills in the numbers of such a step on a process from the process's work.
constexpr void number_region(Step& step, const StepWork& work) {
  step.scratch = arena_charge(work.sums);
  if (step.kind != StepKind::communicate) return;
  step.payload = payload_bytes(work.call);
  step.network_payload = network_bytes(work.call);
  step.messages = message_count(work.call);
  step.scratch += arena_charge(work.send_staging) + arena_charge(work.receive_staging);
}
constexpr void number_region(const Plan& plan, Step& step, int process) {
  if (step.kind == StepKind::communicate || step.adjoint)
    number_region(step, RegionWork(plan, step, process).make());
}

/// Returns the processes whose work gives the cost of such a step: process 0, the one in the middle
/// and, where parts of a tensor are taken, one that owns the part taken of the first input.
constexpr FixedVector<int, 3> looked_at(const Plan& plan, const Step& step) {
  FixedVector<int, 3> processes{0};
  const auto add = [&](int process) {
    if (!processes.contains(process)) processes.push_back(process);
  };
  add(plan.mesh.processes() / 2);
  const Region& region = plan.regions[step.region];
  bool blocks = true;
  for (const RegionDim& d : region) blocks = blocks && d.rule == RegionDim::Rule::block;
  if (blocks) add(plan.mesh.process(middle_owner(region, plan.mesh)));
  return processes;
}

/// Returns the bytes that such a step moves: the most that one of those processes sends or
/// receives.
constexpr Index bytes_moved(const Plan& plan, const Step& step) {
  Index most = 0;
  for (const int process : looked_at(plan, step)) {
    const StepWork work = RegionWork(plan, step, process).make();
    Index arriving = 0;
    for (const Piece& piece : work.call.receive) arriving = saturating_add(arriving, piece.count);
    const Index unit = static_cast<Index>(size_of(work.call.type));
    most = max_of(most, max_of(payload_bytes(work.call), saturating_mul(arriving, unit)));
  }
  return most;
}
/// The same for all steps of a plan made for process 0.
constexpr Index bytes_moved(const Plan& plan) {
  Index sum = 0;
  for (const Step& step : plan.steps)
    if (step.kind == StepKind::communicate)
      sum = saturating_add(sum, step.region >= 0 ? bytes_moved(plan, step) : step.payload);
  return sum;
}

/// Returns the price of such a step on a process from the process's work.
constexpr std::int64_t price_of_region(const Step& step, const StepWork& work, Index unit,
                                       const Machine& machine) {
  Index copied = 0, arriving = 0;
  const auto add = [&](const CallWork& one) {
    for (const StridedCopy& copy : one.local) copied = saturating_add(copied, volume(copy.extents));
  };
  add(work);
  for (const CallWork& one : work.joined) add(one);
  const std::int64_t cost = machine.copy(saturating_add(
      saturating_mul(copied, unit), saturating_add(work.send_staging, work.receive_staging)));
  if (step.kind != StepKind::communicate) return cost;
  for (const Piece& piece : work.call.receive) arriving = saturating_add(arriving, piece.count);
  const Index messages =
      max_of(message_count(work.call), static_cast<Index>(work.call.receive.size()));
  return saturating_add(
      cost, machine.transfer(max_of(payload_bytes(work.call), saturating_mul(arriving, unit)),
                             messages, step.level));
}
/// Fills in such a step's numbers on the plan's process, and its price: the highest on the
/// processes that looked_at() returns.
constexpr void price_region(const Plan& plan, Step& step, const Machine& machine) {
  const Index unit = static_cast<Index>(size_of(plan.slots[step.out].desc.type));
  const FixedVector<int, 3> processes = looked_at(plan, step);
  for (const int process : processes) {
    const StepWork work = RegionWork(plan, step, process).make();
    if (process == plan.process) number_region(step, work);
    step.cost = max_of(step.cost, price_of_region(step, work, unit, machine));
  }
  if (!processes.contains(plan.process))
    number_region(step, RegionWork(plan, step, plan.process).make());
}
}  // namespace detail

}  // namespace tessera
