// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is said about a batch before it runs: its sums by layer, and what a block sends.
///
///     fmt::print("{}{}", describe(program), calls_of(program, "block 0"));
///     fmt::print("{}", of_first_block(parameter_table(model)));
#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include <tessera/nn/parameter_table.hpp>
#include <tessera/program/summary.hpp>

#include "model.hpp"

namespace protein_encoder {

/// Returns a Program's sums by layer, blocks that are alike in one line, and its communication by
/// axes: the most on one process.
inline std::string describe(const Program& program) {
  std::string text =
      fmt::format("  {:<20} {:>9} {:>12} {:>14}\n", "layer", "operators", "payload", "flops");
  const std::vector<LayerTotal> layers = by_layer(program);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerTotal& first = layers[i];
    if (first.depth > 1) continue;
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1].depth == first.depth &&
           layers[last + 1].operators == first.operators &&
           layers[last + 1].payload == first.payload && layers[last + 1].flops == first.flops)
      ++last;
    std::string name = first.depth == 0 ? "all" : "  " + first.path;
    if (last > i) name += ", " + std::to_string(last - i + 1) + " times";
    text += fmt::format("  {:<20} {:>9} {:>8} KiB {:>10} Mfl\n", name, first.operators,
                        first.payload >> 10, first.flops / 1000000);
    i = last;
  }
  for (const CollectiveTotal& total : by_axes(program))
    text +=
        fmt::format("  {} over {}: {} KiB in {} messages\n", name_of(total.collective),
                    to_string(total.axes, program.names()), total.payload >> 10, total.messages);
  return text +
         fmt::format("  peak with the weights {} KiB a process\n", program.peak_bytes() >> 10);
}

/// Returns the table as text, without the blocks after the first, which are like it.
inline std::string of_first_block(const ParameterTable& table) {
  std::istringstream all(to_string(table));
  std::string text;
  for (std::string line; std::getline(all, line);)
    if (!line.starts_with("  blocks.") || line.starts_with("  blocks.0.")) text += line + "\n";
  return text;
}

/// Returns the calls of a layer in their order: the operator, the collective, its axes, bytes.
inline std::string calls_of(const Program& program, const std::string& layer) {
  std::string text;
  for (const ProgramEntry& entry : program.entries()) {
    if (program.layers()[static_cast<std::size_t>(entry.layer)].name != layer) continue;
    for (const Step& step : entry.plan->steps)
      if (step.communicates())
        text += fmt::format("  {:<20} {:<16} over {:<12} {:>10} KiB\n", entry.label,
                            name_of(step.collective), to_string(step.group, program.names()),
                            step.payload >> 10);
  }
  return text.empty() ? "  nothing\n" : text;
}

}  // namespace protein_encoder
