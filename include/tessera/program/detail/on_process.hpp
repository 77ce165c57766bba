// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a plan is restated for another process, or for all.
///
///     on_process(plan, 17)
///
/// Laws: those of program/on_process.hpp.
#include <memory>
#include <string>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/explain.hpp>
#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/on_process.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {

TESSERA_FUNCTION Plan on_process(const Plan& plan, int process) {
  Plan result = plan;
  detail::move_to_process(result, process);
  return result;
}

TESSERA_FUNCTION Program on_process(const Program& program, int process) {
  Program result = program;
  result.process = process;
  for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
    result.tensor_to_change(t).bytes = program.charge(program.tensor(t), process);
  const Plan* last = nullptr;
  std::shared_ptr<const Plan> moved;
  for (int i = 0; i < program.size(); ++i) {
    ProgramEntry& e = result.entry_to_change(i);
    if (e.plan.get() != last) {
      last = e.plan.get();
      const int place = program.place_on(e.part, process);
      moved = place < 0 ? e.plan : std::make_shared<const Plan>(on_process(*e.plan, place));
    }
    e.plan = moved;
    for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
      if (program.tensor(t).alive_at(i))
        e.held_before +=
            result.tensors()[static_cast<std::size_t>(t)].bytes - program.tensor(t).bytes;
  }
  return result;
}

TESSERA_FUNCTION std::string explain_all(const Plan& plan, const AxisNames& names) {
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
