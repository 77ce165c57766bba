// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The numbers of one move of a tensor on a process, and its cost: in one call, or in levels where
/// its group spans nodes.
///
///     detail::Move m = detail::classify(desc.extents, from, to, mesh);
///     detail::count_move(m, desc, mesh, at, machine).payload;   detail::price(m, desc, mesh, machine);
///
/// Laws: the payload equals that of the call in plan/work/work.hpp, by the law of mesh/call.hpp;
/// the price is the same on every process.
#include <algorithm>

#include <tessera/base/memory.hpp>
#include <tessera/mesh/call.hpp>
#include <tessera/mesh/levels.hpp>
#include <tessera/plan/move/move.hpp>
#include <tessera/plan/move/transfer.hpp>

namespace tessera::detail {

/// The numbers of a move on one process.
struct MoveNumbers {
  Index payload = 0;
  Index messages = 0;
  Index network_payload = 0;   ///< the part of the payload between nodes
  Index network_messages = 0;  ///< the messages priced as network messages
  Index copied = 0;            ///< bytes packed and unpacked
  Index send_staging = 0;      ///< bytes
  Index receive_staging = 0;   ///< bytes
  constexpr Index scratch() const {
    return arena_charge(send_staging) + arena_charge(receive_staging);
  }
};

/// An all-reduce sums n elements in parts, one for each member of the group. Returns the elements
/// in the parts of the members that share `near` with the process at `at` (only its own part where
/// `near` is empty).
constexpr Index kept_of_all_reduce(Index n, AxisSet group, const AxisGroup& near,
                                   const MeshShape& mesh, const Coordinates& at) {
  const int members = mesh.group_size(group);
  if (near.empty()) return block_size(n, members, mesh.place_in_group(group, at));
  Index kept = 0;
  for (int k = 0; k < mesh.group_size(near); ++k)
    kept += block_size(n, members, mesh.place_in_group(group, mesh.member(near, at, k)));
  return kept;
}
/// Whether processes send point to point, each to those that need what it has.
constexpr bool point_to_point(const Move& move) {
  return move.collective == Collective::collective_permute ||
         move.collective == Collective::exchange;
}
/// The numbers of a collective that is made in one call.
constexpr MoveNumbers count_direct(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                   const Coordinates& at, const Levels& level) {
  MoveNumbers n;
  const Index unit = static_cast<Index>(size_of(desc.type));
  const int members = mesh.group_size(move.group);
  const bool far = level.level() == Level::network;
  const bool permutes = move.collective == Collective::collective_permute;
  const Index before =
      point_to_point(move) ? 0 : block_volume(desc.extents, desc.sharding, mesh, at);
  const Index after = permutes ? 0 : block_volume(desc.extents, move.to, mesh, at);
  switch (move.collective) {
    case Collective::all_gather:
      n.payload = saturating_sub(after, before);
      n.messages = rounds(members);
      if (far)
        n.network_payload =
            saturating_sub(after, owned_by(level.node, desc.extents, desc.sharding, mesh, at));
      if (!move.direct_receive) n.receive_staging = saturating_mul(after, unit);
      break;
    case Collective::reduce_scatter:
      n.payload = saturating_sub(before, after);
      n.messages = rounds(members);
      if (far)
        n.network_payload =
            saturating_sub(before, owned_by(level.node, desc.extents, move.to, mesh, at));
      if (!move.direct_send) n.send_staging = saturating_mul(before, unit);
      break;
    case Collective::all_reduce: {
      n.messages = 2 * rounds(members);
      if (saturated(before)) {  // each process's part cannot be computed
        n.payload = members > 1 ? max_int64 : 0;
        n.network_payload = far ? max_int64 : 0;
        break;
      }
      const auto kept = [&](const AxisGroup& near) {
        return kept_of_all_reduce(before, move.group, near, mesh, at);
      };
      n.payload = saturating_mul(2, before - kept({}));
      if (far) n.network_payload = saturating_mul(2, before - kept(level.node));
      break;
    }
    case Collective::all_to_all:
      n.payload = saturating_sub(before, intersect(block(desc.extents, desc.sharding, mesh, at),
                                                   block(desc.extents, move.to, mesh, at))
                                             .size());
      n.messages = members - 1;
      if (far) {
        n.network_payload =
            n.payload - sent(desc.extents, desc.sharding, move.to, mesh, at, level.node).elements;
        n.network_messages = members - mesh.group_size(level.node);
      }
      if (!move.direct_send) n.send_staging = saturating_mul(before, unit);
      if (!move.direct_receive) n.receive_staging = saturating_mul(after, unit);
      break;
    case Collective::broadcast:  // no move between shardings
      break;
    case Collective::collective_permute:
    case Collective::exchange: {
      const SharedSending sharing(desc.extents, desc.sharding, move.to, move.group, mesh);
      const auto sent_to = [&](const AxisGroup& group) {
        return sharing.axes.empty()
                   ? sent(desc.extents, desc.sharding, move.to, mesh, at, group)
                   : sent_shared(desc.extents, desc.sharding, move.to, sharing, mesh, at, group);
      };
      const SentTo traffic = sent_to(desc.sharding.used() | sharing.axes);
      n.payload = traffic.elements;
      n.messages = traffic.messages;
      if (far) {
        const SentTo near = sent_to(level.node);
        n.network_payload = traffic.elements - near.elements;
        n.network_messages = traffic.messages - near.messages;
      }
      if (move.collective == Collective::exchange) {
        n.send_staging = saturating_mul(n.payload, unit);
        n.receive_staging = saturating_mul(after - traffic.kept, unit);
      }
      break;
    }
  }
  n.payload = saturating_mul(n.payload, unit);
  n.network_payload = saturating_mul(n.network_payload, unit);
  if (far && move.collective <= Collective::all_reduce && move.collective != Collective::all_to_all)
    n.network_messages = n.messages;
  n.copied = saturating_add(n.send_staging, n.receive_staging);
  return n;
}

/// The numbers of a collective in levels: the sum of plan/move/staged.hpp's calls.
constexpr MoveNumbers count_staged(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                   const Coordinates& at) {
  MoveNumbers n;
  const Index unit = static_cast<Index>(size_of(desc.type));
  const AxisGroup far = move.near.rest(move.group);
  const int nears = mesh.group_size(move.near);
  const int fars = mesh.group_size(far);
  const Index before = block_volume(desc.extents, desc.sharding, mesh, at);
  const Index after = block_volume(desc.extents, move.to, mesh, at);
  Index inside = 0;
  Index between = 0;
  Index send = 0;  // elements of the two staging buffers
  Index receive = 0;
  Index copied = 0;
  switch (move.collective) {
    case Collective::all_reduce:
      send = block_size(before, nears, mesh.place_in_group(move.near, at));
      inside = 2 * (before - send);
      between = 2 * (send - block_size(send, fars, mesh.place_in_group(far, at)));
      n.messages = 2 * rounds(nears);
      n.network_messages = 2 * rounds(fars);
      break;
    case Collective::reduce_scatter:
      receive = owned_by(far, desc.extents, move.to, mesh, at);
      send = copied = before;
      inside = before - receive;
      between = receive - after;
      n.messages = rounds(nears);
      n.network_messages = rounds(fars);
      break;
    case Collective::all_gather:
      send = owned_by(far, desc.extents, desc.sharding, mesh, at);
      receive = copied = after;
      inside = after - send;
      between = send - before;
      n.messages = rounds(nears);
      n.network_messages = rounds(fars);
      break;
    case Collective::all_to_all: {
      // The data from p to q is, along each dimension that axes leave, a part of p's block, and
      // along each that they enter, a part of q's. So sums over senders and over receivers
      // multiply.
      const auto sum = [&](const AxisGroup& from, const AxisGroup& to) {
        Index product = 1;
        for (int d = 0; d < desc.rank(); ++d) {
          const Interval whole{0, desc.extents[d]};
          const bool entered = mesh.parts(move.to[d]) > mesh.parts(desc.sharding[d]);
          product = saturating_mul(
              product, parts_of_group(whole, whole, entered ? move.to[d] : desc.sharding[d], 0,
                                      entered ? to : from, mesh, at)
                           .elements);
        }
        return product;
      };
      const AxisGroup self;
      const Index gathered = sum(move.near, far);  // the result of the first call
      send = max_of(before, gathered);
      receive = max_of(gathered, after);
      copied = before + gathered + after;
      inside = before - sum(self, far);
      between = gathered - sum(move.near, self);
      n.messages = nears - 1;
      n.network_messages = fars - 1;
      break;
    }
    case Collective::collective_permute:
    case Collective::exchange:
    case Collective::broadcast:
      break;
  }
  n.messages += n.network_messages;
  n.network_payload = saturating_mul(between, unit);
  n.payload = saturating_mul(inside + between, unit);
  n.send_staging = saturating_mul(send, unit);
  n.receive_staging = saturating_mul(receive, unit);
  n.copied = saturating_mul(copied, unit);
  return n;
}

/// Returns the numbers of `move` on the process at `at`, starting from `desc`.
constexpr MoveNumbers count_move(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                 const Coordinates& at, const Machine& machine = {}) {
  if (move.kind == StepKind::slice) return {};
  if (!move.near.empty()) return detail::count_staged(move, desc, mesh, at);
  return detail::count_direct(move, desc, mesh, at, levels(move.group, mesh, machine));
}

/// Calls visit(at) for those processes besides process 0 of which one does most in a move, or
/// nearly most: of ragged blocks the last of the group; point to point, where process 0 may send
/// nothing and the last own nothing, the second and the last along each axis that matters.
template <class Visit>
constexpr void for_each_busy(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                             const Visit& visit) {
  const Coordinates origin(mesh.rank(), 0);
  if (!point_to_point(move)) {
    if (move.even || move.collective == Collective::all_reduce) return;
    Coordinates last = origin;
    for (int axis = 0; axis < mesh.rank(); ++axis)
      if (move.group.contains(axis)) last[axis] = mesh[axis] - 1;
    return visit(last);
  }
  const bool even = detail::cut(desc.extents, desc.sharding, move.to, mesh).even &&
                    detail::cut(desc.extents, move.to, desc.sharding, mesh).even;
  const AxisSet axes = even ? move.group : desc.sharding.used() | move.to.used();
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    if (!axes.contains(axis) || mesh[axis] == 1) continue;
    Coordinates at = origin;
    at[axis] = 1;
    visit(at);
    if (even && move.collective == Collective::collective_permute) return;  // all send as much
    if (mesh[axis] == 2) continue;
    at[axis] = mesh[axis] - 1;
    visit(at);
  }
}

