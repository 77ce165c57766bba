// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Puts a Plan together step by step: slots, reshardings, local work; then lifetimes and the peak
/// of memory.
///
///     PlanBuilder build(OperatorKind::einsum, mesh, process, options);
///     const int slot = build.reshard(build.operand(desc, labels), sharding);
///     return build.finish(slot, sharding);
///
/// Laws: peak_bytes replays the allocations that the executor makes, in the same order.
#include <tessera/plan/deduce.hpp>
#include <tessera/plan/join.hpp>
#include <tessera/plan/reshard.hpp>

namespace tessera {

/// What planning depends on besides the tensors; equal on every process.
struct PlanOptions {
  Machine machine;
  Index workspace_limit =
      max_int64;  ///< bytes of temporaries a process may hold, where there is a choice
  Destination destination = Destination::fresh;
  Contract contract{};  ///< plans that keep it come before all that do not
  constexpr bool operator==(const PlanOptions&) const = default;
};

class PlanBuilder {
 public:
  constexpr PlanBuilder(OperatorKind kind, const MeshShape& mesh, int process,
                        const PlanOptions& options)
      : options_(options), at_(mesh.coordinates(process)) {
    plan_.kind = kind;
    plan_.mesh = mesh;
    plan_.process = process;
    plan_.destination = options.destination;
  }

  constexpr int operand(const TensorDesc& desc, const Term& labels) {
    ++plan_.operands;
    return add_slot(desc, labels, SlotRole::operand);
  }
  constexpr int operand(const TensorDesc& desc, const Term& labels, const Placement& place) {
    ++plan_.operands;
    return add_slot(desc, labels, SlotRole::operand, place);
  }
  constexpr const TensorDesc& desc(int slot) const { return plan_.slots[slot].desc; }
  constexpr const Term& labels(int slot) const { return plan_.slots[slot].labels; }
  constexpr Plan& plan() { return plan_; }

  /// Moves a slot to another sharding; returns the slot that holds it then.
  constexpr int reshard(int slot, const Sharding& to) {
    const Moves chain = moves(slot, to);
    for (const Move& one : chain.list) slot = add_move(slot, one);
    return slot;
  }
  /// Returns the moves that take a slot to another sharding.
  constexpr Moves moves(int slot, const Sharding& to) const {
    return reshard_moves(desc(slot), to, plan_.mesh, options_.machine, options_.contract);
  }
  /// Makes one of them; returns the slot that holds it then.
  constexpr int move(int slot, const Move& one) { return add_move(slot, one); }

  /// Moves several slots by one call, all by the same collective over the same axes; the slots
  /// become what holds them then. Precondition: may_join(move) for each of at least two.
  constexpr void join(FixedVector<int, max_operands>& slots,
                      const FixedVector<Move, max_operands>& moves) {
    Step joined;
    Index elements = 0;
    Index send = 0;
    Index receive = 0;
    for (int k = 0; k < slots.size(); ++k) {
      const TensorDesc from = desc(slots[k]);
      add_move(slots[k], moves[k]);
      const Step step = plan_.steps.back();
      plan_.steps.pop_back();
      const Index unit = static_cast<Index>(size_of(from.type));
      const Index before = plan_.slots[slots[k]].bytes;
      const Index after = plan_.slots[step.out].bytes;
      elements += before / unit;
      send = saturating_add(send, before);
      receive = saturating_add(receive, after);
      if (k == 0) {
        joined = step;
        joined.direct_send = joined.direct_receive = false;
        joined.panel_dim = -1;
      } else {
        joined.in.push_back(static_cast<std::int8_t>(slots[k]));
        joined.also.push_back(step.out);
        joined.even = joined.even && step.even;
        joined.payload = saturating_add(joined.payload, step.payload);
        joined.network_payload = saturating_add(joined.network_payload, step.network_payload);
        joined.cost = saturating_add(joined.cost, step.cost);
        joined.cost -= join_saving(moves[k], from, plan_.mesh, options_.machine);
      }
      joined.cost =
          saturating_add(joined.cost, join_toll(moves[k], from, plan_.mesh, options_.machine));
      slots[k] = step.out;
      if (joined.collective == Collective::all_reduce) {
        const int members = plan_.mesh.group_size(joined.group);
        joined.payload =
            saturating_mul(2 * (elements - block_size(elements, members,
                                                      plan_.mesh.group_rank(joined.group, at_))),
                           unit);
        joined.network_payload = min_of(joined.network_payload, joined.payload);
      }
    }
    joined.scratch = arena_charge(receive);
    if (joined.collective != Collective::all_reduce)
      joined.scratch = saturating_add(joined.scratch, arena_charge(send));
    plan_.steps.push_back(joined);
  }

