// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Puts a Plan together step by step: slots, reshardings, local work; then lifetimes and the peak
/// of memory.
///
///     detail::PlanBuilder build(OperatorKind::einsum, mesh, process, options);
///     const int slot = build.reshard(build.operand(desc, labels), sharding);
///     Plan p = build.finish(slot, sharding);
///
/// Laws: peak_bytes replays the executor's allocations, in the same order; before a kernel that
/// takes no strides, a slot within a halo is copied out; after it, a result is copied to a
/// destination within a halo.
#include <tessera/plan/builder_parts.hpp>
#include <tessera/plan/deduce.hpp>
#include <tessera/plan/move/join.hpp>
#include <tessera/plan/process_classes.hpp>

namespace tessera::detail {

class PlanBuilder : public detail::PlanParts {
 public:
  constexpr PlanBuilder(OperatorKind kind, const MeshShape& mesh, int process,
                        const PlanOptions& options)
      : PlanParts(kind, mesh, process, options) {}

  constexpr int operand(const TensorDesc& desc, const Term& labels) {
    const int slot = add_slot(desc, labels, SlotRole::operand);
    if (options_.stored != nullptr && plan_.operands < options_.stored->operands.size())
      put_within(slot, options_.stored->operands[plan_.operands]);
    ++plan_.operands;
    return slot;
  }
  constexpr int operand(const TensorDesc& desc, const Term& labels, const Placement& place) {
    ++plan_.operands;
    return add_slot(desc, labels, SlotRole::operand, place);
  }

  /// Moves a slot to another sharding; returns the slot that then holds the tensor, with elements
  /// of `type`. Parts of sums of half types are joined in float, and rounded when the last one is
  /// in.
  constexpr int reshard(int slot, const Sharding& to, DType type) {
    const Moves chain = moves(slot, to, type);
    for (const Move& one : chain.list) slot = add_move(before_move(slot, one, to, type), one);
    return convert(slot, type);
  }
  constexpr int reshard(int slot, const Sharding& to) { return reshard(slot, to, desc(slot).type); }
  /// Returns the slot on which a move on the way to `to` acts: wider, where the move joins parts;
  /// with elements of `type`, where all are joined.
  constexpr int before_move(int slot, const Move& move, const Sharding& to, DType type) {
    if (!open(slot, move.to).empty())
      return convert(slot, options_.parts_of(desc(slot).sharding.reduction, type));
    return open(slot, to).empty() ? convert(slot, type) : slot;
  }

  /// Moves several slots by one call, all by the same collective over the same axes; `slots` then
  /// names the slots that hold the tensors. Precondition: may_join(move) for each; at least two.
  constexpr void join(FixedVector<int, max_operands>& slots,
                      const LazyVector<Move, max_operands>& moves) {
    Step joined;
    for (int& slot : slots) slot = by_itself(slot);
    for (int k = 0; k < slots.size(); ++k) {
      const TensorDesc from = desc(slots[k]);
      add_move(slots[k], moves[k]);
      const Step step = plan_.steps.back();
      plan_.steps.pop_back();
      if (k == 0) {
        joined = step;
        joined.direct_send = joined.direct_receive = false;
        joined.panel_dim = -1;
      } else {
        joined.in.push_back(static_cast<std::int8_t>(slots[k]));
        joined.also.push_back(step.out);
        joined.even = joined.even && step.even;
        joined.cost = saturating_add(joined.cost, step.cost);
        joined.cost -= join_saving(moves[k], from, plan_.mesh, options_.machine);
      }
      joined.cost =
          saturating_add(joined.cost, join_toll(moves[k], from, plan_.mesh, options_.machine));
      slots[k] = step.out;
    }
    detail::number_move(plan_, joined, at_);
    plan_.steps.push_back(joined);
  }