/// Returns the price of a move: the most that process 0, which owns a largest block, and the few
/// others of for_each_busy() send, so that all processes agree.
constexpr std::int64_t price(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                             const Machine& machine) {
  const Coordinates origin(mesh.rank(), 0);
  if (move.kind == StepKind::slice)
    return machine.copy(saturating_mul(block_volume(desc.extents, move.to, mesh, origin),
                                       static_cast<Index>(size_of(desc.type))));
  MoveNumbers n = count_move(move, desc, mesh, origin, machine);
  for_each_busy(move, desc, mesh, [&](const Coordinates& at) {
    const MoveNumbers other = count_move(move, desc, mesh, at, machine);
    n.payload = max_of(n.payload, other.payload);
    n.messages = max_of(n.messages, other.messages);
    n.network_payload = max_of(n.network_payload, other.network_payload);
    n.network_messages = max_of(n.network_messages, other.network_messages);
    n.send_staging = max_of(n.send_staging, other.send_staging);
    n.receive_staging = max_of(n.receive_staging, other.receive_staging);
    n.copied = max_of(n.copied, other.copied);
  });
  if (move.collective == Collective::exchange)  // who receives most waits until it was packed
    n.copied = saturating_add(n.send_staging, n.receive_staging);
  const Index messages = max_of(1, n.messages);
  Index near = n.payload - n.network_payload, far = n.network_payload;
  if (point_to_point(move) || move.collective == Collective::all_to_all) {
    Index& shared = machine.processes_per_node <= 0 ? near : far;  // over links of the network
    shared = machine.spread(shared);
  }
  std::int64_t cost =
      saturating_add(machine.transfer(near, messages - n.network_messages), machine.copy(n.copied));
  if (n.network_messages > 0)
    cost = saturating_add(cost, machine.transfer(far, n.network_messages, Level::network));
  return cost;
}

