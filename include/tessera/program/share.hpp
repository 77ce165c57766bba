// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pass over Programs: a tensor that several operators bring to one sharding is brought there
/// once.
///
///     const Sharing shared = share(program, options);
///     shared.program;   shared.moves[0].users;   explain(shared);
///
/// Each such operator has the move inside its plan; the pass makes it an operator of its own,
/// before the first of them, and plans them again. It does so where the payload falls and the
/// modelled time does not rise. The moved tensor lives until the last of them, so that memory may
/// rise: `limit` is kept, or what the program takes up anyway, and the moves that save most for
/// each byte are made. And an operator reads another tensor of the same value, which a reshard has
/// made, where it then communicates less: what every process has is sliced, and not moved.
///
/// Laws: the payload of the shared Program is that of the first less what the moves say; values are
/// the same bits, or the same to rounding where a move says so (a product that read panels of a
/// gather, or its own part in place, sums in another order).
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/plan_options.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// One move that stands for several, or a tensor that is read in place of another.
struct SharedMove {
  int tensor = -1;        ///< what is moved, in Program::tensors() of both Programs
  int moved = -1;         ///< what is made, in those of the second one
  int users = 0;          ///< the operators that read it; 1: it was there, and is read by one more
  Index payload = 0;      ///< bytes that are saved, of the process with most of each plan
  std::int64_t cost = 0;  ///< picoseconds that are saved by the machine model
  int layer = 0;          ///< of the first operator, in Program::layers()
  bool rounds = false;    ///< an operator sums in another order: the same values to rounding
};
struct Sharing {
  Program program;
  std::vector<SharedMove> moves;
  Index peak_before = 0;  ///< bytes held at once on the program's process
  Index peak_after = 0;
  int refused = 0;  ///< moves that were not shared, since memory would have exceeded the limit
};

namespace detail {
/// Returns what was shared, and copies read in place of tensors as far as the limit on memory
/// allows (program/choice/detail/read_copies.hpp).
TESSERA_FUNCTION Sharing reading_copies(const Sharing& shared, const PlanOptions& options,
                                        Index limit);
}  // namespace detail

/// Returns the program with moves shared. `options`: of planning; `limit`: bytes that the tensors
/// of the program and the workspace may take up at once, on any process. Operators without an
/// Operation stay as they are. Communication: none.
TESSERA_FUNCTION Sharing share(const Program& program, const PlanOptions& options = {},
                               Index limit = max_int64);

/// Returns what the pass did: totals, and one row for each move with the layer of its first reader.
TESSERA_FUNCTION std::string explain(const Sharing& shared);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/choice/detail/read_copies.hpp>
#include <tessera/program/detail/share.hpp>
#endif
