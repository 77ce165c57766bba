// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The price of a step that takes regions, as an exchange or as a broadcast.
///
///     detail::price_region(plan, step, machine);     // step.collective, step.cost and the step's numbers
///
/// Laws: a few processes, the same for every process that plans, give the price.
#include <algorithm>

#include <tessera/plan/region/region_numbers.hpp>

namespace tessera::detail {

/// Returns the processes whose work gives the cost of such a step: process 0, the one in the middle
/// and, where parts of a tensor are taken, one that owns the part taken of the first input, or,
/// where dimensions are regrouped, the last.
constexpr FixedVector<int, 3> looked_at(const Plan& plan, const Step& step) {
  FixedVector<int, 3> processes{0};
  const auto add = [&](int process) {
    if (!processes.contains(process)) processes.push_back(process);
  };
  add(plan.mesh.processes() / 2);
  const Region& region = plan.regions[step.region];
  if (regroups(region)) {
    add(plan.mesh.processes() - 1);
    return processes;
  }
  bool blocks = true;
  for (const RegionDim& d : region) blocks = blocks && d.rule == RegionDim::Rule::block;
  if (blocks) add(plan.mesh.process(middle_owner(region, plan.mesh)));
  return processes;
}

/// Returns the bytes that such a step moves: the most that one of those processes sends or
/// receives.
constexpr Index bytes_moved(const Plan& plan, const Step& step) {
  Index most = 0;
  for (const int process : looked_at(plan, step)) {
    const RegionNumbers n = region_numbers(plan, step, process);
    most = max_of(most, max_of(n.payload, n.arriving));
  }
  return saturating_mul(most, static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type)));
}
/// Sums the bytes of all steps of a plan that was made for process 0.
constexpr Index bytes_moved(const Plan& plan) {
  Index sum = 0;
  for (const Step& step : plan.steps)
    if (step.kind == StepKind::communicate)
      sum = saturating_add(sum, step.region >= 0 ? bytes_moved(plan, step) : step.payload);
  return sum;
}

/// Returns the price of such a step on a process from the process's numbers.
constexpr std::int64_t price_of_region(const Step& step, const RegionNumbers& n, Index unit,
                                       const Machine& machine) {
  const Index copied = saturating_mul(n.copied, unit);
  const Index staged = saturating_add(n.send_bytes, n.receive_bytes);
  if (step.kind == StepKind::communicate && step.collective == Collective::broadcast)
    return saturating_add(  // the one that sends copies its own part while the others read
        machine.copy(staged),
        std::max(machine.copy(copied), price_of_broadcast(saturating_mul(n.largest, unit),
                                                          n.members, step.level, machine)));
  const std::int64_t cost = machine.copy(saturating_add(copied, staged));
  if (step.kind != StepKind::communicate) return cost;
  return saturating_add(cost, machine.transfer(saturating_mul(max_of(n.payload, n.arriving), unit),
                                               max_of(n.messages, n.senders), step.level));
}
/// Fills in such a step's numbers on the plan's process, and its price: the highest on the
/// processes that looked_at() returns.
constexpr void price_region_as_it_is(const Plan& plan, Step& step, const Machine& machine) {
  const Index unit = static_cast<Index>(size_of(plan.slots[step.out].desc.type));
  const FixedVector<int, 3> processes = looked_at(plan, step);
  for (const int process : processes) {
    const RegionNumbers n = region_numbers(plan, step, process);
    if (process == plan.process) number_region(plan, step, n);
    step.cost = max_of(step.cost, price_of_region(step, n, unit, machine));
  }
  if (!processes.contains(plan.process))
    number_region(plan, step, region_numbers(plan, step, plan.process));
}
/// Fills in the numbers and the price of the cheaper of an exchange and, where one process has what
/// all of its group need, a broadcast.
constexpr void price_region(const Plan& plan, Step& step, const Machine& machine) {
  price_region_as_it_is(plan, step, machine);
  if (step.kind != StepKind::communicate || step.in.size() > 1 || step.adjoint ||
      plan.mesh.group_size(step.group) == 2 ||
      !one_has_all(plan.regions[step.region], step.group, plan.mesh))
    return;
  Step other = step;
  other.collective = Collective::broadcast;
  other.cost = 0;
  price_region_as_it_is(plan, other, machine);
  if (other.cost < step.cost) step = other;
}

}  // namespace tessera::detail
