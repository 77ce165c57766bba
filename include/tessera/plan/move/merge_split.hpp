// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A step that sorts lines along a split dimension in place: in each round of a merge exchange
/// (base/merge_exchange.hpp) two processes send each other their sorted blocks, and the lower one
/// keeps the first elements of both, as many as it had; the other keeps the last. Who sends to whom
/// depends on extents alone.
///
///     MoveWork work = merge_work(plan, step, round);
///
/// Laws: blocks keep their sizes: elements missing at the end count as elements that come after all
/// others, and these stay at the end. This needs blocks of one size, except for the last ones
/// (evenly_cut). An empty block neither sends nor receives. All tensors of a step go in one
/// message.
#include <tessera/base/merge_exchange.hpp>
#include <tessera/plan/move/move.hpp>
#include <tessera/plan/move/move_work.hpp>

namespace tessera::detail {

/// Returns whether the blocks along a dimension have one size, except for the last ones.
constexpr bool evenly_cut(Index extent, AxisList axes, const MeshShape& mesh) {
  return axes.size() <= 1 || extent % mesh.parts(axes) == 0;
}

/// A process's peer in one round.
struct MergePeer {
  bool comes = false;  ///< there is a peer, and both have elements
  bool last = false;   ///< this process keeps the last elements
  Coordinates at;
  Index own = 0;  ///< elements of each tensor
  Index other = 0;
};

constexpr MergePeer merge_peer(const Plan& plan, const Step& step, const Coordinates& at,
                               Index round) {
  const TensorDesc& desc = plan.slots[step.in[0]].desc;
  const AxisList axes = desc.sharding[step.as<step::Communicate>().along];
  Index place = 0;
  for (int i = 0; i < axes.size(); ++i) place = place * plan.mesh[axes[i]] + at[axes[i]];
  const Index parts = plan.mesh.parts(axes);
  Index partner = merge_exchange_round(parts, static_cast<int>(round)).partner(place, parts);
  MergePeer peer;
  peer.at = at;
  peer.own = block_volume(desc.extents, desc.sharding, plan.mesh, at);
  if (partner < 0) return peer;
  peer.last = partner < place;
  for (int i = axes.size() - 1; i >= 0; --i) {
    peer.at[axes[i]] = static_cast<int>(partner % plan.mesh[axes[i]]);
    partner /= plan.mesh[axes[i]];
  }
  peer.other = block_volume(desc.extents, desc.sharding, plan.mesh, peer.at);
  peer.comes = peer.own > 0 && peer.other > 0;
  return peer;
}

/// Returns the bytes of one element of all tensors together.
constexpr Index merged_bytes(const Plan& plan, const Step& step) {
  Index bytes = 0;
  for (int slot : step.in) bytes += static_cast<Index>(size_of(plan.slots[slot].desc.type));
  return bytes;
}

/// Returns the inputs of the step in the order in which their elements lie in a message: larger
/// elements come first, so that all are aligned.
constexpr FixedVector<int, max_operands> merged_order(const Plan& plan, const Step& step) {
  FixedVector<int, max_operands> order;
  for (std::size_t size = 16; size > 0; size /= 2)
    for (int k = 0; k < step.in.size(); ++k)
      if (size_of(plan.slots[step.in[k]].desc.type) == size) order.push_back(k);
  return order;
}

/// Fills in the numbers of such a step on the process at `at`, over all rounds.
constexpr void number_merges(const Plan& plan, Step& step, const Coordinates& at) {
  step.payload = step.network_payload = step.messages = step.scratch = step.flops = 0;
  const Index unit = merged_bytes(plan, step);
  for (Index round = 0; round < step.rounds; ++round) {
    const MergePeer peer = merge_peer(plan, step, at, round);
    if (!peer.comes) continue;
    const Index bytes = saturating_mul(peer.own, unit);
    step.payload = saturating_add(step.payload, bytes);
    if (!on_one_node(step.node, at, peer.at))
      step.network_payload = saturating_add(step.network_payload, bytes);
    ++step.messages;
    step.scratch =
        max_of(step.scratch, arena_charge(bytes) + arena_charge(saturating_mul(peer.other, unit)));
    step.flops = saturating_add(step.flops, peer.own);
  }
}

/// Returns the work of one round on the plan's process: a call in bytes, and the merge that
/// follows.
inline MoveWork merge_work(const Plan& plan, const Step& step, Index round) {
  const Coordinates at = plan.mesh.coordinates(plan.process);
  const MergePeer peer = merge_peer(plan, step, at, round);
  MoveWork work;
  work.call.kind = Collective::exchange;
  work.call.group = step.group;
  work.call.type = DType::u8;
  work.call.own = plan.mesh.place_in_group(step.group, at);
  work.call.members = plan.mesh.group_size(step.group);
  work.call.bound = step.slab;
  MessageSide send(Flow::out, false, DType::u8, no_memory),
      receive(Flow::in, false, DType::u8, no_memory);
  if (peer.comes) {
    const int rank = plan.mesh.place_in_group(step.group, peer.at);
    send.begin(rank);
    receive.begin(rank);
    LocalMerge& merge = work.merge.lines;
    work.merge.tensors.resize(step.in.size());
    for (const int k : merged_order(plan, step)) {
      const DType type = plan.slots[step.in[k]].desc.type;
      work.merge.tensors[k] = {send.total(), receive.total(), type};
      send.add(static_cast<MemoryNumber>(step.output(k)), type, row_at(0, peer.own));
      receive.add(no_memory, type, row_at(0, peer.other));
    }
    const TensorDesc& keys = plan.slots[step.in[0]].desc;
    const Box own = block(keys.extents, keys.sharding, plan.mesh, at);
    const Box other = block(keys.extents, keys.sharding, plan.mesh, peer.at);
    const auto lines = step.as<step::Communicate>();
    merge.own = own[lines.along].size();
    merge.other = other[lines.along].size();
    for (int d = 0; d < lines.along; ++d) merge.outer *= own[d].size();
    for (int d = lines.along + 1; d < own.rank(); ++d) merge.inner *= own[d].size();
    merge.last = peer.last;
    merge.descending = lines.descending;
    merge.positions = step.in.size() > 1;
    merge.narrow = merge.positions && plan.slots[step.in[1]].desc.type == DType::i32;
  }
  receive.copies.clear();  // the merge reads what arrives
  work.send_bytes = send.staging();
  work.receive_bytes = receive.staging();
  put_sides(work, send, receive);
  if (peer.comes && !on_one_node(step.node, at, peer.at)) work.call.network = work.send_bytes;
  return work;
}

}  // namespace tessera::detail
