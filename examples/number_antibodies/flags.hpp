// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--weights", "anarcii_accuracy.safetensors", "--split=tensors"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <string>
#include <vector>

#include "../support/flags.hpp"

namespace number_antibodies {

inline constexpr const char* usage =
    R"(Numbers the residues of antibodies' chains by IMGT's scheme, as anarcii 2.0.8 does, by its weights, split over processes.

  python3 examples/number_antibodies/fetch.py accuracy weights
  mpiexec -n 4 number_antibodies --weights weights/anarcii_accuracy.safetensors --sequences chains.fasta [--flag VALUE]...

  --weights FILE      the model, as fetch.py makes it; none: a small one with random weights
  --sequences FILE    FASTA, or one sequence a line, in large letters; '-', '/' and '\' stand between two chains (four chains)
  --mesh DxM          processes that split data x model (near square)
  --split HOW         how the model is split: batch, tensors, shards or places (batch)
  --batch N           sequences at a time (64)
  --out FILE          write the numbers, as comma-separated values
  --failures FILE     write which sequences have none, and why
  --help              print this
)";

struct Flags {
  std::string weights, sequences, split = "batch", out, failures;
  support::MeshFlag mesh;
  tessera::Index batch = 64;
  bool help = false;
};

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  support::FlagTable table;
  table.flag("--help", flags.help)
      .count("--batch", flags.batch)
      .text("--weights", flags.weights)
      .text("--sequences", flags.sequences)
      .text("--out", flags.out)
      .text("--failures", flags.failures)
      .one_of("--split", flags.split, {"batch", "tensors", "shards", "places"})
      .mesh("--mesh", flags.mesh);
  table.read(words);
  return flags;
}

}  // namespace number_antibodies
