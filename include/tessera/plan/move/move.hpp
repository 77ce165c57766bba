// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One move of a tensor from one sharding to another by one collective: which collective it is,
/// over which axes, and whether data must be packed. plan/move/move_cost.hpp has its cost,
/// plan/move/reshard.hpp chains of moves.
///
///     detail::Move m = detail::classify(desc.extents, from, to, mesh);   // P<data> -> P<_>: all-gather over data
///
/// Laws: the kind depends on the shardings and global extents alone, never on whether a local block
/// is empty.
#include <tessera/plan/plan.hpp>
#include <tessera/spec/block.hpp>

namespace tessera::detail {

struct Move {
  StepKind kind;  ///< a slice, or communication
  Collective collective = Collective::all_gather;
  AxisSet group;
  Sharding to;
  bool even = false;
  bool direct_send = false;
  bool direct_receive = false;
  int panel_dim =
      -1;  ///< the dimension along which the packed side is a row of equal panels, or -1
  /// When not empty, the collective runs in levels: within these, and between them
  /// (plan/move/staged.hpp).
  AxisGroup near;
};

constexpr bool ascending(AxisList axes, int first) {
  for (int i = first + 1; i < axes.size(); ++i)
    if (axes[i] < axes[i - 1]) return false;
  return true;
}
/// A block split only along dimension d is contiguous when all dimensions before d have extent 1.
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
};
constexpr Difference difference(const Sharding& from, const Sharding& to) {
  Difference result;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] == to[d]) continue;
    const int common = from[d].common_prefix(to[d]);
    const bool leaves = from[d].size() > common;
    const bool enters = to[d].size() > common;
    for (int i = common; i < from[d].size(); ++i) result.leaving.insert(from[d][i]);
    for (int i = common; i < to[d].size(); ++i) result.arriving.insert(to[d][i]);
    if (leaves) {
      ++result.left;
      result.last_left = d;
    }
    if (enters) {
      ++result.entered;
      result.last_entered = d;
    }
    result.both += leaves && enters;
  }
  return result;
}
/// For the dimensions of `cut` that are split over axes which `other` lacks there: whether they are
/// split evenly, and whether those axes are in the order of the mesh.
struct Cut {
  bool even = true;
  bool ascending = true;
};
constexpr Cut cut(const Extents& extents, const Sharding& cut, const Sharding& other,
                  const MeshShape& mesh) {
  Cut result;
  for (int d = 0; d < cut.rank(); ++d) {
    if (cut[d] == other[d]) continue;
    const int common = cut[d].common_prefix(other[d]);
    if (cut[d].size() == common) continue;
    result.even = result.even && divides(mesh.parts(cut[d]), extents[d]);
    result.ascending = result.ascending && ascending(cut[d], common);
  }
  return result;
}
constexpr bool same_grid(const Sharding& from, const Sharding& to, const MeshShape& mesh) {
  for (int d = 0; d < from.rank(); ++d)
    if (!(from[d] == to[d]) && !same_sizes(from[d], to[d], mesh)) return false;
  return true;
}

/// Returns the dimension that an all-gather from `from` to `to` gathers, which is the only one.
constexpr int gathered_dim(const Sharding& from, const Sharding& to, const MeshShape& mesh) {
  return detail::difference(without_unit_axes(from, mesh), without_unit_axes(to, mesh)).last_left;
}

/// Returns the one move that takes finished (or equally partial) values from `from` to `to`.
constexpr Move classify(const Extents& extents, const Sharding& from, const Sharding& to,
                        const MeshShape& mesh) {
  const detail::Difference diff = detail::difference(from, to);
  Move move;
  move.to = to;
  move.kind = diff.leaving.empty() ? StepKind::slice : StepKind::communicate;
  if (diff.leaving.empty()) return move;  // no axis leaves: a slice of local elements
  move.group = diff.leaving;
  if (diff.arriving.empty()) {
    move.collective = Collective::all_gather;
    move.direct_send = true;
    move.direct_receive = diff.left == 1 && detail::leading(extents, diff.last_left);
    const detail::Cut left = detail::cut(extents, from, to, mesh);
    move.even = left.even && (!move.direct_receive || left.ascending);
    if (!move.direct_receive && diff.left == 1 && left.even && left.ascending)
      move.panel_dim = diff.last_left;
  } else if (diff.leaving == diff.arriving && detail::same_grid(from, to, mesh)) {
    move.collective = Collective::collective_permute;
    move.direct_send = true;
    move.direct_receive = true;
  } else if (diff.leaving == diff.arriving && diff.both == 0) {
    move.collective = Collective::all_to_all;
    move.direct_send = diff.entered == 1 && detail::leading(extents, diff.last_entered);
    move.direct_receive = diff.left == 1 && detail::leading(extents, diff.last_left);
    const detail::Cut left = detail::cut(extents, from, to, mesh);
    const detail::Cut entered = detail::cut(extents, to, from, mesh);
    move.even = left.even && entered.even && (!move.direct_send || entered.ascending) &&
                (!move.direct_receive || left.ascending);
  } else {
    move.collective = Collective::exchange;
  }
  return move;
}

/// Returns the move that combines partial values over `group` and leaves them scattered as `to`
/// says: every axis of the group has been appended to one dimension of `from`.
constexpr Move scatter_move(const Extents& extents, const Sharding& from, const Sharding& to,
                            AxisSet group, const MeshShape& mesh) {
  const detail::Difference diff = detail::difference(from, to);
  const detail::Cut entered = detail::cut(extents, to, from, mesh);
  Move move;
  move.kind = StepKind::communicate;
  move.collective = Collective::reduce_scatter;
  move.group = group;
  move.to = to;
  move.direct_send =
      diff.entered == 1 && entered.ascending && detail::leading(extents, diff.last_entered);
  move.direct_receive = true;
  move.even = entered.even;
  if (!move.direct_send && diff.entered == 1 && entered.even && entered.ascending)
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

/// Returns the same exchange with the sending shared by the replicas along whose axes its receivers
/// differ (plan/move/transfer.hpp), or another move as it is.
constexpr Move shared_by_replicas(Move move, const Sharding& from) {
  if (move.kind == StepKind::communicate && move.collective == Collective::exchange)
    move.group = move.group | (move.to.used() - from.used());
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
}  // namespace tessera::detail
