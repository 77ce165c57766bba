// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a Program does, as a table by layer.
///
///     fmt::print("{}", by_layers(program));
#include <fmt/format.h>

#include <string>
#include <vector>

#include <tessera/program/summary.hpp>

namespace support {

using tessera::by_axes, tessera::by_layer, tessera::CollectiveTotal, tessera::LayerTotal,
    tessera::Program;

/// Returns a Program's sums by layer, blocks that are alike in one line, and its communication by
/// axes: the most on one process.
inline std::string by_layers(const Program& program) {
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
  return text;
}

}  // namespace support
