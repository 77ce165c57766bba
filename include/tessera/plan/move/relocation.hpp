// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One exchange between two placements of a tensor, computed for a process: the general form of the
/// point-to-point step. plan/move/place.hpp chooses the exchanges of a plan.
///
///     StepWork work = relocation_work(plan, step, round);     // of a communicate step with placed slots
///
/// Laws: a box that several processes get is packed once; in a step of several rounds, round i
/// moves the elements of slab i, and staging on the process that has everything is at most a slab.
#include <algorithm>
#include <map>
#include <vector>

#include <tessera/plan/move/placement.hpp>
#include <tessera/plan/work/step_work.hpp>

namespace tessera {

/// Bytes that pass through one process in a round; a plan's workspace limit may make it less.
inline constexpr Index most_slab_bytes = Index{64} << 20;
inline constexpr Index least_slab_bytes = Index{4} << 10;

/// Returns the bytes of the largest slab of a tensor that passes through one process.
constexpr Index slab_bytes(Index workspace_limit) {
  return max_of(least_slab_bytes, min_of(most_slab_bytes, workspace_limit));
}

namespace detail {
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

  StepWork work(int self, Index round) const {
    StepWork work;
    work.call.kind = Collective::exchange;
    work.call.group = group;
    work.call.type = type;
    work.call.own = self;
    work.call.members = members;
    work.send = direct_send ? Buffer::block : Buffer::send_staging;
    work.receive = direct_receive ? Buffer::block : Buffer::receive_staging;
    const Box window = slabs.box(round);
    std::vector<Part> out, in;
    for_each_part_sent(from, to, window, self, [&](int peer, const Box& box) {
      out.push_back({peer, box});
    });
    for_each_part_received(from, to, window, self, [&](int peer, const Box& box) {
      in.push_back({peer, box});
    });
    sort(out);
    sort(in);
    const Index unit = static_cast<Index>(size_of(type));
    const Box mine = from.box(self);
    const Extents strides = row_major_strides(extended_box(mine, from.extents(), within).extents());
    Index sent = 0, received = 0;
    std::map<Box, Index, ByStart> packed;  // parts of one box: equal or disjoint
    for (const Part& part : out) {
      if (part.peer == self) {
        const Box place = to.box(self);
        work.local.push_back(
            box_copy(part.box, mine, strides, place, row_major_strides(place.extents())));
      } else if (direct_send) {
        work.call.send.push_back(
            {part.peer, box_copy(part.box, mine, part.box).from_offset, part.box.size()});
      } else {
        const auto [place, fresh] = packed.try_emplace(part.box, sent);
        if (fresh) {
          work.pack.push_back(pack_copy(part.box, mine, strides, sent));
          sent += part.box.size();
        }
        work.call.send.push_back({part.peer, place->second, part.box.size()});
      }
    }
    for (const Part& part : in) {
      if (part.peer == self) continue;
      if (direct_receive) {
        work.call.receive.push_back(
            {part.peer, box_copy(part.box, part.box, to.box(self)).to_offset, part.box.size()});
      } else {
        work.unpack.push_back(unpack_copy(part.box, to.box(self), received));
        work.call.receive.push_back({part.peer, received, part.box.size()});
        received += part.box.size();
      }
    }
    const Coordinates at = mesh.coordinates(self);
    for (const Piece& piece : work.call.send)
      if (!on_one_node(node, at, mesh.coordinates(piece.peer))) work.call.network += piece.count;
    work.send_staging = saturating_mul(sent, unit);
    work.receive_staging = saturating_mul(received, unit);
    return work;
  }

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
          plan.mesh.group_size(step.group),
          plan.mesh,
          from.stored < 0 ? Halo{} : plan.halos[from.stored]};
}

/// Fills in the numbers of such a step on a process, over all rounds.
inline void number_relocation(const Plan& plan, Step& step, int process) {
  step.payload = step.network_payload = step.messages = step.scratch = 0;
  const Relocation moves = relocation_of(plan, step);
  for (Index round = 0; round < step.rounds; ++round) {
    const StepWork work = moves.work(process, round);
    step.payload = saturating_add(step.payload, payload_bytes(work.call));
    step.network_payload = saturating_add(step.network_payload, network_bytes(work.call));
    step.messages += message_count(work.call);
    step.scratch =
        max_of(step.scratch, arena_charge(work.send_staging) + arena_charge(work.receive_staging));
  }
}
}  // namespace detail

/// Returns whether a step is an exchange with a placed slot, not between two shardings.
constexpr bool is_relocation(const Plan& plan, const Step& step) {
  return step.kind == StepKind::communicate &&
         !(plan.slots[step.in[0]].place.sharded() && plan.slots[step.out].place.sharded());
}

/// Returns the work of one round of such a step on the plan's process.
inline StepWork relocation_work(const Plan& plan, const Step& step, Index round) {
  return detail::relocation_of(plan, step).work(plan.process, round);
}

}  // namespace tessera