  /// Lets a product read panels without unpacking, as the all-gather that made `slot` received
  /// them; or write panels without packing, as the reduce-scatter that takes `slot` sends them.
  /// `step` is that communicate step.
  constexpr void use_panels(int slot, int step) {
    Slot& panelled = plan_.slots[slot];
    Step& move = plan_.steps[step];
    panelled.panel_dim = move.panel_dim;
    panelled.panels = plan_.mesh.group_size(move.group);
    (move.out == slot ? move.direct_receive : move.direct_send) = true;
    move.scratch = 0;
    move.cost -= options_.machine.copy(bytes_of_origin(panelled.desc));
  }
  /// Leaves this process's own part of the gathered `slot` where it is, for a product to read it
  /// there. `step` is the all-gather, whose input is an operand.
  constexpr void leave_own_part(int slot, int step) {
    plan_.slots[slot].own_part = plan_.steps[step].in[0];
  }
  constexpr int last_step() const { return plan_.steps.size() - 1; }

  /// Reorders dimensions locally to `order`, a permutation of the slot's labels; returns the new
  /// slot.
  constexpr int permute(int slot, const Term& order) {
    if (labels(slot) == order) return slot;
    TensorDesc moved = desc(slot);
    for (int d = 0; d < order.size(); ++d) {
      const int source = labels(slot).find(order[d]);
      moved.extents[d] = desc(slot).extents[source];
      moved.sharding[d] = desc(slot).sharding[source];
    }
    Step& step = add_step(StepKind::permute, slot);
    step.out = static_cast<std::int8_t>(add_slot(moved, order, SlotRole::temporary));
    step.cost = options_.machine.copy(2 * bytes_of_origin(moved));
    return step.out;
  }

  /// Repeats elements locally along the labels of `result` that the slot has not, or has with
  /// extent 1; returns the new slot.
  constexpr int stretch(int slot, const TensorDesc& result, const Term& order) {
    if (labels(slot) == order && desc(slot).extents == result.extents) return slot;
    Step& step = add_step(StepKind::permute, slot);
    step.out = static_cast<std::int8_t>(add_slot(result, order, SlotRole::temporary));
    step.cost = options_.machine.copy(bytes_of_origin(result));
    return step.out;
  }

  /// Takes, locally, the diagonal over every letter that labels several dimensions of the slot
  /// (plan/deduce.hpp: diagonal_of).
  constexpr int diagonal(int slot) {
    const TensorDesc x = desc(slot);
    const Diagonal whole = diagonal_of(labels(slot), x.sharding);
    if (whole.labels.size() == labels(slot).size()) return slot;
    TensorDesc result{x.type, {}, whole.sharding};
    for (char label : whole.labels) result.extents.push_back(x.extents[labels(slot).find(label)]);
    Step& step = add_step(StepKind::diagonal, slot);
    step.out = static_cast<std::int8_t>(add_slot(result, whole.labels, SlotRole::temporary));
    step.cost = options_.machine.copy(2 * bytes_of_origin(result));
    return step.out;
  }

  /// Reduces away, locally, the dimensions whose label `keep(label)` refuses; the others stay in
  /// order. The new slot has elements of `type`, and is partial over the axes that split the
  /// reduced dimensions, in addition to its own.
  template <class Keep>
  constexpr int reduce(int slot, Reduction reduction, const Keep& keep, DType type) {
    const TensorDesc x = desc(slot);
    Term kept;
    for (char label : labels(slot))
      if (keep(label)) kept.push_back(label);
    if (kept.size() == x.rank() && type == x.type) return slot;
    KeptRow row = kept_row(slot, kept, type);
    row.desc.sharding = row.desc.sharding.with_partial(x.sharding.partial | row.split, reduction);
    return compute(step::Reduce{}, FixedVector<int, 1>{slot}, row.desc, row.labels);
  }

