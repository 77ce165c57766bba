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
#include <string>

#include <tessera/base/compiled.hpp>
#include <tessera/program/over_processes.hpp>

namespace tessera {

/// Returns the plan as if it had been made on another process.
TESSERA_FUNCTION Plan on_process(const Plan& plan, int process);

/// Returns the program as process `process` records it.
TESSERA_FUNCTION Program on_process(const Program& program, int process);

/// Returns "30 MiB", or "0 B to 30 MiB (process 5)".
template <class Text> std::string to_string(const Spread& s, const Text& text) {
  if (s.even()) return text(s.most);
  return text(s.least) + " to " + text(s.most) + " (process " + std::to_string(s.process) + ")";
}

/// Returns the plan as explain() does, with every number over all processes: the least, the most,
/// and, where these differ, the first process that has the most.
TESSERA_FUNCTION std::string explain_all(const Plan& plan, const AxisNames& names);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/on_process.hpp>
#endif
