// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The einsum planner: which dimension each mesh axis splits while the local product runs, and so what is gathered
/// before it and reduced after it.
///
///     Plan p = plan_einsum(parse("bsm,mh->bsh"), x, w, out, mesh, process);
///
/// For every axis the candidates are the dimensions it already splits in an operand or the result, and none. The
/// combination of least integer cost wins; GShard 3.3.2's three cases (resharding, partial sums, gathering one
/// operand) are what the candidates amount to. Axes are decided one by one when there are too many combinations.
///
/// Laws: the plan depends on global extents, shardings, mesh and options only; ties go to the candidate listed first.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/contraction.hpp>
#include <tessera/plan/deduce.hpp>

namespace tessera {
namespace detail {

/// The search for one einsum of two operands. Labels that stand in one operand alone have been summed away.
class EinsumSearch {
 public:
  struct Choice {
    Sharding a, b, c;       ///< of the operands as multiplied and of the product as it comes out, partial axes included
    std::int64_t cost = max_int64;
  };

  constexpr EinsumSearch(const Term& a, const TensorDesc& da, const Term& b, const TensorDesc& db, const Term& c,
                         const TensorDesc& dc, const MeshShape& mesh, const PlanOptions& options)
      : mesh_(mesh), options_(options), terms_{a, b, c}, descs_{da, db, dc}, origin_(mesh.rank(), 0) {
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
      for (int i = 1; i < combinations; ++i) {
        int rest = i;
        for (int axis = 0; axis < mesh_.rank(); ++axis) {
          pick[axis] = rest % candidates_[axis].size();
          rest /= candidates_[axis].size();
        }
        evaluate(pick);
      }
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
    return best_;
  }

