// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One exchange between two placements of a tensor, computed for a process: the general form of the
/// point-to-point step. plan/op/move/place.hpp chooses the exchanges of a plan.
///
///     MoveWork work = relocation_work(plan, step, round);     // of a communicate step with placed slots
///
/// Laws: a box that several processes get is packed once; in a step of several rounds, round i
/// moves the elements of slab i, and staging on the process that has everything is at most a slab.
#include <algorithm>
#include <map>
#include <vector>

#include <tessera/plan/move/move_work.hpp>
#include <tessera/plan/move/placement.hpp>

namespace tessera::detail {

/// Bytes that pass through one process in a round; a plan's workspace limit may make it less.
inline constexpr Index most_slab_bytes = Index{64} << 20;
inline constexpr Index least_slab_bytes = Index{4} << 10;

/// Returns the bytes of the largest slab of a tensor that passes through one process.
constexpr Index slab_bytes(Index workspace_limit) {
  return max_of(least_slab_bytes, min_of(most_slab_bytes, workspace_limit));
}

/// The two sides of an exchange, and the decisions that are the same on all processes.
struct Relocation {
  Holding from;
  Holding to;
  Slabs slabs;
  DType type;
  AxisSet group;
  AxisGroup node;
  bool direct_send;
  bool direct_receive;
  Collective collective;  ///< an exchange, or a broadcast by the one process that has everything

  MoveWork work(int self, Index round) const {
    MoveWork work;
    work.call.kind = Collective::exchange;
    work.call.group = group;
    work.call.type = type;
    work.call.own = self;
    work.call.members = members;
    const Box window = slabs.box(round);
    std::vector<Part> leaving, arriving;
    for_each_part_sent(from, to, window, self, [&](int peer, const Box& box) {
      leaving.push_back({peer, box});
    });
    for_each_part_received(from, to, window, self, [&](int peer, const Box& box) {
      arriving.push_back({peer, box});
    });
    sort(leaving);
    sort(arriving);
    const Box mine = from.box(self), wanted = to.box(self);
    const Extents strides = row_major_strides(extended_box(mine, from.extents(), within).extents());
    MessageSide send(Flow::out, direct_send, type, in),
        receive(Flow::in, direct_receive, type, out);
    std::map<Box, Index, ByStart> packed;  // parts of one box: equal or disjoint
    for (const Part& part : leaving) {
      const Strided lies = box_at(part.box, mine, strides);
      if (part.peer == self) {
        work.local.push_back({in, out, type, 0, copy_between(lies, box_at(part.box, wanted))});
        continue;
      }
      const auto [place, fresh] = packed.try_emplace(part.box, send.total());
      if (direct_send || fresh) {
        send.begin(part.peer);
        send.add(in, type, lies);
      } else {
        send.repeat(part.peer, place->second, part.box.size());
      }
    }
    for (const Part& part : arriving) {
      if (part.peer == self) continue;
      receive.begin(part.peer);
      receive.add(out, type, box_at(part.box, wanted));
    }
    work.send_bytes = send.staging();
    work.receive_bytes = receive.staging();
    put_sides(work, send, receive);
    const Coordinates at = mesh.coordinates(self);
    const bool to_all = collective == Collective::broadcast;
    if (to_all) send_to_all(work.call);
    for (const Piece& piece : to_all ? work.call.receive : work.call.send)
      if (!on_one_node(node, at, mesh.coordinates(piece.peer))) work.call.network += piece.count;
    return work;
  }

  MemoryNumber in = no_memory;
  MemoryNumber out = no_memory;
  int members = 1;
  MeshShape mesh;
  Halo within;  ///< the halo around the source blocks; empty: they are contiguous

 private:
  struct Part {
    int peer;
    Box box;
  };
  struct ByStart {
    bool operator()(const Box& x, const Box& y) const {
      for (int d = 0; d < x.rank(); ++d) {
        if (x[d].lo != y[d].lo) return x[d].lo < y[d].lo;
        if (x[d].hi != y[d].hi) return x[d].hi < y[d].hi;
      }
      return false;
    }
  };
  static void sort(std::vector<Part>& parts) {
    std::sort(parts.begin(), parts.end(),
              [](const Part& x, const Part& y) { return x.peer < y.peer; });
  }
};

/// Returns the exchange of one communicate step between two slots of a plan.
inline Relocation relocation_of(const Plan& plan, const Step& step) {
  const Slot& from = plan.slots[step.in[0]];
  const Slot& to = plan.slots[step.out];
  return {Holding(from.desc, from.place, plan.mesh),
          Holding(to.desc, to.place, plan.mesh),
          Slabs(from.desc.extents,
                step.rounds > 1 ? max_of(1, step.slab / static_cast<Index>(size_of(from.desc.type)))
                                : max_int64),
          from.desc.type,
          step.group,
          step.node,
          step.direct_send,
          step.direct_receive,
          step.collective,
          step.in[0],
          step.out,
          plan.mesh.group_size(step.group),
          plan.mesh,
          from.stored < 0 ? Halo{} : plan.halos[from.stored]};
}

/// Fills in the numbers of such a step on a process, over all rounds.
inline void number_relocation(const Plan& plan, Step& step, int process) {
  step.payload = step.network_payload = step.messages = step.scratch = 0;
  const Relocation moves = relocation_of(plan, step);
  for (Index round = 0; round < step.rounds; ++round) {
    const MoveWork work = moves.work(process, round);
    step.payload = saturating_add(step.payload, payload_bytes(work.call));
    step.network_payload = saturating_add(step.network_payload, network_bytes(work.call));
    step.messages += message_count(work.call);
    step.scratch =
        max_of(step.scratch, arena_charge(work.send_bytes) + arena_charge(work.receive_bytes));
  }
}

/// Returns whether a step is an exchange with a placed slot, not between two shardings.
constexpr bool is_relocation(const Plan& plan, const Step& step) {
  return step.kind == StepKind::communicate &&
         !(plan.slots[step.in[0]].place.sharded() && plan.slots[step.out].place.sharded());
}

/// Returns the work of one round of such a step on the plan's process.
inline MoveWork relocation_work(const Plan& plan, const Step& step, Index round) {
  return relocation_of(plan, step).work(plan.process, round);
}

}  // namespace tessera::detail
