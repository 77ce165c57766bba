// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The numbers of a plan or a Program over all processes: the least, the most, the process with the
/// most, and the sum.
///
///     const PlanSpread all = over_processes(plan);      // all.payload.least, .most, .process
///     over_processes(program).peak.most
///
/// Laws: the numbers equal those from planning on every process; processes that are alike
/// (plan/process_classes.hpp) are computed once.
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// One number over all processes.
struct Spread {
  Index least = 0;
  Index most = 0;
  int process = -1;  ///< the first process that has the most; -1: no value yet
  Index total = 0;
  /// Adds the value of process `of`, and of the processes that have the same value.
  void add(Index value, int of, Index alike = 1) {
    least = process < 0 ? value : min_of(least, value);
    if (process < 0 || value > most) {
      most = value;
      process = of;
    }
    total = detail::saturating_add(total, detail::saturating_mul(value, alike));
  }
  bool even() const { return least == most; }
  constexpr bool operator==(const Spread&) const = default;
};

/// What one step does, over all processes.
struct StepSpread {
  Spread payload;
  Spread network;
  Spread messages;
  Spread flops;
};
struct PlanSpread {
  std::vector<StepSpread> steps;
  Spread payload;
  Spread network;
  Spread messages;
  Spread flops;
  Spread peak;
};

/// What operators do together, over all processes.
struct TotalSpread {
  Spread payload;
  Spread network;
  Spread messages;
  Spread flops;
  Spread duplicated;  ///< flops
  Spread peak;        ///< bytes of tensors and workspace held at once
};
/// The communication over one group of axes by one kind of collective.
struct AxesSpread {
  AxisSet axes;
  Collective collective = Collective::all_gather;
  Spread payload;
  Spread network;
  Spread messages;
};
struct ProgramSpread : TotalSpread {
  std::vector<TotalSpread> entries;
  std::vector<TotalSpread> layers;  ///< by their numbers, the layers within them included
  std::vector<AxesSpread> axes;     ///< ordered by group and collective, as by_axes()
};

/// Returns the numbers of a plan over all processes of its mesh: about a microsecond for each
/// process that differs.
TESSERA_FUNCTION PlanSpread over_processes(const Plan& plan);

/// Returns the numbers of a program over all processes of its mesh. Tensors that no operator used
/// are assumed to have the same size on every process.
TESSERA_FUNCTION ProgramSpread over_processes(const Program& program);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/over_processes.hpp>
#endif