  /// Widens a slot's elements of a half type to `type`, or rounds them to it.
  constexpr int convert(int slot, DType type) {
    const TensorDesc x = desc(slot);
    if (x.type == type) return slot;
    const Term all = labels(slot);
    const AnyVerb widen = step::Widen{}, round = step::Round{};
    return compute(is_short(x.type) ? widen : round, FixedVector<int, 1>{slot},
                   {type, x.extents, x.sharding}, all, plan_.slots[slot].region);
  }

  /// Adds local work on slots that makes a tensor `desc` with dimensions `labels`, or what a
  /// process needs of it by a region of the plan; returns the new slot.
  template <class Slots>
  constexpr int compute(const AnyVerb& verb, const Slots& inputs, const TensorDesc& result,
                        const Term& labels, std::int8_t region = -1) {
    FixedVector<std::int8_t, max_operands> in;
    for (int slot : inputs)
      in.push_back(static_cast<std::int8_t>(
          detail::reads_gaps(plan_, verb.kind, slot, labels) ? slot : by_itself(slot)));
    Step& step = plan_.steps.push_back({});
    step.set(verb);
    step.in = in;
    step.out = static_cast<std::int8_t>(add_slot(result, labels, SlotRole::temporary, {}, region));
    detail::number_work(plan_, step, at_);
    const Coordinates origin(plan_.mesh.rank(), 0);
    step.cost = detail::work_price(plan_, step, options_.machine, origin);
    return step.out;
  }

  /// Prices the last step by `times` passes over its result, rather than by its operations.
  constexpr void price_copies(int times) {
    Step& step = plan_.steps.back();
    step.cost =
        options_.machine.copy(saturating_mul(times, bytes_of_origin(plan_.slots[step.out].desc)));
  }
  /// Gives the last step, of local work, a further result for each of `types` but the first, and
  /// prices it by the bytes that it reads and writes.
  constexpr void several_results(const FixedVector<DType, max_operands>& types,
                                 const Extents& extents, const Sharding& out, const Term& labels) {
    const int last = plan_.steps.size() - 1;
    for (int k = 1; k < types.size(); ++k) {
      const int slot = temporary({types[k], extents, out}, labels);
      plan_.steps[last].also.push_back(static_cast<std::int8_t>(slot));
      plan_.also.push_back(static_cast<std::int8_t>(slot));
    }
    Step& step = plan_.steps[last];
    Index bytes = 0;
    const auto add = [&](int slot) {
      bytes = saturating_add(bytes, bytes_of_origin(plan_.slots[slot].desc));
    };
    for (int slot : step.in) add(slot);
    for (int k = 0; k <= step.also.size(); ++k) add(step.output(k));
    step.cost = options_.machine.copy(bytes / 2);
  }
  /// Adds a temporary for a further result of a step.
  constexpr int temporary(const TensorDesc& desc, const Term& labels) {
    return add_slot(desc, labels, SlotRole::temporary);
  }

  /// Returns a slot that can be the result: operators return new tensors, except a reshard from S
  /// to S. A new tensor is contiguous.
  constexpr int returned(int slot, const Sharding& out) {
    const bool alias = plan_.kind == OperatorKind::from_boxes || plan_.slots[slot].region >= 0 ||
                       (plan_.kind == OperatorKind::reshard && desc(slot).sharding == out &&
                        plan_.slots[slot].stored < 0 && plan_.destination == Destination::fresh);
    return plan_.slots[slot].role == SlotRole::operand && !alias ? copy(slot) : slot;
  }

