// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--mesh", "2x2", "--steps=100"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <string>
#include <vector>

#include "../support/flags.hpp"
#include "model.hpp"

namespace gradients_by_hand {

inline constexpr const char* usage =
    R"(Trains a next-character model on text, split over a mesh of processes.

  mpiexec -n 4 08_gradients_by_hand [--flag VALUE]...

  --text FILE|FOLDER  what to learn from (/usr/share/common-licenses); a part is held out
  --mesh DxM          processes that split the batch x processes that split the model (near square)
  --context N         characters the model sees (12)      --embed N   width of the model (128)
  --hidden N          width of its hidden layers (512)    --layers N  feed-forward layers (2)
  --batch N           characters predicted a step (512)   --steps N   (1500)
  --lr X              largest learning rate (0.002)       --decay X   of the weights (0.05)
  --sample N          characters to write at the end (300)
  --seed N            (1)
  --double            compute in double precision
  --compiled          list the operators of a step first, and run them together
  --trace FILE        write when what ran in the last three steps, for ui.perfetto.dev
  --dry               print the plan only, for a mesh of any size, on one process
  --help              print this
)";

struct Flags {
  std::string text = "/usr/share/common-licenses", trace;
  support::MeshFlag mesh;
  Sizes sizes;
  Index steps = 1500, sample = 300;
  std::uint64_t seed = 1;
  double rate = 2e-3, decay = 0.05;
  bool in_double = false, compiled = false, dry = false, help = false;
};

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  Sizes& n = flags.sizes;
  support::FlagTable table;
  table.flag("--double", flags.in_double)
      .flag("--compiled", flags.compiled)
      .flag("--dry", flags.dry)
      .flag("--help", flags.help)
      .count("--context", n.context)
      .count("--embed", n.embed)
      .count("--hidden", n.hidden)
      .count("--layers", n.layers)
      .count("--batch", n.batch)
      .count("--steps", flags.steps)
      .whole("--sample", flags.sample)
      .whole("--seed", flags.seed)
      .positive("--lr", flags.rate)
      .from_zero("--decay", flags.decay)
      .text("--text", flags.text)
      .text("--trace", flags.trace)
      .mesh("--mesh", flags.mesh);
  table.read(words);
  return flags;
}

}  // namespace gradients_by_hand
