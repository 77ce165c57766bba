// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A plan or a Program of one process, told for another one, or for all: without planning again.
///
///     Plan p17 = on_process(plan, 17);                     // as if planned there
///     PlanSpread all = over_processes(plan);               // all.payload.least, .most, .process
///     fmt::print("{}", explain_all(plan, names));          // least ... most of every number
///
/// Numbers of a plan are its own process's, and differ: a ragged last block is smaller, and process
/// 0 sends nothing in a permutation that it is a fixed point of.
///
/// Laws: on_process(plan of process 0, r) == plan of process r. The machine is the one planned for.
/// A Program's tensors that no operator touched are taken to be as large everywhere.
#include <memory>
#include <string>
#include <vector>

#include <tessera/plan/explain.hpp>
#include <tessera/plan/merge_split.hpp>
#include <tessera/plan/numbers.hpp>
#include <tessera/plan/region_work.hpp>
#include <tessera/plan/relocation.hpp>

namespace tessera {

/// Makes `plan` that of another process.
inline void move_to_process(Plan& plan, int process, const Machine& machine = {}) {
  const Coordinates at = plan.mesh.coordinates(process);
  plan.process = process;
  for (Slot& slot : plan.slots) slot.bytes = detail::slot_bytes(plan, slot, process, at);
  for (Step& step : plan.steps) {
    if (step.kind != StepKind::communicate) detail::number_work(plan, step, at);
    if (step.region >= 0)
      detail::number_region(plan, step, process);
    else if (is_relocation(plan, step))
      detail::number_relocation(plan, step, process);
    else if (step.merges)
      detail::number_merges(plan, step, at);
    else if (step.kind == StepKind::communicate)
      detail::number_move(plan, step, at, machine);
  }
  plan.peak_bytes = detail::replayed_peak(plan);
}
inline Plan on_process(const Plan& plan, int process, const Machine& machine = {}) {
  Plan result = plan;
  move_to_process(result, process, machine);
  return result;
}

namespace detail {
/// Returns the arena memory of a program's tensor on the process at `at`.
inline Index charge_of(const ProgramTensor& t, const MeshShape& mesh, const Coordinates& at) {
  if (t.adopted) return 0;
  return arena_charge(saturating_mul(block_volume(t.desc.extents, t.desc.sharding, mesh, at),
                                     static_cast<Index>(size_of(t.desc.type))));
}
}  // namespace detail

/// Returns the program as process `process` records it. `machine`: the one it was planned for.
inline Program on_process(const Program& program, int process, const Machine& machine = {}) {
  Program result = program;
  result.process = process;
  const Coordinates at = program.mesh.coordinates(process);
  for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
    result.tensor(t).bytes = detail::charge_of(program.tensor(t), program.mesh, at);
  const Plan* last = nullptr;
  std::shared_ptr<const Plan> moved;
  for (int i = 0; i < program.size(); ++i) {
    ProgramEntry& e = result.entry(i);
    if (e.plan.get() != last) {
      last = e.plan.get();
      moved = std::make_shared<const Plan>(on_process(*e.plan, process, machine));
    }
    e.plan = moved;
    for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
      if (program.tensor(t).alive_at(i))
        e.held_before += result.tensor(t).bytes - program.tensor(t).bytes;
  }
  return result;
}

/// One number over all processes.
struct Spread {
  Index least = 0;
  Index most = 0;
  int process = -1;  ///< the first that has the most; -1: none has been asked
  Index total = 0;
  void add(Index value, int of) {
    least = process < 0 ? value : min_of(least, value);
    if (process < 0 || value > most) {
      most = value;
      process = of;
    }
    total = saturating_add(total, value);
  }
  bool even() const { return least == most; }
};

/// What one step does, over all processes.
struct StepSpread {
  Spread payload;
  Spread messages;
  Spread flops;
};
struct PlanSpread {
  std::vector<StepSpread> steps;
  Spread payload;
  Spread messages;
  Spread flops;
  Spread peak;
};

/// Returns the numbers of a plan over all processes of its mesh: a microsecond or so a process.
inline PlanSpread over_processes(const Plan& plan, const Machine& machine = {}) {
  PlanSpread spread;
  spread.steps.resize(static_cast<std::size_t>(plan.steps.size()));
  Plan p = plan;
  for (int process = 0; process < plan.mesh.processes(); ++process) {
    move_to_process(p, process, machine);
    for (int i = 0; i < p.steps.size(); ++i) {
      StepSpread& step = spread.steps[static_cast<std::size_t>(i)];
      step.payload.add(p.steps[i].payload, process);
      step.messages.add(p.steps[i].messages, process);
      step.flops.add(p.steps[i].flops, process);
    }
    spread.payload.add(p.payload_bytes(), process);
    spread.messages.add(p.messages(), process);
    spread.flops.add(p.flops(), process);
    spread.peak.add(p.peak_bytes, process);
  }
  return spread;
}

/// Returns "30 MiB", or "0 B to 30 MiB (process 5)".
template <class Text> std::string to_string(const Spread& s, const Text& text) {
  if (s.even()) return text(s.most);
  return text(s.least) + " to " + text(s.most) + " (process " + std::to_string(s.process) + ")";
}

/// Returns the plan as explain() does, with every number over all processes: the least, the most,
/// and the first process that has the most, where they differ.
inline std::string explain_all(const Plan& plan, const AxisNames& names,
                               const Machine& machine = {}) {
  const PlanSpread spread = over_processes(plan, machine);
  std::string text = std::string(name_of(plan.kind)) + " on " + to_string(plan.mesh, names) +
                     ", all " + std::to_string(plan.mesh.processes()) + " processes\n";
  detail::TextTable table;
  for (int i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const StepSpread& s = spread.steps[static_cast<std::size_t>(i)];
    table.row({detail::step_name(step, names), "->", detail::slot_text(plan.slots[step.out], names),
               step.kind == StepKind::communicate ? to_string(s.payload, bytes_text)
               : s.flops.most > 0                 ? to_string(s.flops, flops_text)
                                                  : std::string()});
  }
  return text + table.text("  ") + "  payload " + to_string(spread.payload, bytes_text) + ", " +
         bytes_text(spread.payload.total) + " together; workspace " +
         to_string(spread.peak, bytes_text) + "; " + to_string(spread.flops, flops_text) + ", " +
         flops_text(spread.flops.total) + " together\n";
}

}  // namespace tessera
