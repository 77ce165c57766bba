// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The numbers of a plan on one process: bytes of blocks, payload, messages, operations, workspace.
/// Steps and shardings are the same on all processes, so the plan of one process gives the numbers
/// of the others without planning again. Users call program/on_process.hpp.
///
///     detail::slot_bytes(plan, slot, process, at);   detail::step_flops(plan, step, at)
///
/// Laws: planners and on_process() compute numbers only by these functions.
#include <tessera/plan/move/move_cost.hpp>
#include <tessera/plan/region/region_numbers.hpp>
#include <tessera/plan/region/stored.hpp>
#include <tessera/plan/work/loop_turns.hpp>

namespace tessera::detail {

/// Returns the bytes of this process's block.
constexpr Index slot_bytes(const Plan& plan, const Slot& slot, int process, const Coordinates& at) {
  const TensorDesc& desc = slot.desc;
  const MeshShape& mesh = plan.mesh;
  const Index elements = slot.region >= 0 ? needed(plan.regions[slot.region], mesh, at).size()
                         : slot.place.sharded()
                             ? block_volume(desc.extents, desc.sharding, mesh, at)
                             : Holding(desc, slot.place, mesh).size(process);
  return saturating_mul(elements, static_cast<Index>(size_of(desc.type)));
}

/// Fills in the numbers of a slot on the process.
constexpr void number_slot(const Plan& plan, Slot& slot, int process, const Coordinates& at) {
  slot.bytes = slot_bytes(plan, slot, process, at);
  slot.first = first_of(plan, slot, at);
}

/// Returns the operations of a contraction: two for each product.
constexpr Index contract_flops(const Plan& plan, const Step& step, const Coordinates& at) {
  const Slot &first = plan.slots[step.in[0]], &out = plan.slots[step.out];
  Index flops = saturating_mul(2, block_volume(out.desc.extents, out.desc.sharding, plan.mesh, at));
  for (int d = 0; d < first.labels.size(); ++d)
    if (!out.labels.contains(first.labels[d]))
      flops = saturating_mul(
          flops, block(first.desc.extents[d], first.desc.sharding[d], plan.mesh, at).size());
  return flops;
}
constexpr Index convolve_flops(const Plan& plan, const Step& step, const Coordinates& at) {
  const Slot &first = plan.slots[step.in[0]], &out = plan.slots[step.out];
  const Slot& kernel = plan.slots[step.in[1]];
  const ConvolveParts parts = parts_of(first.labels, kernel.labels, out.labels);
  FixedVector<bool, max_spatial> all_taps;
  for (const int d : parts.kernel_spatial)
    all_taps.push_back(kernel.region >= 0 &&
                       plan.regions[kernel.region][d].rule == RegionDim::Rule::taps);
  return operations(plan.convolution, parts, kernel.desc.extents,
                    block(kernel.desc.extents, kernel.desc.sharding, plan.mesh, at),
                    block(out.desc.extents, out.desc.sharding, plan.mesh, at), all_taps);
}

/// Returns the operations of a step of local work on the process at `at`, counted as its verb says.
constexpr Index step_flops(const Plan& plan, const Step& step, const Coordinates& at) {
  const auto elements = [&](int slot) {
    const TensorDesc& desc = plan.slots[slot].desc;
    return block_volume(desc.extents, desc.sharding, plan.mesh, at);
  };
  const VerbFacts& verb = step.kind.verb();
  if (verb.operations == Operations::none) return 0;
  if (verb.operations == Operations::read) return elements(step.in[0]);
  if (verb.operations == Operations::made) return elements(step.out);
  if (step.kind == StepKind::contract) return contract_flops(plan, step, at);
  if (step.kind == StepKind::convolve) return convolve_flops(plan, step, at);
  return verb.flops(plan, step, at);
}

/// Returns the price of a step of local work that counts operations, on the process at `at`.
constexpr std::int64_t work_price(const Plan& plan, const Step& step, const Machine& machine,
                                  const Coordinates& at) {
  if (step.kind.verb().operations == Operations::none) return 0;
  const int process = plan.mesh.process(at);
  Index bytes = 0;
  const auto add = [&](int slot) {
    bytes = saturating_add(bytes, slot_bytes(plan, plan.slots[slot], process, at));
  };
  for (const int slot : step.in) add(slot);
  for (int k = 0; k <= step.also.size(); ++k) add(step.output(k));
  const DType type = plan.slots[step.out].desc.type;
  return machine.work(step_flops(plan, step, at), bytes, type);
}

/// Fills in the numbers of a step of local work on the process at `at`.
constexpr void number_work(const Plan& plan, Step& step, const Coordinates& at) {
  if (step.loop) return number_loop(plan, step, at);
  step.flops = step_flops(plan, step, at);
  step.scratch = arena_charge(step_scratch(plan, step, at));
}

/// Returns the numbers, on the process at `at`, of a step that moves one sharded slot to another.
constexpr MoveNumbers numbers_of(const Plan& plan, const Step& step, int in, int out,
                                 const Coordinates& at) {
  Move move;
  move.kind = step.kind;
  move.collective = step.collective;
  move.group = step.group;
  move.to = plan.slots[out].desc.sharding;
  move.even = step.even;
  move.direct_send = step.direct_send;
  move.direct_receive = step.direct_receive;
  move.panel_dim = step.panel_dim;
  move.near = step.near;
  if (step.kind == StepKind::slice) return {};
  if (!move.near.empty()) return count_staged(move, plan.slots[in].desc, plan.mesh, at);
  const bool far = step.level == Level::network;
  return count_direct(move, plan.slots[in].desc, plan.mesh, at,
                      far ? Levels{step.node, step.group} : Levels{step.group, {}});
}

/// Fills in the numbers, on the process at `at`, of a step that moves one or several sharded slots
/// in one call.
constexpr void number_move(const Plan& plan, Step& step, const Coordinates& at) {
  const MoveNumbers first = numbers_of(plan, step, step.in[0], step.out, at);
  step.payload = first.payload;
  step.network_payload = first.network_payload;
  step.messages = first.messages;
  step.scratch = first.scratch();
  if (step.also.empty()) return;
  const auto bytes = [&](int slot) {
    return slot_bytes(plan, plan.slots[slot], plan.mesh.process(at), at);
  };
  Index send = bytes(step.in[0]);
  Index receive = bytes(step.out);
  for (int k = 0; k < step.also.size(); ++k) {
    const MoveNumbers more = numbers_of(plan, step, step.in[k + 1], step.also[k], at);
    step.payload = saturating_add(step.payload, more.payload);
    step.network_payload = saturating_add(step.network_payload, more.network_payload);
    send = saturating_add(send, bytes(step.in[k + 1]));
    receive = saturating_add(receive, bytes(step.also[k]));
  }
  step.scratch = arena_charge(receive);
  if (step.collective != Collective::all_reduce) {
    step.scratch = saturating_add(step.scratch, arena_charge(send));
    return;
  }
  const Index unit = static_cast<Index>(size_of(plan.slots[step.out].desc.type));
  const auto kept = [&](const AxisGroup& members) {
    return kept_of_all_reduce(send / unit, step.group, members, plan.mesh, at);
  };
  step.payload = saturating_mul(2 * (send / unit - kept({})), unit);
  if (step.level == Level::network)
    step.network_payload = saturating_mul(2 * (send / unit - kept(step.node)), unit);
}

/// Returns the most bytes held at once beside the operands: it replays the executor's allocations.
constexpr Index replayed_peak(const Plan& plan) {
  Index held = 0;
  Index peak = 0;
  const auto charge = [&](const Slot& slot) { return slot.given ? 0 : arena_charge(slot.bytes); };
  for (int i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.takes < 0 && !step.merges && !step.in_place(step.out))
      held = saturating_add(held, charge(plan.slots[step.out]));
    for (int slot : step.also)
      if (!step.merges && !step.in_place(slot))
        held = saturating_add(held, charge(plan.slots[slot]));
    peak = max_of(peak, saturating_add(held, step.scratch));
    // The next step begins while an exchange is in progress.
    if (i > 0 && plan.steps[i - 1].overlaps)
      peak = max_of(peak, saturating_add(held, plan.steps[i - 1].scratch));
    const auto unused = [&](int slot) {
      if (plan.slots[slot].role == SlotRole::temporary && plan.slots[slot].last_use == i)
        held -= charge(plan.slots[slot]);
    };
    unused(step.out);
    for (int slot : step.also) unused(slot);
    for (int k = 0; k < step.in.size() && !step.merges; ++k) {
      const Slot& slot = plan.slots[step.in[k]];
      bool repeated = step.in[k] == step.takes;
      for (int j = 0; j < k; ++j) repeated = repeated || step.in[j] == step.in[k];
      if (!repeated && slot.role == SlotRole::temporary && slot.last_use == i) held -= charge(slot);
    }
  }
  return peak;
}

}  // namespace tessera::detail
