// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The search of the einsum planner: for every mesh axis, the dimension that it splits while the
/// local product runs. plan/einsum.hpp makes the plan of what is found.
///
///     auto choice = detail::EinsumSearch(a, da, b, db, c, dc, mesh, options).best();
///
/// For every axis the candidates are the dimensions it already splits in an operand or the result,
/// and none. The combination of least integer cost wins; GShard 3.3.2's three cases (resharding,
/// partial sums, gathering one operand) are what the candidates amount to. Axes are decided one by
/// one when there are too many combinations.
///
/// Laws: the choice depends on global extents, shardings, mesh and options only; ties go to the
/// candidate listed first.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/contraction.hpp>

namespace tessera {
namespace detail {

/// The search for one einsum of two operands. Labels that stand in one operand alone have been
/// summed away.
class EinsumSearch {
 public:
  struct Choice {
    Sharding a, b, c;  ///< of the operands as multiplied and of the product as it comes out,
                       ///< partial axes included
    std::int64_t cost = max_int64;
  };

  constexpr EinsumSearch(const Term& a, const TensorDesc& da, const Term& b, const TensorDesc& db,
                         const Term& c, const TensorDesc& dc, const MeshShape& mesh,
                         const PlanOptions& options, bool leave_out_units = true)
      : mesh_(mesh),
        options_(options),
        terms_{a, b, c},
        descs_{da, db, dc},
        origin_(mesh.rank(), 0) {
    if (leave_out_units)
      for (TensorDesc& desc : descs_) desc.sharding = without_unit_axes(desc.sharding, mesh_);
    for (const Term* term : {&c, &a, &b})
      for (char label : *term)
        if (!labels_.contains(label)) labels_.push_back(label);
    for (int axis = 0; axis < mesh_.rank(); ++axis) collect_candidates(axis);
    roles_ = contraction(a, b, c);
  }

  constexpr Choice best() {
    FixedVector<int, max_axes> pick(mesh_.rank(), 0);
    int combinations = 1;
    for (int axis = 0; axis < mesh_.rank(); ++axis) combinations *= candidates_[axis].size();
    evaluate(pick);
    if (combinations <= exhaustive_limit) {
      evaluate_all(combinations);
      return best_;
    }
    for (int sweep = 0; sweep < 2; ++sweep)
      for (int axis = 0; axis < mesh_.rank(); ++axis) {
        FixedVector<int, max_axes> trial = best_pick_;
        for (int i = 0; i < candidates_[axis].size(); ++i) {
          trial[axis] = i;
          evaluate(trial);
        }
      }
    if (options_.contract.bounded() && breaches(best_.cost) > 0)
      evaluate_all(combinations);  // the contract is kept if it can be
    return best_;
  }

 private:
  constexpr void evaluate_all(int combinations) {
    FixedVector<int, max_axes> pick(mesh_.rank(), 0);
    for (int i = 1; i < combinations; ++i) {
      int rest = i;
      for (int axis = 0; axis < mesh_.rank(); ++axis) {
        pick[axis] = rest % candidates_[axis].size();
        rest /= candidates_[axis].size();
      }
      evaluate(pick);
    }
  }
  static constexpr int exhaustive_limit = 16;
  static constexpr int nowhere = -1;  ///< the axis splits nothing: its processes compute the same
  static constexpr int through = -2;  ///< an operand is partial over the axis and so is the product

