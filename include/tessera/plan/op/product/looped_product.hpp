// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Chooses between the splits of a product, and whether it is made in rounds: where the plain form
/// holds more than the limit of workspace, or where transfers hide behind products
/// (Machine::hidden_percent), every loop that fits the split is planned and priced.
///
///     if (detail::may_loop(options))
///       return detail::ProductChoice(build, inputs, rule, work, maker, options).best(choice);
///
/// Laws: without a limit, and where nothing hides, no product loops. A loop is taken where it keeps
/// the contract, and keeps the limit that the plain form does not keep, or keeps it in less time.
#include <tessera/plan/op/product/product.hpp>

namespace tessera::detail {

/// A local product for plan/search/factor_search.hpp: two operations for each combination of the
/// letters; panels save a copy.
struct ProductWork {
  const FactorRule& rule;  ///< the operands and the result
  const Term (&labels)[3];
  const Contraction& roles;
  const MeshShape& mesh;
  const Machine& machine;

  constexpr std::int64_t price(const FactorRule&, const FactorSplit&, const FactorParts& parts,
                               const Machine&) const {
    return at_once(parts, 1);
  }
  constexpr std::int64_t least(const FactorRule&, const FactorParts& whole, Index processes,
                               const Machine&) const {
    return at_once(whole, processes);
  }
  /// Returns the price of the work on the parts, divided among processes.
  constexpr std::int64_t at_once(const FactorParts& parts, Index processes) const {
    Index bytes = 0;
    for (int t = 0; t < 3; ++t) bytes = saturating_add(bytes, parts.bytes(t));
    return machine.work(saturating_mul(2, parts.all()) / processes, bytes / processes,
                        rule.tensors[2].desc.type);
  }
  constexpr std::int64_t saved(int t, const Moves& moves, const Sharding& s) const {
    const Move& move = t == 2 ? moves.list[0] : moves.list.back();
    if (move.panel_dim < 0 ||
        move.collective != (t == 2 ? Collective::reduce_scatter : Collective::all_gather))
      return 0;
    const Term& stored = t == 0 ? roles.a : t == 1 ? roles.b : roles.c;
    const TensorDesc& desc = rule.tensors[t].desc;
    const Coordinates origin(mesh.rank(), 0);
    const Index n = block(desc.extents[move.panel_dim], s[move.panel_dim], mesh, origin).size();
    if (!takes_panels(roles, desc.type, labels[t], stored, move.panel_dim, n,
                      mesh.group_size(move.group)))
      return 0;
    return machine.copy(saturating_mul(block_volume(desc.extents, s, mesh, origin),
                                       static_cast<Index>(size_of(desc.type))));
  }
};
/// The work of a product in which one tensor may travel block by block, so that only two of its
/// blocks are held.
struct LoopedWork : ProductWork {
  constexpr Index held(const Moves& moves, bool made, Index bytes) const {
    const Move& move = made ? moves.list[0] : moves.list.back();
    const bool loops =
        move.kind == StepKind::communicate &&
        move.collective == (made ? Collective::reduce_scatter : Collective::all_gather);
    return loops ? min_of(bytes, 2 * (bytes / mesh.group_size(move.group))) : bytes;
  }
};

constexpr bool may_loop(const PlanOptions& options) {
  return !options.needs_alone &&
         (options.workspace_limit < max_int64 || options.machine.hidden_percent > 0);
}

class ProductChoice {
 public:
  constexpr ProductChoice(const PlanBuilder& build,
                          const FixedVector<int, max_operands + 2>& inputs, const FactorRule& rule,
                          const ProductWork& work, const ProductMaker& maker,
                          const PlanOptions& options)
      : build_(build),
        inputs_(inputs),
        rule_(rule),
        work_(work),
        maker_(maker),
        options_(options) {}

  /// Returns the best plan; `plain` are the best splits without rounds.
  constexpr Plan best(const Splits& plain) {
    consider(plain.back(), {});
    if (plain.size() > 1 && (over_ || !keeps(best_) || best_.cost >= plain[0].cost))
      consider(plain[0], {});
    if (!may_loop(options_)) return best_;
    const MeshShape& mesh = best_.mesh;
    PlanOptions free = options_;
    free.workspace_limit = max_int64;
    const Splits cheapest = search_splits(rule_, work_, mesh, free);
    if (options_.machine.hidden_percent > 0 || over_ || cheapest[0].cost < plain[0].cost) {
      const Splits light = search_splits(rule_, LoopedWork{work_}, mesh, options_);
      FixedVector<FixedVector<Sharding, 2 * max_operands>, 6> tried;
      for (const Splits* splits : {&plain, &cheapest, &light})
        for (const Factors& split : *splits) {
          if (tried.contains(split.shardings)) continue;
          tried.push_back(split.shardings);
          consider_loops(split);
        }
    }
    return best_;
  }

 private:
  constexpr void consider_loops(const Factors& split) {
    const AxisSet idle = idle_axes(split);
    for (const bool both_ways : {false, true}) {
      // Both ways take as much memory and more messages, so that only time can speak for them.
      if (both_ways && options_.machine.hidden_percent == 0 &&
          options_.machine.two_way_percent >= 100)
        break;
      for (int t = 0; t < 3; ++t) {
        LoopForm form;
        form.both_ways = both_ways;
        form.travels[t] = true;
        consider(split, form);
      }
    }
    LoopForm two;
    two.travels[0] = two.travels[1] = true;
    consider(split, two);
    if (idle.empty()) return;
    two.layers = idle;
    consider(split, two);
  }
  /// Returns the axes over which all processes would do the same.
  constexpr AxisSet idle_axes(const Factors& split) const {
    AxisSet busy = build_.plan().mesh.unit_axes();
    for (int t = 0; t < 3; ++t)
      for (const Sharding& s : {rule_.tensors[t].desc.sharding, split.shardings[t]})
        busy = busy | s.used() | s.partial;
    return build_.plan().mesh.axes() - busy;
  }
  constexpr void consider(const Factors& split, const LoopForm& form) {
    PlanBuilder build = build_;
    const int slot = maker_.make(build, inputs_, split, form);
    if (slot < 0) return;
    Plan plan = build.finish(slot, maker_.result.sharding);
    if (options_.workspace_limit < max_int64)
      plan.over_limit = max_of(0, workspace_of_origin(plan) - options_.workspace_limit);
    over_ = over_ || (!form && plan.over_limit > 0);
    if (found_ && !better(plan)) return;
    best_ = plan;
    found_ = true;
  }
  constexpr bool keeps(const Plan& plan) const { return options_.contract.covers(plan.needs); }
  constexpr bool better(const Plan& plan) const {
    if (keeps(plan) != keeps(best_)) return keeps(plan);
    if ((plan.over_limit > 0) != (best_.over_limit > 0)) return plan.over_limit == 0;
    return plan.cost < best_.cost;
  }

  const PlanBuilder& build_;
  const FixedVector<int, max_operands + 2>& inputs_;
  const FactorRule& rule_;
  const ProductWork& work_;
  const ProductMaker& maker_;
  const PlanOptions& options_;
  Plan best_;
  bool found_ = false;
  bool over_ = false;  ///< a plain form holds more than the limit of workspace
};

}  // namespace tessera::detail
