// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a slot of a plan is stored in memory on a process: its block alone, or within a halo, in a
/// larger allocation. Steps whose kernels take strides read and write it there; before and after
/// other steps PlanBuilder adds a copy to the plan.
///
///     const Extents strides = detail::strides_of(plan, plan.slots[0], at);    // of the process's block
///
/// Laws: a slot's memory begins slot.first elements before its block does; a block that is not
/// within a halo has the strides of its extents.
#include <tessera/plan/plan.hpp>

namespace tessera::detail {

/// The halos within which an operator's operands, in order, and its destination are stored; an
/// empty halo: stored alone.
struct StoredWithin {
  FixedVector<Halo, max_operands> operands;
  Halo destination;
  constexpr bool operator==(const StoredWithin&) const = default;
};

/// Returns the extents of a slot's block on the process at `at`.
constexpr Extents local_extents(const Slot& slot, const Plan& plan, const Coordinates& at) {
  return block(slot.desc.extents, slot.desc.sharding, plan.mesh, at).extents();
}

/// Returns the box of a slot that the process at `at` holds, in global coordinates; for a slot
/// within a halo, its block.
constexpr Box held_box(const Plan& plan, const Slot& slot, const Coordinates& at) {
  return slot.region >= 0 ? needed(plan.regions[slot.region], plan.mesh, at)
                          : block(slot.desc.extents, slot.desc.sharding, plan.mesh, at);
}
/// Returns the box that the memory of a slot covers.
constexpr Box stored_box(const Plan& plan, const Slot& slot, const Coordinates& at) {
  const Box held = held_box(plan, slot, at);
  return slot.stored < 0 ? held : extended_box(held, slot.desc.extents, plan.halos[slot.stored]);
}
/// Returns the strides of held_box(), in elements.
constexpr Extents strides_of(const Plan& plan, const Slot& slot, const Coordinates& at) {
  return row_major_strides(stored_box(plan, slot, at).extents());
}
/// Returns the elements of a slot's memory before its block.
constexpr Index first_of(const Plan& plan, const Slot& slot, const Coordinates& at) {
  if (slot.stored < 0) return 0;
  const Box held = held_box(plan, slot, at), box = stored_box(plan, slot, at);
  if (held.empty()) return 0;
  const Extents strides = row_major_strides(box.extents());
  Index first = 0;
  for (int d = 0; d < held.rank(); ++d) first += (held[d].lo - box[d].lo) * strides[d];
  return first;
}
/// Returns whether, on some process, the rows of dimension d in memory are longer than the slot's
/// block.
constexpr bool widened(const Plan& plan, const Slot& slot, int d) {
  return slot.stored >= 0 &&
         tessera::detail::widened(slot.desc, plan.halos[slot.stored], d, plan.mesh);
}
/// Returns whether, on some process, a slot's block is not contiguous.
constexpr bool has_gaps(const Plan& plan, const Slot& slot) {
  return slot.stored >= 0 &&
         tessera::detail::has_gaps(slot.desc, plan.halos[slot.stored], plan.mesh);
}

/// Returns whether a kernel takes strides when it reads `slot` to make a tensor of dimensions
/// `made`.
constexpr bool reads_gaps(const Plan& plan, StepKind kind, int slot, const Term& made) {
  if (!(kind == StepKind::contract)) return kind.verb().reads_gaps;
  bool behind = false;  // the summed dimensions are one row of each operand
  for (int d = 0; d < plan.slots[slot].labels.size(); ++d) {
    const bool summed = !made.contains(plan.slots[slot].labels[d]);
    if (summed && behind && widened(plan, plan.slots[slot], d)) return false;
    behind = summed;
  }
  return true;
}
/// Returns whether a step takes strides for its output.
constexpr bool writes_gaps(const Plan& plan, const Step& step) {
  if (step.kind == StepKind::contract) {
    for (const int slot :
         {static_cast<int>(step.in[0]), static_cast<int>(step.in[1]), static_cast<int>(step.out)})
      if (plan.slots[slot].panel_dim >= 0) return false;
    return !step.loop;
  }
  if (step.kind == StepKind::copy || step.kind == StepKind::slice)
    return step.region < 0 && plan.slots[step.out].place.sharded();
  if (step.kind == StepKind::communicate)
    return step.region < 0 && step.also.empty() && !step.merges && step.near.empty() &&
           !step.direct_receive && step.takes < 0 && plan.slots[step.in[0]].place.sharded() &&
           (step.collective == Collective::all_gather ||
            step.collective == Collective::all_to_all || step.collective == Collective::exchange);
  return step.kind.verb().writes_gaps;
}
/// Returns the bytes of arena memory that a step of local work needs beside its slots.
constexpr Index step_scratch(const Plan& plan, const Step& step, const Coordinates& at) {
  const auto scratch = step.kind.verb().scratch;
  return scratch == nullptr ? 0 : scratch(plan, step, at);
}
}  // namespace tessera::detail
