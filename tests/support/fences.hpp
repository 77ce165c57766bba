// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The law of fences: whoever reads or writes memory beside the kernels (a call of this process, or
/// other processes that read what it offers) finds it as the kernels leave it.
///
///     const std::string wrong = support::broken_fences(instructions_of(plan));   // "" when it holds
#include <array>
#include <string>

#include <tessera/plan/work/instructions.hpp>

namespace support {
using namespace tessera;

/// Returns what a list does with memory that its kernels may still read or write, or nothing.
inline std::string broken_fences(const Instructions& list) {
  using detail::MemoryNumber;
  using Marks = std::array<bool, detail::max_memories>;
  Marks read{}, written{}, offered{};
  const auto mark = [](Marks& marks, MemoryNumber m) {
    if (m != detail::no_memory) marks[static_cast<std::size_t>(m)] = true;
  };
  const auto marked = [](const Marks& marks, MemoryNumber m) {
    return m != detail::no_memory && marks[static_cast<std::size_t>(m)];
  };
  for (const Instruction& i : list.all) switch (i.action) {
      case Action::fence:
        read = written = {};
        break;
      case Action::take_over:
        for (Marks* marks : {&read, &written})
          (*marks)[static_cast<std::size_t>(i.to)] = marked(*marks, i.from);
        break;
      case Action::compute: {
        const KernelCall& kernel = list.kernels.at(static_cast<std::size_t>(i.first));
        for (const MemoryNumber m : kernel.in) mark(read, m);
        mark(written, kernel.out);
        mark(written, kernel.scratch);
        if (kernel.kind == StepKind::communicate)  // a merge writes its tensors
          for (int k = 2; k < kernel.in.size(); ++k) mark(written, kernel.in[k]);
        break;
      }
      case Action::fill:
      case Action::fill_gaps:
      case Action::zero:
      case Action::copy:
      case Action::accumulate:
      case Action::to_wide:
      case Action::to_narrow:
      case Action::read:
      case Action::read_adding:
        mark(read, i.from);
        mark(written, i.to);
        break;
      case Action::call:
      case Action::start:
        if (marked(written, i.from)) return "a call sends what a kernel may still write";
        if (marked(written, i.to) || marked(read, i.to))
          return "a call receives where a kernel may still read or write";
        break;
      case Action::offer:  // `to` and `from`, until the others have read them
        if (marked(written, i.to) || marked(written, i.from))
          return "others are let read what a kernel may still write";
        mark(offered, i.from);
        break;
      case Action::wait_read:
        offered = {};
        break;
      case Action::allocate:
      case Action::release:
        if (marked(offered, i.to)) return "memory that others may still read changes hands";
        break;
      default:
        break;
    }
  return "";
}

}  // namespace support
