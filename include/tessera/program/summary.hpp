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
#include <map>
#include <string>
#include <utility>
#include <vector>

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
inline std::vector<CollectiveTotal> by_axes(const Program& program) {
  std::map<std::pair<std::uint32_t, Collective>, CollectiveTotal> totals;
  for (const ProgramEntry& e : program.entries())
    for (const Step& s : e.plan->steps) {
      if (!s.communicates()) continue;
      CollectiveTotal& total = totals[{s.group.bits, s.collective}];
      total.axes = s.group;
      total.collective = s.collective;
      ++total.steps;
      total.messages += s.messages;
      total.payload = saturating_add(total.payload, s.payload);
      total.network_payload = saturating_add(total.network_payload, s.network_payload);
      total.cost = saturating_add(total.cost, s.cost);
    }
  std::vector<CollectiveTotal> list;
  for (const auto& [key, total] : totals) list.push_back(total);
  return list;
}

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
inline std::vector<LayerTotal> by_layer(const Program& program) {
  const auto& layers = program.layers();
  std::vector<LayerTotal> totals(layers.size());
  for (const ProgramEntry& e : program.entries())
    for (int layer = e.layer; layer >= 0; layer = layers[static_cast<std::size_t>(layer)].parent) {
      LayerTotal& total = totals[static_cast<std::size_t>(layer)];
      ++total.operators;
      total.payload = saturating_add(total.payload, e.plan->own_payload_bytes());
      total.messages += e.plan->messages();
      total.flops = saturating_add(total.flops, e.plan->flops());
      total.duplicated = saturating_add(total.duplicated, Program::duplicated_flops(*e.plan));
      total.peak = max_of(total.peak, saturating_add(e.held_before, e.plan->peak_bytes));
      total.cost = saturating_add(total.cost, e.plan->cost);
    }
  std::vector<LayerTotal> list;
  const auto append = [&](const auto& self, int layer, int depth) -> void {
    LayerTotal total = totals[static_cast<std::size_t>(layer)];
    total.path = program.layer_path(layer);
    total.depth = depth;
    total.layer = layer;
    list.push_back(std::move(total));
    for (int i = layer + 1; i < static_cast<int>(layers.size()); ++i)
      if (layers[static_cast<std::size_t>(i)].parent == layer) self(self, i, depth + 1);
  };
  append(append, 0, 0);
  return list;
}

/// Work of one step that other processes do as well.
struct DuplicatedWork {
  int entry = 0;  ///< the operator
  int step = 0;
  Index copies = 1;  ///< processes that do the same
  Index flops = 0;   ///< of the step
  Index extra = 0;   ///< what this process would save if the work were split among them
};

/// Returns the steps with duplicated work, in order.
inline std::vector<DuplicatedWork> duplicated_work(const Program& program) {
  std::vector<DuplicatedWork> list;
  for (int i = 0; i < program.size(); ++i) {
    const Plan& plan = *program.entry(i).plan;
    for (int k = 0; k < plan.steps.size(); ++k) {
      const Index copies = Program::copies(plan, plan.steps[k]);
      const Index flops = plan.steps[k].flops;
      const Index extra = copies > 1 ? saturating_sub(flops, flops / copies) : 0;
      if (extra > 0) list.push_back({i, k, copies, flops, extra});
    }
  }
  return list;
}

}  // namespace tessera
