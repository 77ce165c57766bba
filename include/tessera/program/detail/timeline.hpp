// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How memory over time is found and drawn.
///
///     explain_memory(program)
///
/// Laws: those of program/timeline.hpp.
#include <algorithm>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/on_process.hpp>
#include <tessera/program/over_processes.hpp>
#include <tessera/program/text_table.hpp>
#include <tessera/program/timeline.hpp>

namespace tessera {

TESSERA_FUNCTION std::vector<MemoryMoment> memory_timeline(const Program& program) {
  std::vector<MemoryMoment> moments;
  for (int i = 0; i < program.size(); ++i)
    moments.push_back(
        {i, program.entry(i).held_before,
         program.takes_part(program.entry(i)) ? program.entry(i).plan->peak_bytes : 0});
  return moments;
}

TESSERA_FUNCTION PeakMoment peak_moment(const Program& program) {
  PeakMoment peak;
  for (const MemoryMoment& m : memory_timeline(program))
    if (peak.entry < 0 || m.bytes() > peak.bytes)
      peak = {m.entry, m.held, m.workspace, m.bytes(), {}, m.held};
  for (int t = 0; t < static_cast<int>(program.tensors().size()); ++t)
    if (peak.entry >= 0 && program.tensor(t).alive_at(peak.entry) && program.tensor(t).bytes > 0) {
      peak.tensors.push_back(t);
      peak.unnamed =
          detail::saturated(peak.unnamed) ? 0 : max_of(0, peak.unnamed - program.tensor(t).bytes);
    }
  std::stable_sort(peak.tensors.begin(), peak.tensors.end(),
                   [&](int a, int b) { return program.tensor(a).bytes > program.tensor(b).bytes; });
  return peak;
}

namespace detail {
/// Returns "#5 einsum bsm,mh->bsh".
inline std::string entry_name(const Program& program, int i) {
  const ProgramEntry& e = program.entry(i);
  return "#" + std::to_string(i + 1) + " " + std::string(name_of(e.plan->kind)) + " " + e.label;
}

/// Returns where tensor t of the program comes from.
inline std::string origin_text(const Program& program, int t) {
  const auto told = [&](int i) {
    const Where where = program.entry(i).where;
    return entry_name(program, i) + (where.known() ? " at " + to_string(where) : "");
  };
  if (const int made = program.tensor(t).made; made >= 0) return "made by " + told(made);
  for (int i = 0; i < program.size(); ++i)
    if (const int k = program.entry(i).operands.find(t); k >= 0)
      return "given; operand " + std::to_string(k + 1) + " of " + told(i);
  return "given";
}

inline std::string bar(Index held, Index workspace, Index most, int width) {
  const auto part = [&](Index bytes) {
    return most > 0 ? static_cast<std::size_t>(
                          static_cast<double>(bytes) * width / static_cast<double>(most) + 0.5)
                    : 0;
  };
  const std::size_t all = part(saturating_add(held, workspace));
  const std::size_t below = std::min(part(held), all);
  return std::string(below, '#') + std::string(all - below, '+');
}
}  // namespace detail

TESSERA_FUNCTION std::string explain_memory(const Program& any, int rows) {
  const Spread spread = over_processes(any).peak;
  const Program program = spread.even() || spread.process < 0 || spread.process == any.process
                              ? any
                              : on_process(any, spread.process);
  const PeakMoment peak = peak_moment(program);
  std::string text = "memory on " + to_string(program.mesh, program.names()) +
                     ", most on one process: " + detail::bytes_text(peak.bytes) +
                     (spread.even() ? "" : " (process " + std::to_string(program.process) + ")");
  if (peak.entry < 0) return text + ", no operators\n";
  const ProgramEntry& worst = program.entry(peak.entry);
  text += ", in " + detail::entry_name(program, peak.entry) +
          (worst.where.known() ? " at " + to_string(worst.where) : "") + "\n";
  const std::vector<MemoryMoment> moments = memory_timeline(program);
  const int at_once = static_cast<int>(ceil_div(program.size(), rows < 1 ? 1 : rows));
  detail::TextTable chart;
  chart.row({"operator", "held #", "workspace +", "both", ""});
  for (int first = 0; first < program.size(); first += at_once) {
    const int last = std::min(first + at_once, program.size()) - 1;
    MemoryMoment m = moments[static_cast<std::size_t>(first)];
    for (int i = first + 1; i <= last; ++i)
      if (moments[static_cast<std::size_t>(i)].bytes() > m.bytes())
        m = moments[static_cast<std::size_t>(i)];
    chart.row({detail::entry_name(program, m.entry) +
                   (last > first ? ", worst of " + std::to_string(first + 1) + " to " +
                                       std::to_string(last + 1)
                                 : ""),
               detail::bytes_text(m.held), detail::bytes_text(m.workspace),
               detail::bytes_text(m.bytes()), detail::bar(m.held, m.workspace, peak.bytes, 40)});
  }
  text +=
      chart.text("  ") + "  alive when " + detail::entry_name(program, peak.entry) + " begins:\n";
  detail::TextTable alive;
  Index more = 0;
  int left_out = 0;
  for (std::size_t i = 0; i < peak.tensors.size(); ++i) {
    const ProgramTensor& t = program.tensor(peak.tensors[i]);
    if (static_cast<int>(i) < rows) {
      alive.row({detail::bytes_text(t.bytes), to_string(t.desc, program.names_on(t.part)),
                 detail::origin_text(program, peak.tensors[i])});
    } else {
      more = detail::saturating_add(more, t.bytes);
      ++left_out;
    }
  }
  if (left_out > 0)
    alive.row({detail::bytes_text(more), "in " + std::to_string(left_out) + " smaller tensors"});
  if (peak.unnamed > 0)
    alive.row({detail::bytes_text(peak.unnamed), "in tensors that no operator touched"});
  alive.row({detail::bytes_text(peak.workspace), "workspace of the operator, its result included"});
  return text + alive.text("    ");
}

}  // namespace tessera
