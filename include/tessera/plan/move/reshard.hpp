// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// From one sharding to another by the cheapest short chain of moves: slices, one collective where
/// one will do, a reduce-scatter rather than an all-reduce where the result of the sum is split.
///
///     detail::Moves moves = detail::reshard_moves(desc, to, desc.type, mesh, Machine{});     // moves.cost, moves.list
///
/// Under a contract (mesh/contract.hpp) a chain that keeps it comes before any that does not; then
/// two more chains are tried: gather everything and slice again; and sum by a reduce-scatter and an
/// all-gather.
///
/// The replicas of a block may share the sending of an exchange.
///
/// Laws: from S to S there are no moves; slicing a replicated tensor communicates nothing; process
/// 0's prices decide, so every process decides alike.
#include <optional>

#include <tessera/mesh/contract.hpp>
#include <tessera/plan/move/move_cost.hpp>

namespace tessera::detail {

/// The cost, in addition to its time, of a move that the contract does not accept, in picoseconds:
/// three days, so that fewer such moves win before any time counts.
inline constexpr std::int64_t breach_cost = std::int64_t{1} << 58;
/// Returns how many moves in a cost were not accepted.
constexpr std::int64_t breaches(std::int64_t cost) { return cost / breach_cost; }

/// A chain of moves and its price in picoseconds.
struct Moves {
  LazyVector<Move, 6> list;  ///< at most slice, scatter, combine, slice, exchange, gather
  std::int64_t cost = 0;
};

/// One move with its price.
struct Leg {
  Move move;
  std::int64_t cost = 0;
};

/// The legs of a search, so that equal ones are priced once: by the tensor that the search is at
/// and the axes that split it before and after. Where two share a place, the later is kept.
class LegMemo {
 public:
  using Dims = decltype(Sharding::dims);
  struct Entry {
    int tensor;
    Dims from;
    Leg leg;
  };
  int tensor = 0;  ///< that is moved; one number always stands for the same type and extents

  constexpr std::optional<Entry>& entry(const Dims& from, const Dims& to) {
    std::uint32_t hash = static_cast<std::uint32_t>(tensor);
    for (int d = 0; d < from.size(); ++d)
      hash = ((hash ^ from[d].bits()) * 0x9e3779b1u ^ to[d].bits()) * 0x85ebca6bu;
    return table_[(hash ^ hash >> 13) >> 26];
  }
  constexpr bool holds(const std::optional<Entry>& entry, const Dims& from, const Dims& to) const {
    return entry && entry->tensor == tensor && entry->from == from && entry->leg.move.to.dims == to;
  }

 private:
  std::optional<Entry> table_[64];
};

class MoveChain {
 public:
  /// Elements are of type `parts` until the axes that `to` does not leave open are combined.
  constexpr MoveChain(const TensorDesc& from, const Sharding& to, DType parts,
                      const MeshShape& mesh, const Machine& machine, const Contract& contract,
                      LegMemo* memo)
      : at_(from),
        type_(from.type),
        parts_(parts),
        stays_(to.partial),
        mesh_(&mesh),
        machine_(&machine),
        contract_(&contract),
        memo_(memo) {
    be_at(from.sharding);
  }

  constexpr const Sharding& sharding() const { return at_.sharding; }
  constexpr const Moves& moves() const { return moves_; }

  constexpr void apply(const Leg& leg) {
    moves_.cost = saturating_add(moves_.cost, leg.cost);
    moves_.list.push_back(leg.move);
    be_at(leg.move.to);
  }
  constexpr void apply(const Move& move) { apply(priced(move, at_)); }
  /// Returns the move from one sharding of this tensor to another one, which differs.
  constexpr Leg leg(const Sharding& from, const Sharding& to) const {
    if (memo_ == nullptr || at_.type != type_) return new_leg(from, to);
    std::optional<LegMemo::Entry>& entry = memo_->entry(from.dims, to.dims);
    if (!memo_->holds(entry, from.dims, to.dims))
      entry = LegMemo::Entry{memo_->tensor, from.dims, new_leg(from, to)};
    Leg leg = entry->leg;
    leg.move.to = to;  // what is unfinished does not change the price
    return leg;
  }
  constexpr bool bounded() const { return contract_->bounded(); }
  constexpr void go(const Sharding& to) {
    if (!(at_.sharding == to)) apply(leg(at_.sharding, to));
  }
  constexpr void combine(AxisSet group) {
    if (!group.empty()) apply(reduce_move(at_.sharding, group));
  }
  /// Appends the axes of `group` to the dimensions where `to` has them, and combines the values
  /// over them.
  constexpr void combine_scattered(const Sharding& to, AxisSet group) {
    if (group.empty()) return;
    Sharding next = at_.sharding.with_partial(at_.sharding.partial - group, at_.sharding.reduction);
    for (int d = 0; d < to.rank(); ++d)
      for (int i = 0; i < to[d].size(); ++i)
        if (group.contains(to[d][i])) next[d].push_back(to[d][i]);
    apply(scatter_move(at_.extents, at_.sharding, next, group, *mesh_));
  }