 private:
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
    if (left_open != right_open) add(axis, through);
    if (descs_[2].sharding.partial.contains(axis)) {  // the result stays open over it: it must split a contracted label
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

  /// Returns the axes assigned to a label, in the order of the tensor that has most say: the result, then a, then b.
  constexpr AxisList order(int label, AxisSet assigned) const {
    AxisList list;
    AxisSet rest = assigned;
    for (int t : {2, 0, 1}) {
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
  constexpr Sharding shard(int tensor, const FixedVector<AxisList, 3 * max_dims>& roles) const {
    Sharding s = Sharding::replicated(terms_[tensor].size());
    for (int d = 0; d < s.rank(); ++d) s[d] = roles[labels_.find(terms_[tensor][d])];
    return s;
  }
  constexpr Index bytes(const Extents& extents, const Sharding& sharding, DType type) const {
    return saturating_mul(block(extents, sharding, mesh_, origin_).size(), static_cast<Index>(size_of(type)));
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
    FixedVector<AxisList, 3 * max_dims> roles;
    for (int l = 0; l < labels_.size(); ++l) roles.push_back(order(l, assigned[l]));
    Choice choice;
    choice.a = shard(0, roles).with_partial(kept[0], Reduction::sum);
    choice.b = shard(1, roles).with_partial(kept[1], Reduction::sum);
    choice.c = shard(2, roles).with_partial(open, Reduction::sum);

    Index products = 2;
    for (int l = 0; l < labels_.size(); ++l) products = saturating_mul(products, block(extent(l), roles[l], mesh_, origin_).size());
    choice.cost = options_.machine.compute(products, descs_[2].type);
    Index held = 0;
    const Sharding* shardings[3] = {&choice.a, &choice.b, &choice.c};
    for (int t = 0; t < 3; ++t) {
      if (choice.cost >= best_.cost && !over_limit_) return;
      const Toll toll = toll_of(t, *shardings[t]);
      choice.cost = saturating_add(choice.cost, toll.cost);
      held = saturating_add(held, toll.bytes);
    }
    const bool over = held > options_.workspace_limit;
    if ((over && !over_limit_) || (over == over_limit_ && choice.cost >= best_.cost)) return;
    best_ = choice;
    best_pick_ = pick;
    over_limit_ = over;
  }
  /// What it takes to have operand t multiplied (or the product delivered) under a sharding, and the bytes held for it.
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
      const Moves moves = reshard_moves(moved, t == 2 ? descs_[t].sharding : s, mesh_, options_.machine);
      toll.bytes = bytes(moved.extents, s, moved.type);
      toll.cost = moves.cost;
      if (!moves.list.empty()) toll.cost -= saved_by_panels(t, t == 2 ? moves.list[0] : moves.list.back(), s);
    }
    if (tolls_[t].size() < tolls_[t].capacity) tolls_[t].push_back(toll);
    return toll;
  }
  /// Returns the price of the copy that a product spares by reading or writing panels; `move` ends (or begins) at `s`.
  constexpr std::int64_t saved_by_panels(int tensor, const Move& move, const Sharding& s) const {
    if (move.panel_dim < 0 || move.collective != (tensor == 2 ? Collective::reduce_scatter : Collective::all_gather)) return 0;
    const Term& stored = tensor == 0 ? roles_.a : tensor == 1 ? roles_.b : roles_.c;
    const Index n = block(descs_[tensor].extents[move.panel_dim], s[move.panel_dim], mesh_, origin_).size();
    if (!takes_panels(roles_, terms_[tensor], stored, move.panel_dim, n, mesh_.group_size(move.group))) return 0;
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
  FixedVector<FixedVector<int, 5>, max_axes> candidates_;
  Choice best_;
  FixedVector<int, max_axes> best_pick_{};
  FixedVector<Toll, 12> tolls_[3];
  bool over_limit_ = true;  ///< nothing that fits the workspace limit has been found yet
};

/// Spares a product the unpacking of what it reads and the packing of what it writes, where panels will do.
class PanelChoice {
 public:
  constexpr PanelChoice(PlanBuilder& build, const Contraction& roles) : build_(build), roles_(roles) {}

  /// `slot` is an operand or the result of the product, `step` the communicate step that makes or takes it.
  constexpr void consider(int slot, int step, Collective wanted, const Term& given, const Term& stored) {
    if (step < 0) return;
    const Step& move = build_.plan().steps[step];
    if (move.kind != StepKind::communicate || move.collective != wanted || move.panel_dim < 0) return;
    if ((wanted == Collective::all_gather ? move.out : move.in[0]) != slot) return;
    const MeshShape& mesh = build_.plan().mesh;
    const Coordinates origin(mesh.rank(), 0);
    const int panels = mesh.group_size(move.group);
    const TensorDesc& desc = build_.desc(slot);
    const Index n = block(desc.extents[move.panel_dim], desc.sharding[move.panel_dim], mesh, origin).size();
    if (!takes_panels(roles_, given, stored, move.panel_dim, n, panels)) return;
    const bool summed = !roles_.c.contains(given[move.panel_dim]);
    for (int i = 0; i < chosen_.size(); ++i) {  // where two blocks have panels along a label, they must fit together
      const int more = parts_[i] > panels ? parts_[i] : panels;
      const int fewer = parts_[i] > panels ? panels : parts_[i];
      if (chosen_[i] == given[move.panel_dim] && (summed ? more != fewer : more % fewer != 0)) return;
    }
    chosen_.push_back(given[move.panel_dim]);
    parts_.push_back(panels);
    build_.use_panels(slot, step);
  }

 private:
  PlanBuilder& build_;
  Contraction roles_;
  Term chosen_;
  FixedVector<int, max_dims> parts_;
};

/// Sums away, locally, the labels of a slot that neither the other operand nor the result has.
constexpr int sum_lonely_labels(PlanBuilder& build, int slot, const Term& other, const Term& result) {
  const Term& labels = build.labels(slot);
  Term kept;
  for (char label : labels)
    if (other.contains(label) || result.contains(label)) kept.push_back(label);
  if (kept.size() == labels.size()) return slot;
  TensorDesc desc{build.desc(slot).type, {}, {}};
  AxisSet open = build.desc(slot).sharding.partial;
  for (int d = 0; d < labels.size(); ++d) {
    if (kept.contains(labels[d])) {
      desc.extents.push_back(build.desc(slot).extents[d]);
      desc.sharding.dims.push_back(build.desc(slot).sharding[d]);
    } else {
      open = open | build.desc(slot).sharding[d].set();
    }
  }
  desc.sharding = desc.sharding.with_partial(open, Reduction::sum);
  const MeshShape& mesh = build.plan().mesh;
  const Index flops = block(build.desc(slot).extents, build.desc(slot).sharding, mesh, build.at()).size();
  const Index at_origin = block(build.desc(slot).extents, build.desc(slot).sharding, mesh, Coordinates(mesh.rank(), 0)).size();
  return build.compute(StepKind::reduce, FixedVector<int, 1>{slot}, desc, kept, flops, at_origin);
}
}  // namespace detail

/// Plans a * b -> result. a is (terms.operands[0]), b is (terms.operands[1]); `out` may leave contracted axes open.
/// Preconditions: check_einsum found nothing wrong.
constexpr Plan plan_einsum(const Terms& terms, const TensorDesc& a, const TensorDesc& b, const Sharding& out,
                           const MeshShape& mesh, int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::einsum, mesh, process, options);
  build.plan().reduction = Reduction::sum;
  int left = build.operand(a, terms.operands[0]);
  int right = build.operand(b, terms.operands[1]);
  left = detail::sum_lonely_labels(build, left, terms.operands[1], terms.result);
  right = detail::sum_lonely_labels(build, right, terms.operands[0], terms.result);

