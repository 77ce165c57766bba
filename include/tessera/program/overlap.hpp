// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pass over Programs: moves start early and are waited for late, while others compute.
///
///     const Overlap early = overlap(program, options);
///     early.program;   early.moves[0].hidden;   explain(early);
///
/// A move that is an operator of its own begins before those operators that hide most of it until
/// its first reader, earlier or later than it stood, by the machine model: Machine::hidden_percent
/// of a transfer costs no time while others compute, which calibrate() measures. An operator that
/// makes calls, and waits for them, hides it until the first one: what comes after that waits for
/// both. Where nothing is hidden, nothing is moved. What a move reads and makes lives meanwhile, so
/// that memory may rise: `limit` is kept.
///
/// Laws: payload, calls and values are those of the program; an operator hides one move at a time;
/// all processes start and wait in one order.
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan_options.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// A move that others hide.
struct EarlyMove {
  int layer = 0;            ///< in Program::layers()
  int operators = 0;        ///< that run while it is under way
  Index payload = 0;        ///< bytes, of the process with most
  std::int64_t hidden = 0;  ///< picoseconds that are saved by the machine model
};
struct Overlap {
  Program program;
  std::vector<EarlyMove> moves;
  Index peak_before = 0;  ///< bytes held at once on the program's process
  Index peak_after = 0;
  int refused = 0;  ///< moves that stay, since memory would have exceeded the limit
};

/// Returns the program with moves started early. `options`: of planning; `limit`: bytes that the
/// tensors of the program and the workspace may take up at once, on any process. Communication:
/// none.
TESSERA_FUNCTION Overlap overlap(const Program& program, const PlanOptions& options = {},
                                 Index limit = max_int64);

/// Returns what the pass did: totals, and one row for each move.
TESSERA_FUNCTION std::string explain(const Overlap& early);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/overlap.hpp>
#endif
