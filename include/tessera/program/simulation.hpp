// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// All processes of a mesh in a dry run: computes every process's calls, and checks that they
/// match: what one process sends is what the other expects.
///
///     const Simulation s = simulate(program);      // thousands of processes in well under a second
///     s.fault == "";   s.payload.most;   s.peak.process
///
/// Laws: a plan that a planner made has no fault, and one of more bytes than 64 bits count is not
/// checked, since it cannot run; totals are sums of the processes' own plans.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/over_processes.hpp>

namespace tessera {

/// One operator's numbers.
struct EntrySpread {
  Spread payload;
  Spread flops;
  Spread peak;  ///< bytes of tensors and workspace
};

struct Simulation {
  int processes = 0;
  Index calls = 0;  ///< of all processes together; a plan that is used again counts once
  std::vector<EntrySpread> entries;
  Spread payload;  ///< bytes on one process in the whole program
  Spread messages;
  Spread flops;
  Spread peak;        ///< bytes of tensors and workspace
  std::string fault;  ///< the first mismatch between two processes' calls; empty: all match
};

/// Returns the numbers of a program on every process, and whether all their calls match.
/// Communication: none.
TESSERA_FUNCTION Simulation simulate(const Program& program);

/// Returns the program with every operator's numbers over all processes.
TESSERA_FUNCTION std::string explain_all(const Program& program);
}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/simulation.hpp>
#endif
