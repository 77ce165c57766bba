// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a list of instructions becomes a table.
///
///     explain_work(plan, names)
///
/// Laws: those of program/explain_work.hpp.
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/explain_work.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {

namespace detail {
/// Returns "operand 1", "result", "tensor 4" (another slot), "packed" (staging memory).
inline std::string memory_name(const Plan& plan, MemoryNumber m) {
  if (m < 0) return "-";
  if (m >= first_loop_buffer) return "block " + std::to_string(m - first_loop_buffer + 1);
  switch (m) {
    case send_staging:
      return "packed";
    case receive_staging:
      return "received";
    case wide_sums:
      return "float sums";
    case kernel_scratch:
      return "scratch";
    default:
      break;
  }
  if (m < plan.operands) return "operand " + std::to_string(m + 1);
  if (m == plan.result) return plan.also.empty() ? "result" : "result 1";
  if (const int i = plan.also.find(m); i >= 0) return "result " + std::to_string(i + 2);
  return "tensor " + std::to_string(m + 1);
}

/// One row for each instruction of a list.
class WorkTable {
 public:
  WorkTable(const Plan& plan, const Instructions& list, const AxisNames& names)
      : plan_(plan), list_(list), names_(names) {
    for (const Instruction& i : list.all)
      table_.row({std::string(name_of(i.action)), memories(i), more(i)});
  }
  std::string text() const { return table_.text("  "); }

 private:
  std::string name(MemoryNumber m) const { return memory_name(plan_, m); }
  const Call& call(const Instruction& i) const {
    return list_.calls[static_cast<std::size_t>(i.first)];
  }
  /// "x,y", "part of x".
  std::string members(const AxisGroup& group) const {
    std::string text = group.axes.empty() ? "" : to_string(group.axes, names_);
    if (group.divided >= 0)
      text +=
          (text.empty() ? "part of " : " and part of ") + to_string(AxisSet{group.divided}, names_);
    return text;
  }
  /// "operand 1 -> packed"; of a kernel all that it reads.
  std::string memories(const Instruction& i) const {
    switch (i.action) {
      case Action::compute: {
        const KernelCall& kernel = list_.kernels[static_cast<std::size_t>(i.first)];
        std::string text;
        for (const MemoryNumber m : kernel.in) text += (text.empty() ? "" : ", ") + name(m);
        return kernel.out < 0 ? text : text + " -> " + name(kernel.out);
      }
      case Action::wait:
      case Action::wait_read:
        return "call " + std::to_string(i.first + 1);
      case Action::fence:
      case Action::progress:
        return "";
      case Action::fill_gaps:
        return "-> " + name(i.to);
      default:
        if (i.to < 0) return name(i.from) + " ->";
        return i.from < 0 ? name(i.to) : name(i.from) + " -> " + name(i.to);
    }
  }
  std::string more(const Instruction& i) const {
    switch (i.action) {
      case Action::copy:
      case Action::accumulate:
      case Action::fill_gaps: {
        Index elements = 0;
        for (int k = 0; k < i.count; ++k)
          elements = saturating_add(
              elements, volume(list_.copies[static_cast<std::size_t>(i.first + k)].extents));
        return bytes_text(saturating_mul(elements, static_cast<Index>(size_of(i.type)))) + " in " +
               std::to_string(i.count) + (i.count == 1 ? " copy" : " copies");
      }
      case Action::call:
      case Action::start:
      case Action::offer:
        return "call " + std::to_string(i.first + 1) + ", " + std::string(name_of(call(i).kind)) +
               " over " + members(call(i).group) + ", " + bytes_text(payload_bytes(call(i)));
      case Action::compute: {
        const KernelCall& kernel = list_.kernels[static_cast<std::size_t>(i.first)];
        const Step& step = plan_.steps[kernel.step];
        return (step.communicates() && !step.loop ? "merge" : std::string(name_of(kernel.kind))) +
               (kernel.adds ? ", adding" : "");
      }
      default:
        return i.bytes > 0 ? bytes_text(i.bytes) : "";
    }
  }

  const Plan& plan_;
  const Instructions& list_;
  const AxisNames& names_;
  TextTable table_;
};
}  // namespace detail

TESSERA_FUNCTION std::string explain_work(const Plan& plan, const AxisNames& names) {
  if (detail::saturated(plan.peak_bytes))
    return std::string(name_of(plan.kind)) + " on " + to_string(plan.mesh, names) +
           ": of more bytes than 64 bits count, so that it has no instructions\n";
  const Instructions list = instructions_of(plan);
  return std::string(name_of(plan.kind)) + " on " + to_string(plan.mesh, names) + ", process " +
         std::to_string(plan.process) + ": " + std::to_string(list.all.size()) + " instructions\n" +
         detail::WorkTable(plan, list, names).text();
}

}  // namespace tessera