  /// Sets the slot to return and its requested sharding; computes lifetimes and memory; returns the
  /// plan.
  constexpr const Plan& finish(int result, const Sharding& out) {
    result = returned(result, out);
    if (plan_.destination == Destination::given && cannot_lie_there(result)) result = copy(result);
    if (options_.stored != nullptr && plan_.destination != Destination::fresh)
      result = destined(result, options_.stored->destination);
    plan_.result = result;
    plan_.result_sharding = out;
    if (plan_.slots[result].role != SlotRole::operand) plan_.slots[result].role = SlotRole::result;
    for (int slot : plan_.also)
      if (plan_.slots[slot].role != SlotRole::operand) plan_.slots[slot].role = SlotRole::result;
    for (int i = 0; i < plan_.steps.size(); ++i) {
      for (int slot : plan_.steps[i].in) plan_.slots[slot].last_use = i;
      for (int slot : plan_.steps[i].also) plan_.slots[slot].last_use = i;  // unless it is used
      plan_.slots[plan_.steps[i].out].last_use = i;
    }
    plan_.slots[result].given = plan_.destination != Destination::fresh;
    for (int i = plan_.steps.size() - 1; i >= 0; --i) detail::take_over(plan_, i);
    plan_.cost = cost();
    plan_.peak_bytes = detail::replayed_peak(plan_);
    return plan_;
  }

  /// Moves a slot to another sharding or placement by one exchange, or by local copies where no
  /// process needs another's elements; returns the new slot. At least one of the two slots is not
  /// sharded.
  int relocate(int slot, const Sharding& sharding, const Placement& place);

  /// Makes `result` from region regions[k] of each slots[k]: by one exchange, or by local copies
  /// where every process has all it needs; returns the new slot. Later slots overwrite earlier
  /// ones.
  constexpr int take(const FixedVector<int, max_operands>& slots, const Regions& regions,
                     const TensorDesc& result, const Term& labels, bool fills) {
    return take_at_once(slots, regions, result, labels, fills, false);
  }
  /// Makes `result` from one slot, for sliding windows: a process holds the part of region `window`
  /// that it needs, not its block of `result`. The part comes by one exchange with all neighbours,
  /// or dimension by dimension, where later exchanges bring the corners: whichever costs less.
  constexpr int take_window(int slot, const Region& window, const TensorDesc& result,
                            const Term& labels) {
    const LazyVector<Region, max_regions> turns = in_turn(window, plan_.mesh);
    const bool room = plan_.regions.size() + turns.size() < max_operands;  // and one for another
    if (turns.size() == 1 || !room)
      return take_at_once({slot}, {window}, result, labels, false, true);
    PlanBuilder other = *this;
    const int made = other.take_in_turn(slot, turns, result, labels);
    const int at_once = take_at_once({slot}, {window}, result, labels, false, true);
    if (cost() <= other.cost()) return at_once;
    *this = other;
    return made;
  }
  /// The adjoint: makes a tensor `result`, the source of region `region` of the plan, by adding to
  /// each element all values that processes hold for it in `slot`; returns the new slot.
  constexpr int give_back(int slot, std::int8_t region, const TensorDesc& result,
                          const Term& labels) {
    Step step;
    step.kind = StepKind::copy;
    step.region = region;
    step.fills = step.adjoint = true;
    step.in.push_back(static_cast<std::int8_t>(slot));
    step.group = moving_axes(plan_.regions[region], plan_.mesh);
    return add_region_step(step, add_slot(result, labels, SlotRole::temporary));
  }

  /// Adds `region` to the plan, for slots and steps to refer to; returns its number.
  constexpr std::int8_t region(const Region& region) {
    for (int i = 0; i < plan_.regions.size(); ++i)
      if (plan_.regions[i] == region) return static_cast<std::int8_t>(i);
    plan_.regions.push_back(region);
    return static_cast<std::int8_t>(plan_.regions.size() - 1);
  }
  /// Return a slot of which each process holds the part of region `shape` of the plan that it
  /// needs.
  constexpr int shaped_operand(const TensorDesc& desc, const Term& labels, std::int8_t shape) {
    ++plan_.operands;
    return add_slot(desc, labels, SlotRole::operand, {}, shape);
  }
  constexpr int shaped(const TensorDesc& desc, const Term& labels, std::int8_t shape) {
    return add_slot(desc, labels, SlotRole::temporary, {}, shape);
  }
  /// Makes each targets[k] from region regions[k] of slots[k] (or, `adjoint`, as give_back() does),
  /// all by one exchange, or by local copies. A target that is the slot itself keeps its elements
  /// in place.
  constexpr void take_each(const FixedVector<int, max_operands>& slots,
                           const FixedVector<std::int8_t, max_operands>& regions,
                           const FixedVector<int, max_operands>& targets, bool fills,
                           bool adjoint = false) {
    Step step;
    step.kind = StepKind::copy;
    step.region = regions[0];
    step.fills = fills;
    step.adjoint = adjoint;
    for (int k = 0; k < slots.size(); ++k) {
      step.in.push_back(static_cast<std::int8_t>(source_of(slots[k], plan_.regions[regions[k]])));
      if (k > 0) step.also.push_back(static_cast<std::int8_t>(targets[k]));
      if (k > 0) step.also_regions.push_back(regions[k]);
      step.group = step.group | moving_axes(plan_.regions[regions[k]], plan_.mesh);
    }
    add_region_step(step, targets[0]);
  }

