// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A plan or a Program of one process, restated for another process or for all, without planning
/// again.
///
///     Plan p17 = on_process(plan, 17);                     // as if planned there
///     PlanSpread all = over_processes(plan);               // all.payload.least, .most, .process
///     fmt::print("{}", explain_all(plan, names));          // least ... most of every number
///
/// The numbers of a plan are for its own process, and processes differ: a ragged last block is
/// smaller, and a process that keeps its place in a permutation sends nothing.
///
/// Laws: on_process(plan of process 0, r) == plan of process r. Tensors of a Program that no
/// operator used are assumed to have the same size on every process.
#include <memory>
#include <string>
#include <vector>

#include <tessera/program/explain.hpp>
#include <tessera/program/over_processes.hpp>

namespace tessera {

/// Returns the plan as if it had been made on another process.
inline Plan on_process(const Plan& plan, int process) {
  Plan result = plan;
  detail::move_to_process(result, process);
  return result;
}

/// Returns the program as process `process` records it.
inline Program on_process(const Program& program, int process) {
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
      moved = std::make_shared<const Plan>(on_process(*e.plan, process));
    }
    e.plan = moved;
    for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
      if (program.tensor(t).alive_at(i))
        e.held_before += result.tensor(t).bytes - program.tensor(t).bytes;
  }
  return result;
}

/// Returns "30 MiB", or "0 B to 30 MiB (process 5)".
template <class Text> std::string to_string(const Spread& s, const Text& text) {
  if (s.even()) return text(s.most);
  return text(s.least) + " to " + text(s.most) + " (process " + std::to_string(s.process) + ")";
}

/// Returns the plan as explain() does, with every number over all processes: the least, the most,
/// and, where these differ, the first process that has the most.
inline std::string explain_all(const Plan& plan, const AxisNames& names) {
  const PlanSpread spread = over_processes(plan);
  std::string text = std::string(name_of(plan.kind)) + " on " + to_string(plan.mesh, names) +
                     ", all " + std::to_string(plan.mesh.processes()) + " processes\n";
  detail::TextTable table;
  for (int i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const StepSpread& s = spread.steps[static_cast<std::size_t>(i)];
    table.row({detail::step_name(step, names), "->", detail::slot_text(plan.slots[step.out], names),
               step.communicates() ? to_string(s.payload, detail::bytes_text)
               : s.flops.most > 0  ? to_string(s.flops, detail::flops_text)
                                   : std::string()});
  }
  return text + table.text("  ") + "  payload " + to_string(spread.payload, detail::bytes_text) +
         ", " + detail::bytes_text(spread.payload.total) + " together; workspace " +
         to_string(spread.peak, detail::bytes_text) + "; " +
         to_string(spread.flops, detail::flops_text) + ", " +
         detail::flops_text(spread.flops.total) + " together\n";
}

}  // namespace tessera
