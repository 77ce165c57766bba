// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One move of a tensor from one sharding to another by one collective: which collective it is,
/// over which axes, whether data must be packed, and what it costs. Chains of moves are
/// plan/reshard.hpp's.
///
///     Move m = classify(desc.extents, from, to, mesh);   // P<data> -> P<_>: all-gather over data
///
/// Laws: the kind depends on the shardings and global extents alone, never on whether a local block
/// is empty.
#include <tessera/base/memory.hpp>
#include <tessera/mesh/call.hpp>
#include <tessera/mesh/levels.hpp>
#include <tessera/plan/plan.hpp>
#include <tessera/plan/transfer.hpp>
#include <tessera/spec/block.hpp>

namespace tessera {

struct Move {
  StepKind kind = StepKind::slice;
  Collective collective = Collective::all_gather;
  AxisSet group;
  Sharding to;
  bool even = false;
  bool direct_send = false;
  bool direct_receive = false;
  int panel_dim =
      -1;  ///< the dimension along which the packed side is a row of equal panels, if it is
  /// When not empty, the collective is carried out in levels: within these, and between them
  /// (plan/staged.hpp).
  AxisGroup near;
};

/// What a move does on one process.
struct MoveNumbers {
  Index payload = 0;
  Index messages = 0;
  Index network_payload = 0;   ///< of the payload, what goes between nodes
  Index network_messages = 0;  ///< of the messages, those that are priced so
  Index copied = 0;            ///< bytes packed and unpacked
  Index send_staging = 0;      ///< bytes
  Index receive_staging = 0;   ///< bytes
  constexpr Index scratch() const {
    return arena_charge(send_staging) + arena_charge(receive_staging);
  }
};

namespace detail {
constexpr bool ascending(AxisList axes, int first) {
  for (int i = first + 1; i < axes.size(); ++i)
    if (axes[i] < axes[i - 1]) return false;
  return true;
}
/// A block cut along dimension d only is contiguous when everything before d has extent 1.
constexpr bool leading(const Extents& extents, int d) {
  for (int i = 0; i < d; ++i)
    if (extents[i] != 1) return false;
  return true;
}
constexpr bool same_sizes(AxisList a, AxisList b, const MeshShape& mesh) {
  if (a.size() != b.size()) return false;
  for (int i = 0; i < a.size(); ++i)
    if (mesh[a[i]] != mesh[b[i]]) return false;
  return true;
}

/// How the dimensions of `from` and `to` differ: which axes leave, which arrive, where.
struct Difference {
  AxisSet leaving;
  AxisSet arriving;
  int left = 0;     ///< dimensions that axes leave
  int entered = 0;  ///< dimensions that axes arrive at
  int both = 0;     ///< dimensions where both happen
  int last_left = -1;
  int last_entered = -1;
  bool left_even = true;
  bool entered_even = true;
  bool left_ascending = true;
  bool entered_ascending = true;
  bool same_grid = true;
};
constexpr Difference difference(const Extents& extents, const Sharding& from, const Sharding& to,
                                const MeshShape& mesh) {
  Difference result;
  for (int d = 0; d < extents.size(); ++d) {
    if (from[d] == to[d]) continue;
    const int common = from[d].common_prefix(to[d]);
    const bool leaves = from[d].size() > common;
    const bool enters = to[d].size() > common;
    for (int i = common; i < from[d].size(); ++i) result.leaving.insert(from[d][i]);
    for (int i = common; i < to[d].size(); ++i) result.arriving.insert(to[d][i]);
    if (leaves) {
      ++result.left;
      result.last_left = d;
      result.left_even = result.left_even && extents[d] % mesh.parts(from[d]) == 0;
      result.left_ascending = result.left_ascending && ascending(from[d], common);
    }
    if (enters) {
      ++result.entered;
      result.last_entered = d;
      result.entered_even = result.entered_even && extents[d] % mesh.parts(to[d]) == 0;
      result.entered_ascending = result.entered_ascending && ascending(to[d], common);
    }
    result.both += leaves && enters;
    result.same_grid = result.same_grid && same_sizes(from[d], to[d], mesh);
  }
  return result;
}
}  // namespace detail

/// Returns the one move that takes finished (or equally partial) values from `from` to `to`.
constexpr Move classify(const Extents& extents, const Sharding& from, const Sharding& to,
                        const MeshShape& mesh) {
  const detail::Difference diff = detail::difference(extents, from, to, mesh);
  Move move;
  move.to = to;
  if (diff.leaving.empty()) return move;  // nothing leaves: a slice of what is already here
  move.kind = StepKind::communicate;
  move.group = diff.leaving;
  if (diff.arriving.empty()) {
    move.collective = Collective::all_gather;
    move.direct_send = true;
    move.direct_receive = diff.left == 1 && detail::leading(extents, diff.last_left);
    move.even = diff.left_even && (!move.direct_receive || diff.left_ascending);
    if (!move.direct_receive && diff.left == 1 && diff.left_even && diff.left_ascending)
      move.panel_dim = diff.last_left;
  } else if (diff.leaving == diff.arriving && diff.same_grid) {
    move.collective = Collective::collective_permute;
    move.direct_send = true;
    move.direct_receive = true;
  } else if (diff.leaving == diff.arriving && diff.both == 0) {
    move.collective = Collective::all_to_all;
    move.direct_send = diff.entered == 1 && detail::leading(extents, diff.last_entered);
    move.direct_receive = diff.left == 1 && detail::leading(extents, diff.last_left);
    move.even = diff.left_even && diff.entered_even &&
                (!move.direct_send || diff.entered_ascending) &&
                (!move.direct_receive || diff.left_ascending);
  } else {
    move.collective = Collective::exchange;
  }
  return move;
}

/// Returns the move that combines partial values over `group` and leaves them scattered as `to`
/// says: every axis of the group has been appended to one dimension of `from`.
constexpr Move scatter_move(const Extents& extents, const Sharding& from, const Sharding& to,
                            AxisSet group, const MeshShape& mesh) {
  const detail::Difference diff = detail::difference(extents, from, to, mesh);
  Move move;
  move.kind = StepKind::communicate;
  move.collective = Collective::reduce_scatter;
  move.group = group;
  move.to = to;
  move.direct_send =
      diff.entered == 1 && diff.entered_ascending && detail::leading(extents, diff.last_entered);
  move.direct_receive = true;
  move.even = diff.entered_even;
  if (!move.direct_send && diff.entered == 1 && diff.entered_even && diff.entered_ascending)
    move.panel_dim = diff.last_entered;
  return move;
}

/// Returns the move to `to` point to point, whatever the shardings; `group` holds the axes that
/// leave a dimension.
constexpr Move exchange_move(const Sharding& to, AxisSet group) {
  Move move;
  move.kind = StepKind::communicate;
  move.collective = Collective::exchange;
  move.group = group;
  move.to = to;
  return move;
}

/// Returns the move that combines partial values over `group` and leaves the result on all of it.
constexpr Move reduce_move(const Sharding& from, AxisSet group) {
  Move move;
  move.kind = StepKind::communicate;
  move.collective = Collective::all_reduce;
  move.group = group;
  move.to = from.with_partial(from.partial - group, from.reduction);
  move.direct_send = true;
  move.direct_receive = true;
  return move;
}

namespace detail {
/// The numbers of a collective that is made in one call. `node` is the part of the group within a
/// node.
constexpr MoveNumbers count_direct(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                   const Coordinates& at, const Levels& level) {
  MoveNumbers n;
  const Index unit = static_cast<Index>(size_of(desc.type));
  const int members = mesh.group_size(move.group);
  const bool far = level.level() == Level::network;
  const Index before = block_volume(desc.extents, desc.sharding, mesh, at);
  const Index after = block_volume(desc.extents, move.to, mesh, at);
  switch (move.collective) {
    case Collective::all_gather:
      n.payload = after - before;
      n.messages = rounds(members);
      if (far)
        n.network_payload = after - owned_by(level.node, desc.extents, desc.sharding, mesh, at);
      if (!move.direct_receive) n.receive_staging = saturating_mul(after, unit);
      break;
    case Collective::reduce_scatter:
      n.payload = before - after;
      n.messages = rounds(members);
      if (far) n.network_payload = before - owned_by(level.node, desc.extents, move.to, mesh, at);
      if (!move.direct_send) n.send_staging = saturating_mul(before, unit);
      break;
    case Collective::all_reduce: {
      n.payload = 2 * (before - block_size(before, members, mesh.group_rank(move.group, at)));
      n.messages = 2 * rounds(members);
      if (far) {
        Index near = 0;
        for (int k = 0; k < mesh.group_size(level.node); ++k)
          near += block_size(before, members,
                             mesh.group_rank(move.group, mesh.member(level.node, at, k)));
        n.network_payload = 2 * (before - near);
      }
      break;
    }
    case Collective::all_to_all:
      n.payload = before - intersect(block(desc.extents, desc.sharding, mesh, at),
                                     block(desc.extents, move.to, mesh, at))
                               .size();
      n.messages = members - 1;
      if (far) {
        n.network_payload =
            n.payload - sent(desc.extents, desc.sharding, move.to, mesh, at, level.node).elements;
        n.network_messages = members - mesh.group_size(level.node);
      }
      if (!move.direct_send) n.send_staging = saturating_mul(before, unit);
      if (!move.direct_receive) n.receive_staging = saturating_mul(after, unit);
      break;
    case Collective::collective_permute:
    case Collective::exchange: {
      const SentTo traffic = sent(desc.extents, desc.sharding, move.to, mesh, at);
      n.payload = traffic.elements;
      n.messages = traffic.messages;
      if (far) {
        const SentTo near = sent(desc.extents, desc.sharding, move.to, mesh, at, level.node);
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

/// The numbers of a collective in levels: what plan/staged.hpp's calls add up to.
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
      send = block_size(before, nears, mesh.group_rank(move.near, at));
      inside = 2 * (before - send);
      between = 2 * (send - block_size(send, fars, mesh.group_rank(far, at)));
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
      // What goes from p to q is a part of p's block for each dimension that axes leave and one of
      // q's for each that they enter: sums over senders and over receivers multiply.
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
      const Index gathered = sum(move.near, far);  // what the first call brings
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
}  // namespace detail

/// Returns what `move` does on the process at `at`, starting from `desc`.
constexpr MoveNumbers count_move(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                 const Coordinates& at, const Machine& machine = {}) {
  if (move.kind == StepKind::slice) return {};
  if (!move.near.empty()) return detail::count_staged(move, desc, mesh, at);
  return detail::count_direct(move, desc, mesh, at, levels(move.group, mesh, machine));
}

/// Returns the price of a move, always of process 0 (which owns a largest block) and, point to
/// point, of one other corner of the mesh, so that all processes agree.
constexpr std::int64_t price(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                             const Machine& machine) {
  const Coordinates origin(mesh.rank(), 0);
  if (move.kind == StepKind::slice)
    return machine.copy(saturating_mul(block_volume(desc.extents, move.to, mesh, origin),
                                       static_cast<Index>(size_of(desc.type))));
  MoveNumbers n = count_move(move, desc, mesh, origin, machine);
  if (move.collective == Collective::collective_permute ||
      move.collective == Collective::exchange) {
    // Process 0 is where a permutation of blocks moves nothing: look at another corner too.
    Coordinates corner = origin;
    for (int axis = 0; axis < mesh.rank(); ++axis)
      if (move.group.contains(axis)) {
        corner[axis] = mesh[axis] - 1;
        break;
      }
    const MoveNumbers other = count_move(move, desc, mesh, corner, machine);
    n.payload = max_of(n.payload, other.payload);
    n.messages = max_of(n.messages, other.messages);
    n.network_payload = max_of(n.network_payload, other.network_payload);
    n.network_messages = max_of(n.network_messages, other.network_messages);
    n.copied = max_of(n.send_staging, other.send_staging) +
               max_of(n.receive_staging, other.receive_staging);
  }
  const Index messages = max_of(1, n.messages);
  std::int64_t cost =
      saturating_add(machine.transfer(n.payload - n.network_payload, messages - n.network_messages),
                     machine.copy(n.copied));
  if (n.network_messages > 0)
    cost = saturating_add(cost,
                          machine.transfer(n.network_payload, n.network_messages, Level::network));
  return cost;
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
  const detail::Difference diff = detail::difference(desc.extents, desc.sharding, move.to, mesh);
  staged.even = diff.left_even && diff.entered_even;
  return staged;
}

}  // namespace tessera
