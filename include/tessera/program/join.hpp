// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pass over Programs: small collectives over one group of processes become one call.
///
///     const Joining joined = join(program, options);
///     joined.program;   joined.calls[0].tensors;   explain(joined);
///
/// It joins what operators end with, the reduction of an unfinished product or sum, and moves that
/// are operators of their own. Each waits for the others until one of the results is read. The
/// planner of ops::Together says what the joined call costs; it is made where the modelled time
/// falls. An unfinished result lives until then, so that memory may rise: `limit` is kept.
///
/// Laws: the payload is that of the program, but for an all-reduce, whose payload is that of one
/// tensor with all elements; sums are the same to rounding.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan_options.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// One call that stands for several.
struct JoinedCall {
  int layer = 0;    ///< of the first of them, in Program::layers()
  int tensors = 0;  ///< how many it moves
  Collective collective = Collective::all_reduce;
  AxisSet group;          ///< the axes over which it communicates
  Index messages = 0;     ///< that are saved, of each process
  std::int64_t cost = 0;  ///< picoseconds that are saved by the machine model
};
struct Joining {
  Program program;
  std::vector<JoinedCall> calls;
  Index peak_before = 0;  ///< bytes held at once on the program's process
  Index peak_after = 0;
  int refused = 0;  ///< calls that were not joined, since memory would have exceeded the limit
};

/// Returns the program with calls joined. `options`: of planning; `limit`: bytes that the tensors
/// of the program and the workspace may take up at once, on any process. Operators without an
/// Operation stay as they are. Communication: none.
TESSERA_FUNCTION Joining join(const Program& program, const PlanOptions& options = {},
                              Index limit = max_int64);

/// Returns what the pass did: totals, and one row for each call.
TESSERA_FUNCTION std::string explain(const Joining& joined);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/join.hpp>
#endif