  constexpr int label_split_by(int tensor, int axis) const {
    for (int d = 0; d < terms_[tensor].size(); ++d)
      if (descs_[tensor].sharding[d].contains(axis)) return labels_.find(terms_[tensor][d]);
    return nowhere;
  }
  constexpr void add(int axis, int candidate) {
    if (!candidates_[axis].contains(candidate)) candidates_[axis].push_back(candidate);
  }
  constexpr void collect_candidates(int axis) {
    candidates_.resize(mesh_.rank());
    const int at[3] = {label_split_by(0, axis), label_split_by(1, axis), label_split_by(2, axis)};
    const bool left_open = descs_[0].sharding.partial.contains(axis);
    const bool right_open = descs_[1].sharding.partial.contains(axis);
    if (left_open || right_open)
      add(axis,
          through);  // where both are (both had summed labels), the right one is finished first
    if (descs_[2].sharding.partial.contains(
            axis)) {  // the result stays open over it: it must split a contracted label
      for (int t = 0; t < 2; ++t)
        if (at[t] >= 0 && contracted(at[t])) add(axis, at[t]);
      for (int l = 0; l < labels_.size(); ++l)
        if (contracted(l)) add(axis, l);
      return;
    }
    if (at[2] >= 0) add(axis, at[2]);
    if (at[0] >= 0) add(axis, at[0]);
    if (at[1] >= 0) add(axis, at[1]);
    add(axis, nowhere);
  }
  constexpr bool contracted(int label) const { return !terms_[2].contains(labels_[label]); }

  /// Returns the axes assigned to a label, in the order that tensor `first` has them, then the
  /// result, then a, then b.
  constexpr AxisList order(int label, AxisSet assigned, int first) const {
    AxisList list;
    AxisSet rest = assigned;
    for (int t : {first, 2, 0, 1}) {
      const int d = terms_[t].find(labels_[label]);
      if (d < 0 || rest.empty()) continue;
      const AxisList& axes = descs_[t].sharding[d];
      for (int i = 0; i < axes.size(); ++i)
        if (rest.contains(axes[i])) {
          list.push_back(axes[i]);
          rest.erase(axes[i]);
        }
    }
    for (int axis = 0; axis < mesh_.rank(); ++axis)
      if (rest.contains(axis)) list.push_back(axis);
    return list;
  }
  using Roles = FixedVector<AxisList, 3 * max_dims>;
  constexpr Sharding shard(int tensor, const Roles& roles) const {
    Sharding s = Sharding::replicated(terms_[tensor].size());
    for (int d = 0; d < s.rank(); ++d) s[d] = roles[labels_.find(terms_[tensor][d])];
    return s;
  }
  constexpr Index bytes(const Extents& extents, const Sharding& sharding, DType type) const {
    return saturating_mul(block_volume(extents, sharding, mesh_, origin_),
                          static_cast<Index>(size_of(type)));
  }