 private:
  constexpr void be_at(const Sharding& sharding) {
    at_.sharding = sharding;
    at_.type = (sharding.partial - stays_).empty() ? type_ : parts_;
  }
  constexpr Leg new_leg(const Sharding& from, const Sharding& to) const {
    TensorDesc at = at_;
    at.sharding = from;
    Move move = classify(at.extents, from, to, *mesh_);
    if (!accepted(move) && contract_->accepts(Collective::exchange, move.group))
      move = exchange_move(to, move.group);
    return priced(move, at);
  }
  constexpr bool accepted(const Move& move) const {
    return move.kind == StepKind::slice || contract_->accepts(move.collective, move.group);
  }
  constexpr Leg priced(const Move& move, const TensorDesc& at) const {
    Leg leg{move, price(move, at, *mesh_, *machine_)};
    const Move staged = in_levels(move, at, *mesh_, *machine_);
    if (!staged.near.empty())
      if (const std::int64_t cost = price(staged, at, *mesh_, *machine_); cost < leg.cost)
        leg = {staged, cost};
    const Move shared = shared_by_replicas(move, at.sharding);  // with more messages
    if (!(shared.group == move.group) && accepted(shared))
      if (const std::int64_t cost = price(shared, at, *mesh_, *machine_); cost < leg.cost)
        leg = {shared, cost};
    if (!accepted(leg.move)) leg.cost = saturating_add(leg.cost, breach_cost);
    return leg;
  }

  TensorDesc at_;
  DType type_, parts_;  ///< of what is finished, and of parts
  AxisSet stays_;       ///< which may stay open
  const MeshShape* mesh_;
  const Machine* machine_;
  const Contract* contract_;
  LegMemo* memo_;
  Moves moves_;
};

constexpr void keep_cheaper(MoveChain& best, const MoveChain& candidate) {
  const bool cheaper = candidate.moves().cost < best.moves().cost ||
                       (candidate.moves().cost == best.moves().cost &&
                        candidate.moves().list.size() < best.moves().list.size());
  if (cheaper) best = candidate;
}

/// Returns `from` with every axis of `to` appended that slicing can add: unused, and next in its
/// dimension.
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

/// Returns the leading axes that `from` and `to` have in common in each dimension.
constexpr Sharding gathered_to_common(const Sharding& from, const Sharding& to) {
  Sharding result = from;
  for (int d = 0; d < from.rank(); ++d) result[d] = from[d].first(from[d].common_prefix(to[d]));
  return result;
}

/// The cheapest way found so far between two shardings that need an exchange: an optional slice, an
/// optional move to a sharding on the way, and the last move. Where two ways have the same price,
/// the one with fewer moves is kept, then the first.
class Detour {
 public:
  constexpr Detour(const MoveChain& chain, const Sharding& to, const Leg& direct)
      : chain_(chain), to_(to), last_(direct), cost_(direct.cost) {}

  /// Considers slicing first, as far as that is free, and the possible moves after it.
  constexpr void consider() {
    if (chain_.bounded())
      consider(false, {}, chain_.sharding(), gathered_to_common(chain_.sharding(), to_));
    const Sharding sliced = sliced_towards(chain_.sharding(), to_);
    Leg slice;
    const bool slices = !(sliced == chain_.sharding());
    if (slices) slice = chain_.leg(chain_.sharding(), sliced);
    if (slice.cost > cost_) return;
    consider(slices, slice, sliced, before_gather(sliced, to_));
    consider(slices, slice, sliced, gathered_towards(sliced, to_));
    if (slices) consider(slices, slice, sliced, sliced);
  }
  constexpr void apply(MoveChain& chain) const {
    if (slices_) chain.apply(slice_);
    if (stops_) chain.apply(stop_);
    chain.apply(last_);
  }

 private:
  constexpr void consider(bool slices, const Leg& slice, const Sharding& sliced,
                          const Sharding& via) {
    const bool stops = !(via == sliced);
    if ((stops && via == to_) || (!stops && !slices)) return;  // the same as without a stop
    Leg stop;
    if (stops) stop = chain_.leg(sliced, via);
    const std::int64_t so_far = saturating_add(slice.cost, stop.cost);
    if (so_far > cost_) return;
    const Leg last = chain_.leg(via, to_);
    const std::int64_t cost = saturating_add(so_far, last.cost);
    if (cost > cost_ || (cost == cost_ && slices + stops >= slices_ + stops_)) return;
    slices_ = slices;
    stops_ = stops;
    slice_ = slice;
    stop_ = stop;
    last_ = last;
    cost_ = cost;
  }

