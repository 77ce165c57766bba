// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where lines are sorted. A sorted dimension needs replication: its axes go to other dimensions,
/// or it is gathered; or it stays split and processes merge their blocks. All of these, and
/// mixtures where several axes split it, are priced; the cheapest is taken.
///
///     SortWay way = SortSearch(along, {x}, {x}, out, mesh, options).best();
///     way.at;   way.merges
///
/// Laws: a way is decided by process 0's prices; it goes by the contract first, the limit of
/// workspace second, cost third; of equal ones the first that is looked at.
#include <tessera/plan/map.hpp>
#include <tessera/plan/merge_split.hpp>

namespace tessera {

/// How lines are sorted.
struct SortWay {
  Sharding at;          ///< of all tensors while they are
  bool merges = false;  ///< the dimension stays split
  std::int64_t cost = max_int64;
  Index held = 0;  ///< bytes, of process 0
};

/// Returns the price of comparing keys, with what that moves in memory.
constexpr std::int64_t comparison_price(const Machine& machine, Index count) {
  return machine.copy(saturating_mul(8, count));
}

class SortSearch {
 public:
  /// `inputs` are brought to where they are sorted, keys first; `results` (whose shardings do not
  /// matter) lie there and are then brought to `out`. `unit`: the bytes of an element of all that
  /// is merged; 0: merging is not among the ways.
  constexpr SortSearch(int along, const TensorDescs& inputs, const TensorDescs& results,
                       const Sharding& out, const MeshShape& mesh, const PlanOptions& options,
                       Index unit = 0)
      : along_(along),
        inputs_(inputs),
        results_(results),
        out_(out),
        mesh_(mesh),
        options_(options),
        unit_(unit) {}

  constexpr SortWay best() {
    const Sharding from = without_unit_axes(inputs_[0].sharding, mesh_);
    const Sharding to = without_unit_axes(out_, mesh_);
    consider_all(from);
    if (!(to == from)) consider_all(to);
    return best_;
  }

 private:
  /// Considers every way to send the axes that split the dimension to others, or to none.
  constexpr void consider_all(const Sharding& base) {
    const AxisList axes = base[along_];
    const int rank = base.rank();
    Index ways = 1;
    for (int i = 0; i < axes.size(); ++i) ways *= rank;
    const bool each = ways <= most_ways;  // else all axes go the same way
    if (!each) ways = rank;
    for (Index way = 0; way < ways; ++way) {
      Sharding at = base;
      at[along_] = {};
      Index choice = way;
      for (int i = 0; i < axes.size(); ++i) {
        at[static_cast<int>(choice % rank)].push_back(axes[i]);
        if (each) choice /= rank;
      }
      const AxisList stay = at[along_];
      if (may_merge(stay)) consider({at, true});
      at[along_] = {};
      consider({at, false});
    }
  }

  /// A contract is kept whatever the extents are, so there they do not decide.
  constexpr bool may_merge(AxisList stay) const {
    if (stay.empty() || unit_ == 0) return false;
    return options_.contract.bounded() ? stay.size() == 1
                                       : evenly_cut(inputs_[0].extents[along_], stay, mesh_);
  }

  constexpr void consider(SortWay way) {
    way.cost = local_price(way);
    if (way.merges) way.cost = saturating_add(way.cost, merge_price(way));
    for (const TensorDesc& x : inputs_) add(way, x, x.sharding, way.at);
    for (const TensorDesc& x : results_) add(way, x, way.at, out_);
    const bool over = way.held > options_.workspace_limit;
    const bool best_over = best_.held > options_.workspace_limit;
    const std::int64_t broken = breaches(way.cost), best_broken = breaches(best_.cost);
    if (!found_ || (broken != best_broken ? broken < best_broken
                    : over != best_over   ? best_over
                                          : way.cost < best_.cost))
      best_ = way;
    found_ = true;
  }
  constexpr void add(SortWay& way, const TensorDesc& x, const Sharding& from,
                     const Sharding& to) const {
    const TensorDesc moved{x.type, x.extents, from};
    way.cost = saturating_add(
        way.cost, reshard_moves(moved, to, mesh_, options_.machine, options_.contract).cost);
    way.held = saturating_add(way.held, bytes({x.type, x.extents, way.at}));
  }
  constexpr std::int64_t local_price(const SortWay& way) const {
    const TensorDesc& keys = inputs_[0];
    const Coordinates origin(mesh_.rank(), 0);
    const Index n = block(keys.extents[along_], way.at[along_], mesh_, origin).size();
    const Index elements = block_volume(keys.extents, way.at, mesh_, origin);
    std::int64_t price = comparison_price(
        options_.machine, detail::comparisons(elements, n, results_[0].extents[along_]));
    for (const TensorDesc& x : results_)
      price = saturating_add(price, options_.machine.copy(2 * bytes({x.type, x.extents, way.at})));
    return price;
  }
  constexpr std::int64_t merge_price(const SortWay& way) const {
    const AxisSet group = way.at[along_].set();
    const Coordinates origin(mesh_.rank(), 0);
    const Index elements = block_volume(inputs_[0].extents, way.at, mesh_, origin);
    const std::int64_t cost = merge_exchange_price(elements, unit_, group, mesh_, options_.machine);
    return options_.contract.accepts(Collective::exchange, group)
               ? cost
               : saturating_add(cost, breach_cost);
  }
  constexpr Index bytes(const TensorDesc& desc) const {
    const Coordinates origin(mesh_.rank(), 0);
    return saturating_mul(block_volume(desc.extents, desc.sharding, mesh_, origin),
                          static_cast<Index>(size_of(desc.type)));
  }

  static constexpr Index most_ways = 256;

  int along_;
  TensorDescs inputs_;
  TensorDescs results_;
  Sharding out_;
  MeshShape mesh_;
  PlanOptions options_;
  Index unit_;
  SortWay best_;
  bool found_ = false;

 public:
  /// Returns the price of all rounds between processes that have so many elements of `unit` bytes.
  static constexpr std::int64_t merge_exchange_price(Index elements, Index unit, AxisSet group,
                                                     const MeshShape& mesh,
                                                     const Machine& machine) {
    const Index bytes = saturating_mul(elements, unit);
    std::int64_t round = machine.transfer(bytes, 1, levels(group, mesh, machine).level());
    round = saturating_add(round, machine.copy(saturating_mul(3, bytes)));
    round = saturating_add(round, comparison_price(machine, elements));
    return saturating_mul(merge_exchange_rounds(mesh.group_size(group)), round);
  }
};

}  // namespace tessera
