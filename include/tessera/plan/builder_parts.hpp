// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The parts from which a plan is built: its slots, and steps that move, copy or take.
///
///     class PlanBuilder : public detail::PlanParts        // plan/builder.hpp
///
/// Laws: before a step that takes no strides, a slot within a halo is copied out.
#include <cstdint>

#include <tessera/plan/move/reshard.hpp>
#include <tessera/plan/numbers.hpp>
#include <tessera/plan/plan_options.hpp>
#include <tessera/plan/region/region_price.hpp>

namespace tessera::detail {

/// Lets the output of step i take over the memory of an input that is no longer needed: in an
/// all-reduce, and in an elementwise step for an input with the output's layout.
constexpr void take_over(Plan& plan, int i) {
  Step& step = plan.steps[i];
  Slot& out = plan.slots[step.out];
  const bool may = step.kind == StepKind::map || (step.kind == StepKind::communicate &&
                                                  step.collective == Collective::all_reduce);
  // The destination that is added to must still be read.
  if (!may || !step.also.empty() || (out.given && plan.destination == Destination::accumulated))
    return;
  if (has_gaps(plan, out)) return;
  for (int slot : step.in) {
    Slot& in = plan.slots[slot];
    const bool lies_alike = step.kind == StepKind::communicate ||
                            (in.desc.type == out.desc.type && in.desc.extents == out.desc.extents &&
                             in.labels == out.labels &&
                             without_unit_axes(in.desc.sharding, plan.mesh) ==
                                 without_unit_axes(out.desc.sharding, plan.mesh));
    if (in.role != SlotRole::temporary || in.last_use != i || !lies_alike) continue;
    step.takes = static_cast<std::int8_t>(slot);
    in.given = out.given;
    in.stored = out.stored;
    in.first = out.first;
    return;
  }
}

/// What remains of a tensor when some of its dimensions are reduced away.
struct KeptRow {
  Term labels;  ///< in the tensor's order
  TensorDesc desc;
  AxisSet split;  ///< the axes that split the reduced dimensions
};

class PlanParts {
 public:
  constexpr const TensorDesc& desc(int slot) const { return plan_.slots[slot].desc; }
  constexpr const Term& labels(int slot) const { return plan_.slots[slot].labels; }
  constexpr Plan& plan() { return plan_; }
  constexpr const Plan& plan() const { return plan_; }
  /// Returns whether the elements of a slot's blocks do not follow one another.
  constexpr bool has_gaps(int slot) const { return detail::has_gaps(plan_, plan_.slots[slot]); }
  /// Returns the bytes of the block on process 0.
  constexpr Index bytes_of_origin(const TensorDesc& desc) const {
    const Coordinates origin(plan_.mesh.rank(), 0);
    return saturating_mul(block_volume(desc.extents, desc.sharding, plan_.mesh, origin),
                          static_cast<Index>(size_of(desc.type)));
  }

  /// Returns what remains of a slot's dimensions, finished, with elements of `type`, when those are
  /// reduced away whose letter is not in `letters`.
  constexpr KeptRow kept_row(int slot, const Term& letters, DType type) const {
    KeptRow row;
    row.desc.type = type;
    for (int d = 0; d < labels(slot).size(); ++d) {
      const AxisList& axes = desc(slot).sharding[d];
      if (!letters.contains(labels(slot)[d])) {
        row.split = row.split | axes.set();
        continue;
      }
      row.labels.push_back(labels(slot)[d]);
      row.desc.extents.push_back(desc(slot).extents[d]);
      row.desc.sharding.dims.push_back(axes);
    }
    return row;
  }

  /// Returns the moves that bring a slot to another sharding, where its elements have `type`; until
  /// then they may be parts in a wider one.
  constexpr Moves moves(int slot, const Sharding& to, DType type) const {
    const TensorDesc& from = desc(slot);
    return reshard_moves({type, from.extents, from.sharding}, to,
                         options_.parts_of(from.sharding.reduction, type), plan_.mesh,
                         options_.machine, options_.contract);
  }
  constexpr Moves moves(int slot, const Sharding& to) const {
    return moves(slot, to, desc(slot).type);
  }
  /// Returns the axes over which a slot is unfinished and is not to stay so.
  constexpr AxisSet open(int slot, const Sharding& to) const {
    return desc(slot).sharding.partial - to.partial - plan_.mesh.unit_axes();
  }
  /// Makes one of these moves; returns the slot that then holds the tensor.
  constexpr int move(int slot, const Move& one) { return add_move(slot, one); }

  constexpr const Coordinates& at() const { return at_; }
  constexpr const PlanOptions& options() const { return options_; }

  /// Makes the last step, a product of the operands as they are, in rounds.
  constexpr void loop(const Loop& loop) {
    Step& step = plan_.steps.back();
    const Levels found = levels(loop.axes(), plan_.mesh, options_.machine);
    step.loop = loop;
    step.collective = Collective::collective_permute;
    step.group = loop.axes();
    step.level = found.level();
    step.loop.at_once = step.level != Level::network && options_.machine.hidden_percent == 0 &&
                        !(loop.kind == LoopKind::scatter && loop.both_ways);
    if (step.level == Level::network) step.node = found.node;
    plan_.needs.accept(step.collective, step.group);
    step.rounds = LoopTurns(plan_, step, Coordinates(plan_.mesh.rank(), 0)).most_rounds();
    number_work(plan_, step, at_);
    step.cost = price_loop(plan_, step, options_.machine);
  }

