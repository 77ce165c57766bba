// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The processor that figures are of.
///
///     context["processor"] = processor();
#include <fstream>
#include <string>

namespace tessera_bench {

/// Returns the processor's name as Linux says it.
inline std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  return "unknown";
}

}  // namespace tessera_bench