  /// Lets a product read what the all-gather that made `slot` received, panel by panel, without
  /// unpacking; or write what the reduce-scatter that takes `slot` sends, without packing. `step`
  /// is that communicate step.
  constexpr void use_panels(int slot, int step) {
    Slot& panelled = plan_.slots[slot];
    Step& move = plan_.steps[step];
    panelled.panel_dim = move.panel_dim;
    panelled.panels = plan_.mesh.group_size(move.group);
    (move.out == slot ? move.direct_receive : move.direct_send) = true;
    move.scratch = 0;
    move.cost -= options_.machine.copy(bytes_of_origin(panelled.desc));
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
  /// order. The new slot is partial over the axes that split what was reduced, besides those it was
  /// partial over.
  template <class Keep> constexpr int reduce(int slot, Reduction reduction, const Keep& keep) {
    const TensorDesc x = desc(slot);
    const Term whole = labels(slot);
    TensorDesc result{x.type, {}, {}};
    Term kept;
    AxisSet open = x.sharding.partial;
    for (int d = 0; d < whole.size(); ++d) {
      if (keep(whole[d])) {
        kept.push_back(whole[d]);
        result.extents.push_back(x.extents[d]);
        result.sharding.dims.push_back(x.sharding[d]);
      } else {
        open = open | x.sharding[d].set();
      }
    }
    if (kept.size() == whole.size()) return slot;
    result.sharding = result.sharding.with_partial(open, reduction);
    const auto flops_at = [&](const Coordinates& at) {
      return block(x.extents, x.sharding, plan_.mesh, at).size();
    };
    return compute(StepKind::reduce, FixedVector<int, 1>{slot}, result, kept, flops_at(at_),
                   flops_at(Coordinates(plan_.mesh.rank(), 0)));
  }

  /// Adds local work on slots that makes a tensor `desc` with dimensions `labels`; returns the new
  /// slot.
  template <class Slots>
  constexpr int compute(StepKind kind, const Slots& inputs, const TensorDesc& result,
                        const Term& labels, Index flops, Index flops_of_origin) {
    Step& step = plan_.steps.push_back({});
    step.kind = kind;
    for (int slot : inputs) step.in.push_back(static_cast<std::int8_t>(slot));
    step.out = static_cast<std::int8_t>(add_slot(result, labels, SlotRole::temporary));
    step.flops = flops;
    step.cost = options_.machine.compute(flops_of_origin, result.type);
    return step.out;
  }

  /// Returns the slot that can be a result: operators return new tensors, and only a reshard to S
  /// from S does not.
  constexpr int returned(int slot, const Sharding& out) {
    const bool alias = plan_.kind == OperatorKind::from_boxes ||
                       (plan_.kind == OperatorKind::reshard && desc(slot).sharding == out &&
                        plan_.destination == Destination::fresh);
    return plan_.slots[slot].role == SlotRole::operand && !alias ? copy(slot) : slot;
  }

  /// Names the slot that is returned, and the sharding it was asked for; works out lifetimes and
  /// memory; returns the plan.
  constexpr const Plan& finish(int result, const Sharding& out) {
    result = returned(result, out);
    plan_.result = result;
    plan_.result_sharding = out;
    if (plan_.slots[result].role != SlotRole::operand) plan_.slots[result].role = SlotRole::result;
    for (int slot : plan_.also)
      if (plan_.slots[slot].role != SlotRole::operand) plan_.slots[slot].role = SlotRole::result;
    for (int i = 0; i < plan_.steps.size(); ++i)
      for (int slot : plan_.steps[i].in) plan_.slots[slot].last_use = i;
    plan_.slots[result].given = plan_.destination != Destination::fresh;
    for (int i = plan_.steps.size() - 1; i >= 0; --i) take_over(i);
    count_memory();
    return plan_;
  }

  /// Takes what a slot holds to another sharding or placement by one exchange, or by local copies
  /// where no process needs what another has; returns the new slot. Not both slots are sharded.
  int relocate(int slot, const Sharding& sharding, const Placement& place);

  constexpr const Coordinates& at() const { return at_; }
  constexpr const PlanOptions& options() const { return options_; }

 private:
  /// Lets the output of step i take over the memory of an input that is needed no longer: an
  /// all-reduce's, and of an elementwise step that of an input that lies as the output does.
  constexpr void take_over(int i) {
    Step& step = plan_.steps[i];
    Slot& out = plan_.slots[step.out];
    const bool may = step.kind == StepKind::map || (step.kind == StepKind::communicate &&
                                                    step.collective == Collective::all_reduce);
    // What is added to is still to be read where the output goes.
    if (!may || !step.also.empty() || (out.given && plan_.destination == Destination::accumulated))
      return;
    for (int slot : step.in) {
      Slot& in = plan_.slots[slot];
      const bool lies_alike = step.kind == StepKind::communicate ||
                              (in.desc.type == out.desc.type &&
                               in.desc.extents == out.desc.extents && in.labels == out.labels &&
                               without_unit_axes(in.desc.sharding, plan_.mesh) ==
                                   without_unit_axes(out.desc.sharding, plan_.mesh));
      if (in.role != SlotRole::temporary || in.last_use != i || !lies_alike) continue;
      step.takes = static_cast<std::int8_t>(slot);
      in.given = out.given;
      return;
    }
  }
  /// Replays the allocations of the executor.
  constexpr void count_memory() {
    Index held = 0;
    const auto charge = [&](const Slot& slot) { return slot.given ? 0 : arena_charge(slot.bytes); };
    for (int i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      plan_.cost = saturating_add(plan_.cost, step.cost);
      if (step.takes < 0) held = saturating_add(held, charge(plan_.slots[step.out]));
      for (int slot : step.also) held = saturating_add(held, charge(plan_.slots[slot]));
      plan_.peak_bytes = max_of(plan_.peak_bytes, saturating_add(held, step.scratch));
      for (int k = 0; k < step.in.size(); ++k) {
        const Slot& slot = plan_.slots[step.in[k]];
        bool repeated = step.in[k] == step.takes;
        for (int j = 0; j < k; ++j) repeated = repeated || step.in[j] == step.in[k];
        if (!repeated && slot.role == SlotRole::temporary && slot.last_use == i)
          held -= charge(slot);
      }
    }
  }
  constexpr int add_slot(const TensorDesc& desc, const Term& labels, SlotRole role,
                         const Placement& place = {}) {
    Slot& slot = plan_.slots.push_back({});
    slot.desc = desc;
    slot.place = place;
    slot.labels = labels;
    slot.role = role;
    const Index elements = place.sharded()
                               ? block_volume(desc.extents, desc.sharding, plan_.mesh, at_)
                               : Holding(desc, place, plan_.mesh).size(plan_.process);
    slot.bytes = saturating_mul(elements, static_cast<Index>(size_of(desc.type)));
    return plan_.slots.size() - 1;
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
  constexpr Index bytes_of_origin(const TensorDesc& desc) const {
    const Coordinates origin(plan_.mesh.rank(), 0);
    return saturating_mul(block_volume(desc.extents, desc.sharding, plan_.mesh, origin),
                          static_cast<Index>(size_of(desc.type)));
  }
  constexpr int add_move(int slot, const Move& move) {
    if (move.kind == StepKind::communicate) plan_.needs.accept(move.collective, move.group);
    const TensorDesc from = desc(slot);
    TensorDesc to = from;
    to.sharding = move.to;
    const MoveNumbers numbers = count_move(move, from, plan_.mesh, at_, options_.machine);
    Step& step = add_step(move.kind, slot);
    step.collective = move.collective;
    step.group = move.group;
    step.near = move.near;
    if (step.kind == StepKind::communicate)
      step.level = levels(move.group, plan_.mesh, options_.machine).level();
    step.even = move.even;
    step.direct_send = move.direct_send;
    step.direct_receive = move.direct_receive;
    step.panel_dim = move.panel_dim;
    step.payload = numbers.payload;
    step.network_payload = numbers.network_payload;
    step.messages = numbers.messages;
    step.scratch = numbers.scratch();
    step.cost = price(move, from, plan_.mesh, options_.machine);
    step.out =
        static_cast<std::int8_t>(add_slot(to, plan_.slots[slot].labels, SlotRole::temporary));
    return step.out;
  }

  PlanOptions options_;
  Coordinates at_;
  Plan plan_;
};

/// Plans a change of sharding of one tensor.
constexpr Plan plan_reshard(const TensorDesc& from, const Sharding& to, const MeshShape& mesh,
                            int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::reshard, mesh, process, options);
  const int slot = build.operand(from, default_labels(from.rank()));
  return build.finish(build.reshard(slot, to), to);
}

}  // namespace tessera