  const MoveChain& chain_;
  const Sharding& to_;
  bool slices_ = false;
  bool stops_ = false;
  Leg slice_, stop_, last_;
  std::int64_t cost_;
};

/// Extends `chain` to `to`, whose partial axes are the same, in the cheapest of a few ways.
constexpr void finish_chain(MoveChain& chain, const Sharding& to) {
  if (chain.sharding() == to) return;
  const Leg direct = chain.leg(chain.sharding(), to);
  if (direct.move.kind == StepKind::slice ||
      (direct.move.collective != Collective::exchange && breaches(direct.cost) == 0))
    return chain.apply(direct);
  Detour ways(chain, to, direct);
  ways.consider();
  ways.apply(chain);
}
/// Returns the cheapest of the usual chains; no axis of size 1 is used.
constexpr Moves usual_moves(const TensorDesc& from, const Sharding& to, DType parts,
                            const MeshShape& mesh, const Machine& machine, const Contract& contract,
                            LegMemo* memo) {
  if (from.sharding == to) return {};
  MoveChain start(from, to, parts, mesh, machine, contract, memo);
  const AxisSet open = from.sharding.partial - to.partial;
  if (open.empty()) {
    finish_chain(start, to);
    return start.moves();
  }

  const AxisSet scattered = open & to.used();
  const AxisSet combined = open - scattered;

  MoveChain best = start;  // slice where that is free, combine, then move the rest
  best.go(sliced_towards(from.sharding,
                         to.with_partial(from.sharding.partial, from.sharding.reduction)));
  MoveChain whole = best;
  best.combine_scattered(to, scattered);
  best.combine(combined);
  finish_chain(best, to);
  if (scattered.empty()) return best.moves();

  whole.combine(open);  // for tiny tensors, one all-reduce and a slice have fewer rounds
  if (whole.moves().cost <= best.moves().cost) {
    finish_chain(whole, to);
    keep_cheaper(best, whole);
  }

  Sharding moved = to.with_partial(from.sharding.partial, from.sharding.reduction);
  bool lands =
      true;  // the open axes are the minor ones everywhere: scattering lands exactly on `to`
  for (int d = 0; d < to.rank(); ++d) {
    moved[d] = to[d].without(open);
    lands = lands && to[d].starts_with(moved[d]);
  }
  if (lands) {
    MoveChain& move_first = start;
    finish_chain(move_first, moved);
    if (move_first.moves().cost > best.moves().cost) return best.moves();
    move_first.combine_scattered(to, scattered);
    move_first.combine(combined);
    keep_cheaper(best, move_first);
  }
  return best.moves();
}

/// Returns the chain that combines the open axes by a reduce-scatter along the longest dimension
/// and an all-gather, and then moves on. Precondition: an axis is open, and there is a dimension.
constexpr Moves scattered_and_gathered(const TensorDesc& from, const Sharding& to, DType parts,
                                       const MeshShape& mesh, const Machine& machine,
                                       const Contract& contract, LegMemo* memo) {
  MoveChain chain(from, to, parts, mesh, machine, contract, memo);
  const AxisSet open = from.sharding.partial - to.partial;
  int longest = 0;
  for (int d = 1; d < from.rank(); ++d)
    if (from.extents[d] > from.extents[longest]) longest = d;
  const Sharding combined =
      from.sharding.with_partial(from.sharding.partial - open, from.sharding.reduction);
  Sharding scattered = combined;
  for (int axis = 0; axis < mesh.rank(); ++axis)
    if (open.contains(axis)) scattered[longest].push_back(axis);
  chain.combine_scattered(scattered, open);
  chain.go(combined);
  finish_chain(chain, to);
  return chain.moves();
}

/// Returns true when values under `from` can be moved to `to`: no finished value becomes partial.
constexpr bool can_reshard(const Sharding& from, const Sharding& to) {
  return from.rank() == to.rank() && (to.partial - from.partial).empty() &&
         (to.partial.empty() || to.reduction == from.reduction);
}

/// Returns the moves that take a tensor `tensor` to sharding `target`; axes of size 1 are left out
/// of them, unless the contract asks for several moves where one would do. A cost of breach_cost or
/// more says that no chain keeps the contract. A search gives the legs that it knows. Parts of
/// unfinished elements travel as `parts`. Precondition: can_reshard(tensor.sharding, target).
constexpr Moves reshard_moves(const TensorDesc& tensor, const Sharding& target, DType parts,
                              const MeshShape& mesh, const Machine& machine,
                              const Contract& contract = {}, detail::LegMemo* memo = nullptr) {
  const TensorDesc from{tensor.type, tensor.extents, without_unit_axes(tensor.sharding, mesh)};
  const Sharding to = without_unit_axes(target, mesh);
  Moves best = detail::usual_moves(from, to, parts, mesh, machine, contract, memo);
  if (!contract.bounded()) return best;
  const auto keep = [&best](const Moves& other) {
    if (breaches(other.cost) < breaches(best.cost)) best = other;
  };
  const bool open = !(from.sharding.partial - to.partial).empty();
  if (breaches(best.cost) > 0 && open && from.rank() > 0)
    keep(detail::scattered_and_gathered(from, to, parts, mesh, machine, contract, memo));
  if (breaches(best.cost) > 0) {  // with axes of size 1, as on a mesh where they are larger
    keep(detail::usual_moves(tensor, target, parts, mesh, machine, contract, memo));
    if (open && from.rank() > 0)
      keep(detail::scattered_and_gathered(tensor, target, parts, mesh, machine, contract, memo));
  }
  return best;
}
}  // namespace tessera::detail
