// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Program's sums, as values: by collective and axes, by layer, and the work that several
/// processes do alike. program/explain.hpp prints them.
///
///     const auto totals = by_axes(program);           // all-gather over data: 100 MiB
///     by_layer(program)[1].payload;   duplicated_work(program)
///
/// Laws: the totals of by_axes() and of the outermost layer equal the program's own; the listed
/// duplicated work adds up to duplicated_flops().
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// The communication over one group of axes by one kind of collective, on the program's process.
struct CollectiveTotal {
  AxisSet axes;  ///< all at once: a group over two axes is not a group over each
  Collective collective = Collective::all_gather;
  int steps = 0;
  Index messages = 0;
  Index payload = 0;          ///< bytes
  Index network_payload = 0;  ///< of these, between nodes
  std::int64_t cost = 0;      ///< picoseconds by the machine model
  constexpr bool operator==(const CollectiveTotal&) const = default;
};

/// Returns the totals of each group of axes and collective in use, ordered by group.
TESSERA_FUNCTION std::vector<CollectiveTotal> by_axes(const Program& program);

/// What one layer does, the layers within it included.
struct LayerTotal {
  std::string path;  ///< "encoder.0/attention"; empty for the whole program
  int layer = 0;     ///< in Program::layers()
  int depth = 0;
  int operators = 0;
  Index payload = 0;
  Index messages = 0;
  Index flops = 0;
  Index duplicated = 0;  ///< flops
  Index peak = 0;        ///< bytes held at once while it ran, whoever held them
  std::int64_t cost = 0;
};

/// Returns the totals of each layer: the whole program first, then layers in the order they were
/// first entered, each after the layer that contains it.
TESSERA_FUNCTION std::vector<LayerTotal> by_layer(const Program& program);

/// Work of one step that other processes do as well.
struct DuplicatedWork {
  int entry = 0;  ///< the operator
  int step = 0;
  Index copies = 1;  ///< processes that do the same
  Index flops = 0;   ///< of the step
  Index extra = 0;   ///< what this process would save if the work were split among them
};

/// Returns the steps with duplicated work, in order.
TESSERA_FUNCTION std::vector<DuplicatedWork> duplicated_work(const Program& program);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/summary.hpp>
#endif
