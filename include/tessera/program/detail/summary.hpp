// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a Program is summed up.
///
///     by_axes(program)
///
/// Laws: those of program/summary.hpp.
#include <map>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/summary.hpp>

namespace tessera {

TESSERA_FUNCTION std::vector<CollectiveTotal> by_axes(const Program& program) {
  std::map<std::pair<std::uint32_t, Collective>, CollectiveTotal> totals;
  for (const ProgramEntry& e : program.entries())
    for (const Step& s : e.plan->steps) {
      if (!s.communicates()) continue;
      const AxisSet axes = program.axes_on(e.part, s.group);
      CollectiveTotal& total = totals[{axes.bits, s.collective}];
      total.axes = axes;
      total.collective = s.collective;
      if (!program.takes_part(e)) continue;
      ++total.steps;
      total.messages += s.messages;
      total.payload = detail::saturating_add(total.payload, s.payload);
      total.network_payload = detail::saturating_add(total.network_payload, s.network_payload);
      total.cost = detail::saturating_add(total.cost, s.cost);
    }
  std::vector<CollectiveTotal> list;
  for (const auto& [key, total] : totals) list.push_back(total);
  return list;
}

TESSERA_FUNCTION std::vector<LayerTotal> by_layer(const Program& program) {
  const auto& layers = program.layers();
  std::vector<LayerTotal> totals(layers.size());
  for (const ProgramEntry& e : program.entries())
    for (int layer = e.layer; layer >= 0; layer = layers[static_cast<std::size_t>(layer)].parent) {
      LayerTotal& total = totals[static_cast<std::size_t>(layer)];
      ++total.operators;
      if (!program.takes_part(e)) continue;
      total.payload = detail::saturating_add(total.payload, e.plan->own_payload_bytes());
      total.messages += e.plan->messages();
      total.flops = detail::saturating_add(total.flops, e.plan->flops());
      total.duplicated =
          detail::saturating_add(total.duplicated, Program::duplicated_flops(*e.plan));
      total.peak = max_of(total.peak, detail::saturating_add(e.held_before, e.plan->peak_bytes));
      total.cost = detail::saturating_add(total.cost, e.plan->cost);
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

TESSERA_FUNCTION std::vector<DuplicatedWork> duplicated_work(const Program& program) {
  std::vector<DuplicatedWork> list;
  for (int i = 0; i < program.size(); ++i) {
    const Plan& plan = *program.entry(i).plan;
    for (int k = 0; k < plan.steps.size(); ++k) {
      const Index copies = Program::copies(plan, plan.steps[k]);
      const Index flops = plan.steps[k].flops;
      const Index extra = copies > 1 ? detail::saturating_sub(flops, flops / copies) : 0;
      if (extra > 0) list.push_back({i, k, copies, flops, extra});
    }
  }
  return list;
}

}  // namespace tessera
