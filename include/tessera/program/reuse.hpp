// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pass over Programs: an elementwise operator writes its result into the memory of an operand
/// that ends with it.
///
///     const Reuse reused = reuse(program, options);
///     reused.program;   reused.changes[0].operand;   explain(reused);
///
/// It does so where the operand is nobody else's: the program made it, or its caller gave it away
/// (a tensor that the function assigns anew, in a variable of the caller's). A step of training
/// then has its new weights where the old ones were.
///
/// Laws: payload and values are those of the program; memory does not rise; memory of the
/// application's is never written.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan_options.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// An operator whose result lies where one of its operands was.
struct ReusedMemory {
  int layer = 0;    ///< in Program::layers()
  int operand = 0;  ///< in Program::tensors() of both Programs
  int result = 0;   ///< the same; the second Program calls it by the operand's number
};
struct Reuse {
  Program program;
  std::vector<ReusedMemory> changes;
  Index bytes = 0;        ///< that were not allocated, on the program's process
  Index peak_before = 0;  ///< bytes held at once there
  Index peak_after = 0;
};

/// Returns the program with memory reused. `options`: of planning. Operators without an Operation
/// stay as they are. Communication: none.
TESSERA_FUNCTION Reuse reuse(const Program& program, const PlanOptions& options = {});

/// Returns what the pass did: totals, and one row for each layer.
TESSERA_FUNCTION std::string explain(const Reuse& reused);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/reuse.hpp>
#endif
