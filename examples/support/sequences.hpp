// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sequences of letters, of a file.
///
///     for (const Sequence& one : read_sequences("--sequences", "antibodies.fasta")) use(one.name, one.letters);
#include <cctype>
#include <fstream>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>

namespace support {

using tessera::UsageError;

struct Sequence {
  std::string name, letters;
};

/// Returns the sequences of a file, which a flag named: FASTA, where a line begins with '>', else
/// one a line. Throws UsageError for a file that cannot be read or has none.
inline std::vector<Sequence> read_sequences(const std::string& flag, const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw UsageError(flag + ": " + path +
                     " cannot be read; give a file of lines of letters, or FASTA");
  std::vector<Sequence> all;
  bool fasta = false;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (line.empty()) continue;
    if (line[0] == '>') {
      fasta = true;
      all.push_back({line.substr(1), {}});
      continue;
    }
    if (fasta)
      all.back().letters += line;
    else
      all.push_back({"line " + std::to_string(all.size() + 1), line});
  }
  if (all.empty())
    throw UsageError(flag + ": " + path + " has no sequence; give a file with at least one");
  for (const Sequence& one : all)
    if (one.letters.empty())
      throw UsageError(flag + ": " + path + " has no letters after >" + one.name +
                       "; give at least one for each name");
  return all;
}

}  // namespace support
