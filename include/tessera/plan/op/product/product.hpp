// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The steps of a product of two tensors with a given split: operands gathered and the result
/// scattered by collectives, or made in rounds (plan/loop.hpp) in place of one collective or two.
/// plan/op/product/product_of_two.hpp chooses.
///
///     detail::ProductMaker maker{terms, result, out, roles, epilogue};
///     if (maker.make(build, left, right, choice, form)) build.finish(...)
///
/// Laws: a loop stands for an all-gather that is the operand's last move, along one dimension, or
/// for a reduce-scatter that is the result's first; what travels is not in panels.
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/op/product/panel_choice.hpp>
#include <tessera/plan/search/factor_search.hpp>

namespace tessera {

/// Elementwise work on a product before it is delivered: f(product, extras...) -> elements of
/// `type`. The extras' dimensions line up with the result's from the right. A product of half types
/// is float.
struct Epilogue {
  bool present = false;
  TensorDescs extras;
  DType type = DType::f32;
};

namespace detail {

/// How a product is made in rounds.
struct LoopForm {
  bool travels[3] = {};  ///< which of left operand, right operand and result
  bool both_ways = false;
  AxisSet layers;
  constexpr explicit operator bool() const { return travels[0] || travels[1] || travels[2]; }
};

/// Returns whether the other dimensions that a product sums over come after `letter` in `stored`,
/// so that a part of the letter is one run of them.
constexpr bool leads_sum(const Term& stored, const Term& result, char letter) {
  if (result.contains(letter) || !stored.contains(letter)) return true;
  for (const char label : stored)
    if (!result.contains(label)) return label == letter;
  return true;
}

/// Makes the steps of one product.
struct ProductMaker {
  const Term& letters;  ///< of the result, in its order
  const TensorDesc& result;
  const Contraction& roles;
  const Terms& last;  ///< the terms of the epilogue
  const Epilogue& epilogue;

  /// Adds the steps with operands in slots inputs[0] and inputs[1], and the extras behind them.
  /// Returns the slot of the result; -1 where the form is not possible.
  constexpr int make(PlanBuilder& build, FixedVector<int, max_operands + 2> inputs,
                     const Factors& choice, const LoopForm& form) const {
    const Sharding& as_c = choice.shardings[2];
    const Term* stored[2] = {&roles.a, &roles.b};
    Loop loop{.both_ways = form.both_ways, .layers = form.layers};
    Term chopped;  // the dimensions whose blocks travel
    Sharding made = as_c.with_partial(as_c.partial | form.layers, Reduction::sum);
    if (form.travels[2] && !after_scatter(build, made, loop, chopped)) return -1;
    for (int t = 0; t < 2; ++t)
      if (form.travels[t] &&
          !before_gather(build, inputs[t], choice.shardings[t], t, loop, chopped))
        return -1;
    // An epilogue reads the sum before it is rounded. A sum that is not made at once is made of
    // parts; where an operand is one, the other is widened too.
    const DType read = epilogue.present ? facts_of(result.type).compute : result.type;
    const DType parts = sums_apart(build, inputs, made, form, loop)
                            ? build.options().parts_of(Reduction::sum, result.type)
                            : read;
    const bool of_sums = build.desc(inputs[0]).type != build.desc(inputs[1]).type;
    PanelChoice panels(build, roles);
    panels.leave_out(form.both_ways || of_sums || build.has_gaps(inputs[0]) ||
                     build.has_gaps(inputs[1]));
    panels.leave_out(chopped);
    for (int t = 0; t < 2; ++t) {
      int& slot = inputs[t];
      if (form.travels[t]) continue;
      slot = build.reshard(slot, choice.shardings[t]);
      panels.consider(slot, build.last_step(), Collective::all_gather, build.labels(slot),
                      *stored[t]);
    }
    for (int t = 0; t < 2; ++t) {
      inputs[t] = build.permute(inputs[t], *stored[t]);
      if (of_sums) inputs[t] = build.convert(inputs[t], parts);
    }

    TensorDesc product{parts, {}, {}};
    for (char label : roles.c) {
      const int d = letters.find(label);
      product.extents.push_back(result.extents[d]);
      product.sharding.dims.push_back(made[d]);
    }
    product.sharding = product.sharding.with_partial(made.partial, Reduction::sum);
    if (form && !settle(build, inputs, form, loop)) return -1;
    int slot = build.compute(step::Contract{}, FixedVector<int, 2>{inputs[0], inputs[1]}, product,
                             roles.c);
    if (form) build.loop(loop);
    if (form && !in_order(build, loop)) return -1;
    const int product_slot = slot;
    const int next = build.last_step() + 1;
    slot = build.reshard(build.permute(slot, letters), result.sharding,
                         parts == read ? read : result.type);
    if (next <= build.last_step())
      panels.consider(product_slot, next, Collective::reduce_scatter, letters, roles.c);
    if (!form) panels.leave_own_part({inputs[0], inputs[1], product_slot});
    if (!epilogue.present) return slot;
    FixedVector<int, max_operands> all{build.convert(slot, read)};
    for (int i = 2; i < inputs.size(); ++i) all.push_back(inputs[i]);
    return add_map(build, all, last, {epilogue.type, result.extents, result.sharding});
  }

