// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Program's memory, operator by operator: the bytes held when it begins, the bytes it needs
/// besides, and the tensors alive at the peak.
///
///     const PeakMoment peak = peak_moment(program);
///     program.entry(peak.entry).label;   peak.tensors        // the largest first
///     explain_memory(program)                                // a chart
///
/// Laws: peak_moment(p).bytes == p.peak_bytes(); the tensors' bytes and `unnamed` add up to `held`.
/// The chart is for the process that holds most.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// Memory of one process while an operator runs.
struct MemoryMoment {
  int entry = 0;
  Index held = 0;       ///< bytes of tensors when it begins
  Index workspace = 0;  ///< most bytes it needs at once besides, its result included
  Index bytes() const { return detail::saturating_add(held, workspace); }
};

/// Returns the moments of all operators in order.
TESSERA_FUNCTION std::vector<MemoryMoment> memory_timeline(const Program& program);

struct PeakMoment {
  int entry = -1;  ///< the first operator that reaches the peak; -1: an empty program
  Index held = 0;
  Index workspace = 0;
  Index bytes = 0;
  std::vector<int> tensors;  ///< alive when it begins, the largest first, in Program::tensors()
  Index unnamed = 0;         ///< bytes held for tensors that no operator of the program used
};

/// Returns when and why a program holds the most memory.
TESSERA_FUNCTION PeakMoment peak_moment(const Program& program);

/// Returns a chart of a program's memory on the process that holds most: one row for each operator,
/// or for the worst of several neighbours where there are more than `rows`; then the tensors alive
/// at the peak, at most `rows` of them.
TESSERA_FUNCTION std::string explain_memory(const Program& any, int rows = 48);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/timeline.hpp>
#endif