 protected:
  constexpr PlanParts(OperatorKind kind, const MeshShape& mesh, int process,
                      const PlanOptions& options)
      : options_(options), at_(mesh.coordinates(process)) {
    plan_.kind = kind;
    plan_.mesh = mesh;
    plan_.process = process;
    plan_.destination = options.destination;
  }
  /// Returns the cost of the steps so far.
  constexpr std::int64_t cost() const {
    std::int64_t sum = 0;
    for (const Step& step : plan_.steps) sum = saturating_add(sum, step.cost);
    return sum;
  }
  constexpr int add_region_step(Step step, int out) {
    step.out = static_cast<std::int8_t>(out);
    if (!step.group.empty()) {
      step.kind = StepKind::communicate;
      step.collective = Collective::exchange;
      plan_.needs.accept(Collective::exchange, step.group);
      step.level = levels(step.group, plan_.mesh, options_.machine).level();
      step.node = levels(step.group, plan_.mesh, options_.machine).node;
    }
    if (!options_.needs_alone) detail::price_region(plan_, step, options_.machine);
    plan_.steps.push_back(step);
    return out;
  }
  constexpr int add_slot(const TensorDesc& desc, const Term& labels, SlotRole role,
                         const Placement& place = {}, std::int8_t region = -1) {
    Slot& slot = plan_.slots.push_back({});
    slot.desc = desc;
    slot.place = place;
    slot.region = region;
    slot.labels = labels;
    slot.role = role;
    detail::number_slot(plan_, slot, plan_.process, at_);
    return plan_.slots.size() - 1;
  }
  constexpr void put_within(int slot, const Halo& halo) {
    if (halo.empty()) return;
    int number = plan_.halos.find(halo);
    if (number < 0) {
      number = plan_.halos.size();
      plan_.halos.push_back(halo);
    }
    plan_.slots[slot].stored = static_cast<std::int8_t>(number);
    detail::number_slot(plan_, plan_.slots[slot], plan_.process, at_);
  }
  /// Returns a contiguous slot with the elements of `slot`: for a kernel that takes no strides.
  constexpr int by_itself(int slot) {
    if (!has_gaps(slot)) return slot;
    for (int k = 0; k < within_.size(); ++k)
      if (within_[k] == slot) return copies_[k];
    within_.push_back(slot);
    copies_.push_back(copy(slot));
    return copies_.back();
  }
  /// Returns the slot from which a step takes `region`: a region of dimensions can be read within a
  /// halo, a region of groups of dimensions cannot.
  constexpr int source_of(int slot, const Region& region) {
    const Extents& extents = desc(slot).extents;
    bool same = region.size() == extents.size() && !regroups(region);
    for (int d = 0; same && d < extents.size(); ++d) same = region[d].source_size() == extents[d];
    return same ? slot : by_itself(slot);
  }
  constexpr int copy(int slot) {
    Step& step = add_step(StepKind::copy, slot);
    step.out = static_cast<std::int8_t>(add_slot(desc(slot), labels(slot), SlotRole::temporary));
    step.cost = options_.machine.copy(bytes_of_origin(desc(slot)));
    return step.out;
  }
  constexpr Step& add_step(StepKind kind, int input) {
    Step& step = plan_.steps.push_back({});
    step.kind = kind;
    step.in.push_back(static_cast<std::int8_t>(input));
    return step;
  }
  constexpr int add_move(int slot, Move move) {
    if (has_gaps(slot)) {
      const bool packs = move.near.empty() && (move.collective == Collective::all_to_all ||
                                               move.collective == Collective::exchange);
      if (move.kind != StepKind::slice && !packs) slot = by_itself(slot);
      if (packs) move.direct_send = false;
    }
    if (move.kind == StepKind::communicate) plan_.needs.accept(move.collective, move.group);
    const TensorDesc from = desc(slot);
    TensorDesc to = from;
    to.sharding = move.to;
    Step& step = add_step(move.kind, slot);
    step.collective = move.collective;
    step.group = move.group;
    step.near = move.near;
    if (step.kind == StepKind::communicate) {
      const Levels found = levels(move.group, plan_.mesh, options_.machine);
      step.level = found.level();
      if (step.level == Level::network && step.near.empty()) step.node = found.node;
    }
    step.even = move.even;
    step.direct_send = move.direct_send;
    step.direct_receive = move.direct_receive;
    step.panel_dim = move.panel_dim;
    step.cost = price(move, from, plan_.mesh, options_.machine);
    step.out =
        static_cast<std::int8_t>(add_slot(to, plan_.slots[slot].labels, SlotRole::temporary));
    detail::number_move(plan_, step, at_);
    return step.out;
  }

  PlanOptions options_;
  Coordinates at_;
  Plan plan_;
  FixedVector<int, max_operands> within_, copies_;  ///< slots with gaps, and their copies
};

}  // namespace tessera::detail