 private:
  /// Returns whether the sum is made in parts: on several processes, in several rounds, or of an
  /// operand that is a sum itself.
  constexpr bool sums_apart(const PlanBuilder& build,
                            const FixedVector<int, max_operands + 2>& inputs, const Sharding& made,
                            const LoopForm& form, const Loop& loop) const {
    const AxisSet open = made.partial - result.sharding.partial - build.plan().mesh.unit_axes();
    return !open.empty() || form.travels[2] || (form && !letters.contains(loop.letter)) ||
           build.desc(inputs[0]).type != result.type || build.desc(inputs[1]).type != result.type;
  }
  /// Moves an operand up to its last all-gather, for which the loop stands.
  static constexpr bool before_gather(PlanBuilder& build, int& slot, const Sharding& to, int t,
                                      Loop& loop, Term& chopped) {
    const Moves chain = build.moves(slot, to);
    if (chain.list.empty() || !is(chain.list.back(), Collective::all_gather)) return false;
    for (int i = 0; i + 1 < chain.list.size(); ++i) slot = build.move(slot, chain.list[i]);
    return !build.has_gaps(slot) &&
           take_ring(build, build.desc(slot).sharding, chain.list.back().to, build.labels(slot), t,
                     loop, chopped);
  }
  /// Scatters the result by the loop, in place of its first reduce-scatter.
  constexpr bool after_scatter(PlanBuilder& build, Sharding& made, Loop& loop,
                               Term& chopped) const {
    const PlanOptions& options = build.options();
    const Moves chain = reshard_moves({result.type, result.extents, made}, result.sharding,
                                      options.parts_of(Reduction::sum, result.type),
                                      build.plan().mesh, options.machine, options.contract);
    if (chain.list.empty() || !is(chain.list[0], Collective::reduce_scatter)) return false;
    const Sharding whole = made;
    made = chain.list[0].to;
    return take_ring(build, made, whole, letters, 2, loop, chopped);
  }
  static constexpr bool is(const Move& move, Collective kind) {
    return move.kind == StepKind::communicate && move.collective == kind;
  }
  /// Names the ring of tensor t: the axes that split one dimension (of the result, any) in blocks
  /// and not as a whole.
  static constexpr bool take_ring(PlanBuilder& build, const Sharding& blocks, const Sharding& all,
                                  const Term& labels, int t, Loop& loop, Term& chopped) {
    const MeshShape& mesh = build.plan().mesh;
    const Sharding from = without_unit_axes(blocks, mesh), to = without_unit_axes(all, mesh);
    AxisList& ring = loop.rings[t];
    for (int d = 0; d < from.rank(); ++d) {
      if (from[d] == to[d]) continue;
      if ((!ring.empty() && t < 2) || !from[d].starts_with(to[d])) return false;
      if (t < 2 && loop.letter != 0 && loop.letter != labels[d]) return false;
      if (loop.letter == 0) loop.letter = labels[d];
      chopped.push_back(labels[d]);
      for (int i = to[d].size(); i < from[d].size(); ++i) ring.push_back(from[d][i]);
    }
    return !ring.empty();
  }
  /// Decides the kind of loop; false where the blocks do not fit it.
  constexpr bool settle(PlanBuilder& build, const FixedVector<int, max_operands + 2>& inputs,
                        const LoopForm& form, Loop& loop) const {
    const bool two = form.travels[0] && form.travels[1];
    const MeshShape& mesh = build.plan().mesh;
    loop.kind = form.travels[2] ? LoopKind::scatter : two ? LoopKind::summa : LoopKind::gather;
    for (int t = 0; t < 2; ++t)  // a traveller is read in whole blocks, unless both travel
      if ((two || !form.travels[t]) && !leads_sum(build.labels(inputs[t]), letters, loop.letter))
        return false;
    if (loop.both_ways && !form.travels[2])  // two messages to different neighbours
      return !two && mesh.parts(loop.rings[form.travels[0] ? 0 : 1]) > 2;
    if (loop.both_ways) return true;
    if (!two) return form.layers.empty();
    return !letters.contains(loop.letter) && (loop.rings[0].set() & loop.rings[1].set()).empty();
  }
  /// Takes Cannon's order where it is possible; false where rounds differ from process to process,
  /// or halves of blocks are not runs.
  constexpr bool in_order(PlanBuilder& build, Loop& loop) const {
    Plan& plan = build.plan();
    const Step& step = plan.steps.back();
    const LoopTurns turns(plan, step, Coordinates(plan.mesh.rank(), 0));
    if (turns.of_two() && !turns.even()) return false;
    if (loop.kind == LoopKind::summa && turns.nests()) {
      loop.kind = LoopKind::cannon;
      build.loop(loop);
    }
    if (!loop.both_ways) return true;
    const char half = turns.slot(turns.traveller()).labels[turns.cut()];
    return leads_sum(build.labels(step.in[0]), letters, half) &&
           leads_sum(build.labels(step.in[1]), letters, half);
  }
};

}  // namespace detail
}  // namespace tessera