  TensorDesc result{a.type, {}, out};
  for (char label : terms.result) {
    const int in_a = terms.operands[0].find(label);
    result.extents.push_back(in_a >= 0 ? a.extents[in_a] : b.extents[terms.operands[1].find(label)]);
  }
  const auto choice = detail::EinsumSearch(build.labels(left), build.desc(left), build.labels(right), build.desc(right),
                                           terms.result, result, mesh, options)
                          .best();
  const Contraction roles = contraction(build.labels(left), build.labels(right), terms.result);
  detail::PanelChoice panels(build, roles);
  left = build.reshard(left, choice.a);
  panels.consider(left, build.last_step(), Collective::all_gather, build.labels(left), roles.a);
  right = build.reshard(right, choice.b);
  panels.consider(right, build.last_step(), Collective::all_gather, build.labels(right), roles.b);
  left = build.permute(left, roles.a);
  right = build.permute(right, roles.b);

  TensorDesc product{a.type, {}, {}};
  for (char label : roles.c) {
    const int d = terms.result.find(label);
    product.extents.push_back(result.extents[d]);
    product.sharding.dims.push_back(choice.c[d]);
  }
  product.sharding = product.sharding.with_partial(choice.c.partial, Reduction::sum);
  const auto flops_at = [&](const Coordinates& at) {
    Index flops = saturating_mul(2, block(product.extents, product.sharding, mesh, at).size());
    for (char label : roles.k) {
      const int d = build.labels(left).find(label);
      flops = saturating_mul(flops, block(build.desc(left).extents[d], build.desc(left).sharding[d], mesh, at).size());
    }
    return flops;
  };
  int slot = build.compute(StepKind::contract, FixedVector<int, 2>{left, right}, product, roles.c, flops_at(build.at()),
                           flops_at(Coordinates(mesh.rank(), 0)));
  const int product_slot = slot;
  const int next = build.last_step() + 1;
  slot = build.reshard(build.permute(slot, terms.result), out);
  if (next <= build.last_step()) panels.consider(product_slot, next, Collective::reduce_scatter, terms.result, roles.c);
  return build.finish(slot, out);
}

}  // namespace tessera
