// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is said about a batch before it runs: what a block sends, and which parameters there are.
///
///     fmt::print("{}", calls_of(program, "block 0"));
///     fmt::print("{}", of_first_block(parameter_table(model)));
#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include <tessera/nn/parameter_table.hpp>
#include <tessera/program/summary.hpp>

#include "model.hpp"

namespace protein_encoder {

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