  /// Lets the next step begin while the last one, an exchange, is in progress: with the work that
  /// needs none of its `parts` targets. Each part is one more call of a kernel, which is priced as
  /// a message.
  constexpr void overlap(int parts) {
    Step& step = plan_.steps.back();
    step.overlaps = step.kind == StepKind::communicate;
    step.cost = saturating_add(step.cost, saturating_mul(parts, options_.machine.message_ps));
  }

 private:
  constexpr int take_at_once(const FixedVector<int, max_operands>& slots, const Regions& regions,
                             const TensorDesc& result, const Term& labels, bool fills,
                             bool shaped) {
    Step step;
    step.kind = StepKind::copy;
    step.region = static_cast<std::int8_t>(plan_.regions.size());
    step.fills = fills;
    for (int k = 0; k < slots.size(); ++k)
      step.in.push_back(static_cast<std::int8_t>(source_of(slots[k], regions[k])));
    for (const Region& region : regions) {
      plan_.regions.push_back(region);
      step.group = step.group | moving_axes(region, plan_.mesh);
    }
    return add_region_step(step, add_slot(result, labels, SlotRole::temporary, {},
                                          shaped ? step.region : std::int8_t{-1}));
  }
  /// Collects the elements that each process needs of the last turn's region, turn by turn in one
  /// slot.
  constexpr int take_in_turn(int slot, const LazyVector<Region, max_regions>& turns,
                             const TensorDesc& result, const Term& labels) {
    const int made = shaped(result, labels, region(turns.back()));
    for (const Region& turn : turns) {
      take_each({slot}, {region(turn)}, {made}, false);
      slot = made;
    }
    return made;
  }
  /// Returns whether a slot can be made only in fresh memory: by rounds of merging, which work in
  /// one place, or as a further output of a step.
  constexpr bool cannot_lie_there(int slot) const {
    for (const Step& step : plan_.steps)
      if ((step.merges && step.out == slot) || step.also.contains(static_cast<std::int8_t>(slot)))
        return true;
    return false;
  }
  /// Returns the slot that lies in the destination, within its halo: `result`, or a copy of it.
  constexpr int destined(int result, const Halo& halo) {
    if (halo.empty()) return result;
    if (tessera::detail::has_gaps(desc(result), halo, plan_.mesh)) {
      bool fits = plan_.slots[result].role != SlotRole::operand;
      for (const Step& step : plan_.steps) {
        if (step.out == result && !detail::writes_gaps(plan_, step)) fits = false;
        if (step.in.contains(static_cast<std::int8_t>(result))) fits = false;
      }
      if (!fits) result = copy(result);
    }
    put_within(result, halo);
    return result;
  }
};

/// Plans a change of sharding of one tensor.
constexpr Plan plan_reshard(const TensorDesc& from, const Sharding& to, const MeshShape& mesh,
                            int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::reshard, mesh, process, options);
  const int slot = build.operand(from, default_labels(from.rank()));
  return build.finish(build.reshard(slot, to), to);
}
}  // namespace tessera::detail
