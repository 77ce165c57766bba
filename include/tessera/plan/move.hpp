// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One move of a tensor from one sharding to another by one collective: which collective it is,
/// over which axes, whether data must be packed, and what it costs. Chains of moves are
/// plan/reshard.hpp's.
///
///     Move m = classify(desc, from, to, mesh);       // P<data> -> P<_>: all-gather over data
///
/// Laws: the kind depends on the shardings and global extents alone, never on whether a local block
/// is empty.
#include <tessera/base/memory.hpp>
#include <tessera/mesh/call.hpp>
#include <tessera/mesh/machine.hpp>
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
};

/// What a move does on one process.
struct MoveNumbers {
  Index payload = 0;
  Index messages = 0;
  Index send_staging = 0;     ///< bytes
  Index receive_staging = 0;  ///< bytes
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

/// Returns what `move` does on the process at `at`, starting from `desc`.
constexpr MoveNumbers count_move(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                 const Coordinates& at) {
  MoveNumbers n;
  if (move.kind == StepKind::slice) return n;
  const Index unit = static_cast<Index>(size_of(desc.type));
  const int members = mesh.group_size(move.group);
  const Index before = block_volume(desc.extents, desc.sharding, mesh, at);
  const Index after = block_volume(desc.extents, move.to, mesh, at);
  switch (move.collective) {
    case Collective::all_gather:
      n.payload = saturating_mul(after - before, unit);
      n.messages = rounds(members);
      if (!move.direct_receive) n.receive_staging = saturating_mul(after, unit);
      break;
    case Collective::reduce_scatter:
      n.payload = saturating_mul(before - after, unit);
      n.messages = rounds(members);
      if (!move.direct_send) n.send_staging = saturating_mul(before, unit);
      break;
    case Collective::all_reduce: {
      const Index own = block_size(before, members, mesh.group_rank(move.group, at));
      n.payload = saturating_mul(2 * (before - own), unit);
      n.messages = 2 * rounds(members);
      break;
    }
    case Collective::all_to_all:
    case Collective::collective_permute:
    case Collective::exchange: {
      const SentTo traffic = sent(desc.extents, desc.sharding, move.to, mesh, at);
      n.payload = saturating_mul(traffic.elements, unit);
      n.messages = move.collective == Collective::all_to_all ? members - 1 : traffic.messages;
      if (move.collective == Collective::exchange) {
        n.send_staging = n.payload;
        n.receive_staging = saturating_mul(after - traffic.kept, unit);
      } else {
        if (!move.direct_send) n.send_staging = saturating_mul(before, unit);
        if (!move.direct_receive) n.receive_staging = saturating_mul(after, unit);
      }
      break;
    }
  }
  return n;
}

/// Returns the price of a move, always of process 0 (which owns a largest block) and, point to
/// point, of one other corner of the mesh, so that all processes agree.
constexpr std::int64_t price(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                             const Machine& machine) {
  const Coordinates origin(mesh.rank(), 0);
  if (move.kind == StepKind::slice)
    return machine.copy(saturating_mul(block_volume(desc.extents, move.to, mesh, origin),
                                       static_cast<Index>(size_of(desc.type))));
  MoveNumbers n = count_move(move, desc, mesh, origin);
  if (move.collective == Collective::collective_permute ||
      move.collective == Collective::exchange) {
    // Process 0 is where a permutation of blocks moves nothing: look at another corner too.
    Coordinates corner = origin;
    for (int axis = 0; axis < mesh.rank(); ++axis)
      if (move.group.contains(axis)) {
        corner[axis] = mesh[axis] - 1;
        break;
      }
    const MoveNumbers other = count_move(move, desc, mesh, corner);
    n.payload = max_of(n.payload, other.payload);
    n.messages = max_of(n.messages, other.messages);
    n.send_staging = max_of(n.send_staging, other.send_staging);
    n.receive_staging = max_of(n.receive_staging, other.receive_staging);
  }
  return saturating_add(machine.transfer(n.payload, n.messages > 0 ? n.messages : 1),
                        machine.copy(saturating_add(n.send_staging, n.receive_staging)));
}

}  // namespace tessera
