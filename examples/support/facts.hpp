// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Numbers among the facts that a checkpoint has beside its tensors.
///
///     Index step = number_of(facts, "step", "run.safetensors", "give a file that --save has written");
#include <charconv>
#include <string>

#include <tessera/io/checkpoint.hpp>

namespace support {

using tessera::CheckpointFacts, tessera::Index, tessera::UsageError;

/// Returns a number among the facts of a file. Throws UsageError where there is none, with the
/// words that end the sentence.
inline Index number_of(const CheckpointFacts& facts, const std::string& name,
                       const std::string& path, const std::string& way_out) {
  const auto said = facts.find(name);
  Index number = 0;
  if (said == facts.end() ||
      std::from_chars(said->second.data(), said->second.data() + said->second.size(), number).ec !=
          std::errc{})
    throw UsageError(path + " does not say its " + name + "; " + way_out);
  return number;
}

}  // namespace support