  constexpr void evaluate(const FixedVector<int, max_axes>& pick) {
    FixedVector<AxisSet, 3 * max_dims> assigned(labels_.size(), AxisSet{});
    AxisSet open;
    AxisSet kept[2];
    for (int axis = 0; axis < mesh_.rank(); ++axis) {
      const int choice = candidates_[axis][pick[axis]];
      if (choice == through) {
        open.insert(axis);
        kept[descs_[0].sharding.partial.contains(axis) ? 0 : 1].insert(axis);
      } else if (choice >= 0) {
        assigned[choice].insert(axis);
        if (contracted(choice)) open.insert(axis);
      }
    }
    bool joined = false;  // several axes on one label: the order of each tensor is worth a try
    for (int l = 0; l < labels_.size(); ++l) joined = joined || assigned[l].size() > 1;
    for (int first : {2, 0, 1}) {
      Roles roles;
      for (int l = 0; l < labels_.size(); ++l) roles.push_back(order(l, assigned[l], first));
      consider(pick, roles, open, kept);
      if (!joined) return;
    }
  }
  constexpr void consider(const FixedVector<int, max_axes>& pick, const Roles& roles, AxisSet open,
                          const AxisSet (&kept)[2]) {
    Choice choice;
    choice.a = shard(0, roles).with_partial(kept[0], Reduction::sum);
    choice.b = shard(1, roles).with_partial(kept[1], Reduction::sum);
    choice.c = shard(2, roles).with_partial(open, Reduction::sum);

    Index products = 2;
    for (int l = 0; l < labels_.size(); ++l)
      products = saturating_mul(products, block(extent(l), roles[l], mesh_, origin_).size());
    choice.cost = options_.machine.compute(products, descs_[2].type);
    Index held = 0;
    const std::int64_t broken = breaches(best_.cost);  // the contract goes before the limit
    const Sharding* shardings[3] = {&choice.a, &choice.b, &choice.c};
    for (int t = 0; t < 3; ++t) {
      if (choice.cost >= best_.cost && (!over_limit_ || breaches(choice.cost) > broken)) return;
      const Toll toll = toll_of(t, *shardings[t]);
      choice.cost = saturating_add(choice.cost, toll.cost);
      held = saturating_add(held, toll.bytes);
    }
    const bool over = held > options_.workspace_limit;
    if (breaches(choice.cost) > broken) return;
    if (breaches(choice.cost) == broken &&
        ((over && !over_limit_) || (over == over_limit_ && choice.cost >= best_.cost)))
      return;
    best_ = choice;
    best_pick_ = pick;
    over_limit_ = over;
  }
  /// What it takes to have operand t multiplied (or the product delivered) under a sharding, and
  /// the bytes held for it.
  struct Toll {
    Sharding sharding;
    std::int64_t cost = 0;
    Index bytes = 0;
  };
  constexpr Toll toll_of(int t, const Sharding& s) {
    for (const Toll& known : tolls_[t])
      if (known.sharding == s) return known;
    Toll toll{s, 0, 0};
    if (!(descs_[t].sharding == s)) {
      TensorDesc moved = descs_[t];
      if (t == 2) moved.sharding = s;
      const Moves moves = reshard_moves(moved, t == 2 ? descs_[t].sharding : s, mesh_,
                                        options_.machine, options_.contract);
      toll.bytes = bytes(moved.extents, s, moved.type);
      toll.cost = moves.cost;
      if (!moves.list.empty())
        toll.cost -= saved_by_panels(t, t == 2 ? moves.list[0] : moves.list.back(), s);
    }
    if (tolls_[t].size() < tolls_[t].capacity) tolls_[t].push_back(toll);
    return toll;
  }
  /// Returns the price of the copy that a product spares by reading or writing panels; `move` ends
  /// (or begins) at `s`.
  constexpr std::int64_t saved_by_panels(int tensor, const Move& move, const Sharding& s) const {
    if (move.panel_dim < 0 ||
        move.collective != (tensor == 2 ? Collective::reduce_scatter : Collective::all_gather))
      return 0;
    const Term& stored = tensor == 0 ? roles_.a : tensor == 1 ? roles_.b : roles_.c;
    const Index n =
        block(descs_[tensor].extents[move.panel_dim], s[move.panel_dim], mesh_, origin_).size();
    if (!takes_panels(roles_, terms_[tensor], stored, move.panel_dim, n,
                      mesh_.group_size(move.group)))
      return 0;
    return options_.machine.copy(bytes(descs_[tensor].extents, s, descs_[tensor].type));
  }
  constexpr Index extent(int label) const {
    for (int t = 0; t < 3; ++t)
      if (const int d = terms_[t].find(labels_[label]); d >= 0) return descs_[t].extents[d];
    return 1;
  }

  MeshShape mesh_;
  PlanOptions options_;
  Term terms_[3];
  TensorDesc descs_[3];
  Contraction roles_;
  Coordinates origin_;
  FixedVector<char, 3 * max_dims> labels_;
  FixedVector<FixedVector<int, max_dims + 2>, max_axes> candidates_;
  Choice best_;
  FixedVector<int, max_axes> best_pick_{};
  FixedVector<Toll, 48> tolls_[3];
  bool over_limit_ = true;  ///< nothing that fits the workspace limit has been found yet
};
}  // namespace detail
}  // namespace tessera