/// Returns the price of a broadcast of `bytes` among `members` processes. Within a node all read
/// them from the memory of the one that has them; between nodes they go the better of the two ways
/// that MPI libraries have, down a tree, or scattered and then gathered by all (R. Thakur, R.
/// Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH, 2005,
/// section 4.3).
constexpr std::int64_t price_of_broadcast(Index bytes, int members, Level level,
                                          const Machine& machine) {
  const Index steps = rounds(members), apart = bytes - bytes / max_of(1, members);
  if (level != Level::network) return machine.transfer(bytes, steps, level);
  return std::min(machine.transfer(saturating_mul(steps, bytes), steps, level),
                  machine.transfer(saturating_mul(2, apart), 2 * steps, level));
}

/// Returns the same collective in levels, where its group has members both within a node and
/// beyond; else `move`.
constexpr Move in_levels(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                         const Machine& machine) {
  if (machine.one_node(mesh) || move.kind != StepKind::communicate ||
      move.collective > Collective::all_reduce)
    return move;
  const Levels found = levels(move.group, mesh, machine);
  if (found.node.empty() || found.network.empty()) return move;
  Move staged = move;
  staged.near = found.node;
  staged.direct_send = staged.direct_receive = false;
  staged.panel_dim = -1;
  staged.even = detail::cut(desc.extents, desc.sharding, move.to, mesh).even &&
                detail::cut(desc.extents, move.to, desc.sharding, mesh).even;
  return staged;
}
}  // namespace tessera::detail
