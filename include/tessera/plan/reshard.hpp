// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// From one sharding to another by the cheapest short chain of moves: slices, one collective where
/// one will do, reduce-scatter rather than all-reduce where the sum is wanted in pieces.
///
///     Moves moves = reshard_moves(desc, to, mesh, Machine{});     // moves.cost, moves.list
///
/// Laws: from S to S there are no moves; slicing a replicated tensor communicates nothing; the
/// chain is decided by process 0's prices, so every process decides alike.
#include <tessera/plan/move.hpp>

namespace tessera {

/// A chain of moves and its price in picoseconds.
struct Moves {
  FixedVector<Move, 6> list;  ///< at most slice, scatter, combine, slice, exchange, gather
  std::int64_t cost = 0;
};

namespace detail {

class MoveChain {
 public:
  constexpr MoveChain(const TensorDesc& from, const MeshShape& mesh, const Machine& machine)
      : at_(from), mesh_(&mesh), machine_(&machine) {}

  constexpr const Sharding& sharding() const { return at_.sharding; }
  constexpr const Moves& moves() const { return moves_; }

  constexpr void apply(const Move& move) {
    moves_.cost = saturating_add(moves_.cost, price(move, at_, *mesh_, *machine_));
    moves_.list.push_back(move);
    at_.sharding = move.to;
  }
  constexpr void go(const Sharding& to) {
    if (at_.sharding == to) return;
    apply(classify(at_.extents, at_.sharding, to, *mesh_));
  }
  constexpr void combine(AxisSet group) {
    if (!group.empty()) apply(reduce_move(at_.sharding, group));
  }
  /// Appends the axes of `group` to the dimensions where `to` has them and combines the values over
  /// them.
  constexpr void combine_scattered(const Sharding& to, AxisSet group) {
    if (group.empty()) return;
    Sharding next = at_.sharding.with_partial(at_.sharding.partial - group, at_.sharding.reduction);
    for (int d = 0; d < to.rank(); ++d)
      for (int i = 0; i < to[d].size(); ++i)
        if (group.contains(to[d][i])) next[d].push_back(to[d][i]);
    apply(scatter_move(at_.extents, at_.sharding, next, group, *mesh_));
  }
  constexpr const Extents& extents() const { return at_.extents; }
  constexpr const MeshShape& mesh() const { return *mesh_; }

 private:
  TensorDesc at_;
  const MeshShape* mesh_;
  const Machine* machine_;
  Moves moves_;
};

constexpr void keep_cheaper(MoveChain& best, const MoveChain& candidate) {
  const bool cheaper = candidate.moves().cost < best.moves().cost ||
                       (candidate.moves().cost == best.moves().cost &&
                        candidate.moves().list.size() < best.moves().list.size());
  if (cheaper) best = candidate;
}

/// Returns `from` with every axis of `to` appended that can be had by slicing: not in use, and next
/// in its dimension.
constexpr Sharding sliced_towards(const Sharding& from, const Sharding& to) {
  Sharding result = from;
  const AxisSet taken = from.used() | from.partial;
  for (int d = 0; d < to.rank(); ++d) {
    if (!to[d].starts_with(from[d])) continue;
    for (int i = from[d].size(); i < to[d].size() && !taken.contains(to[d][i]); ++i)
      result[d].push_back(to[d][i]);
  }
  return result;
}

/// Returns `from` without the trailing axes that `to` does not use anywhere.
constexpr Sharding gathered_towards(const Sharding& from, const Sharding& to) {
  Sharding result = from;
  const AxisSet wanted = to.used();
  for (int d = 0; d < from.rank(); ++d)
    while (!result[d].empty() && !wanted.contains(result[d][result[d].size() - 1]))
      result[d] = result[d].first(result[d].size() - 1);
  return result;
}

/// Returns `to` with the axes that only `from` uses still on the dimension they split, as the minor
/// ones.
constexpr Sharding before_gather(const Sharding& from, const Sharding& to) {
  Sharding result = to;
  const AxisSet wanted = to.used();
  for (int d = 0; d < from.rank(); ++d)
    for (int i = 0; i < from[d].size(); ++i)
      if (!wanted.contains(from[d][i])) result[d].push_back(from[d][i]);
  return result;
}

/// Extends `start` to `to`, whose partial axes are the same, by the cheapest of a few chains.
constexpr MoveChain finish_chain(const MoveChain& start, const Sharding& to) {
  MoveChain direct = start;
  direct.go(to);
  if (direct.sharding() == start.sharding()) return direct;
  const Move& only = direct.moves().list.back();
  if (only.kind == StepKind::slice || only.collective != Collective::exchange) return direct;
  MoveChain best = direct;
  const Sharding sliced = sliced_towards(start.sharding(), to);
  MoveChain slice_first = start;
  slice_first.go(sliced);
  MoveChain gather_last = slice_first;
  gather_last.go(before_gather(sliced, to));
  gather_last.go(to);
  keep_cheaper(best, gather_last);
  MoveChain gather_first = slice_first;
  gather_first.go(gathered_towards(sliced, to));
  gather_first.go(to);
  keep_cheaper(best, gather_first);
  slice_first.go(to);
  keep_cheaper(best, slice_first);
  return best;
}
}  // namespace detail

/// Returns true when values under `from` can be brought to `to`: nothing becomes partial that was
/// not.
constexpr bool can_reshard(const Sharding& from, const Sharding& to) {
  return from.rank() == to.rank() && (to.partial - from.partial).empty() &&
         (to.partial.empty() || to.reduction == from.reduction);
}

/// Returns the moves that take a tensor `tensor` to sharding `target`; axes of size 1 are left out
/// of them. Precondition: can_reshard(tensor.sharding, target).
constexpr Moves reshard_moves(const TensorDesc& tensor, const Sharding& target,
                              const MeshShape& mesh, const Machine& machine) {
  using detail::MoveChain;
  const TensorDesc from{tensor.type, tensor.extents, without_unit_axes(tensor.sharding, mesh)};
  const Sharding to = without_unit_axes(target, mesh);
  if (from.sharding == to) return {};
  const MoveChain start(from, mesh, machine);
  const AxisSet open = from.sharding.partial - to.partial;
  if (open.empty()) return detail::finish_chain(start, to).moves();

  const AxisSet scattered = open & to.used();
  const AxisSet combined = open - scattered;

  MoveChain reduce_first = start;  // slice what is free, combine, then move the rest
  reduce_first.go(detail::sliced_towards(
      from.sharding, to.with_partial(from.sharding.partial, from.sharding.reduction)));
  MoveChain whole = reduce_first;
  reduce_first.combine_scattered(to, scattered);
  reduce_first.combine(combined);
  MoveChain best = detail::finish_chain(reduce_first, to);
  if (!scattered.empty()) {
    whole.combine(open);  // for tiny tensors, one all-reduce and a slice have fewer rounds
    detail::keep_cheaper(best, detail::finish_chain(whole, to));

    Sharding moved = to.with_partial(from.sharding.partial, from.sharding.reduction);
    bool lands =
        true;  // the open axes are the minor ones everywhere: scattering lands exactly on `to`
    for (int d = 0; d < to.rank(); ++d) {
      moved[d] = to[d].without(open);
      lands = lands && to[d].starts_with(moved[d]);
    }
    if (lands) {
      MoveChain move_first = detail::finish_chain(start, moved);
      move_first.combine_scattered(to, scattered);
      move_first.combine(combined);
      detail::keep_cheaper(best, move_first);
    }
  }
  return best.moves();
}

}  // namespace tessera
