// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--experts", "16", "--languages=de,hu"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <string>
#include <vector>

#include "../support/flags.hpp"
#include "model.hpp"

namespace translation {

inline constexpr const char* usage =
    R"(Trains a Transformer with mixtures of experts to translate many languages into English, split over processes.

  python3 examples/translate/fetch.py && python3 examples/translate/prepare.py       # prints the folder of --ids
  mpiexec -n 4 translate --ids FOLDER [--flag VALUE]...

  --ids FOLDER        what prepare.py made; none: made languages
  --languages A,B     to learn; of one alone the model is a baseline of GShard's (all)
  --mesh DxM          processes that split data x model (near square)
  --split HOW         how the model is split: experts, or tensors too (experts)
  --layers N          of the encoder, and of the decoder (3)
  --width N           (128)                               --heads N   (4)
  --head-dim N        elements of a head (width / heads)
  --hidden N          width of a feed-forward layer and of an expert (512)
  --experts N         in every other layer; 0: none (0)   --k N       experts of a token (1)
  --capacity X        places of experts for a token; 0: as many as are chosen (1.25)
  --balance X         weight of the loss that balances experts (0.01)
  --tokens N          of a batch, padding too (2048)      --group N   of them compete for places of experts (512); let
                      the processes that split a batch divide the number of its groups
  --temperature X     a language's share is its text to the power of 1 / X (1)
  --steps N           (2000)                              --seed N    (1)
  --lr X              of Adafactor: over the square root of the step (1)
  --constant N        steps before that, at the rate of the last of them (10000)
  --dropout X         of inputs, residuals and attention (0.1)
  --smoothing X       of the targets (0)
  --save FILE         write weights, optimizer and step to FILE at the end, and on the way each
  --save-every N      steps (0: at the end alone)
  --resume FILE       go on from there, on any mesh, split in any way
  --log FILE          write step, tokens, seconds and losses to FILE.csv, and their curve to FILE.svg
  --measure N         steps between held-out losses in the log (200)
  --held-out N        sentences of a language and a length that are measured at the end, and as many of those it
                      learned from; on the way an eighth of them (256)
  --translate FILE    translate as many of what is held out, for score.py
  --beams N           hypotheses; 1: the likeliest token at each place (1)
  --dry               print the plan only, for a mesh of any size, on one process
  --help              print this
)";

struct Flags {
  std::string ids, split = "experts", save, resume, log, translate;
  std::vector<std::string> languages;
  support::MeshFlag mesh;
  Settings settings;
  BatchSizes batches;
  Index steps = 2000, save_every = 0, measure = 200, held_out = 256, beams = 1, constant = 10000;
  double rate = 1;
  bool dry = false, help = false;
};

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  Settings& n = flags.settings;
  std::string languages;
  support::FlagTable table;
  table.flag("--dry", flags.dry)
      .flag("--help", flags.help)
      .text("--ids", flags.ids)
      .text("--languages", languages)
      .mesh("--mesh", flags.mesh)
      .one_of("--split", flags.split, {"experts", "tensors"})
      .count("--layers", n.layers)
      .count("--width", n.width)
      .count("--heads", n.heads)
      .whole("--head-dim", n.head_dim)
      .count("--hidden", n.hidden)
      .whole("--experts", n.experts)
      .count("--k", n.k)
      .from_zero("--capacity", n.capacity)
      .from_zero("--balance", n.balance)
      .from_zero("--dropout", n.dropout)
      .from_zero("--smoothing", n.smoothing)
      .count("--tokens", flags.batches.tokens)
      .count("--group", flags.batches.group)
      .positive("--temperature", flags.batches.temperature)
      .whole("--seed", n.seed)
      .count("--steps", flags.steps)
      .positive("--lr", flags.rate)
      .count("--constant", flags.constant)
      .text("--save", flags.save)
      .whole("--save-every", flags.save_every)
      .text("--resume", flags.resume)
      .text("--log", flags.log)
      .count("--measure", flags.measure)
      .count("--held-out", flags.held_out)
      .text("--translate", flags.translate)
      .count("--beams", flags.beams);
  table.read(words);
  for (std::size_t i = 0; i < languages.size();) {
    const std::size_t end = std::min(languages.find(',', i), languages.size());
    flags.languages.push_back(languages.substr(i, end - i));
    i = end + 1;
  }
  flags.batches.seed = n.seed;
  if (!flags.languages.empty() && flags.ids.empty())
    throw UsageError("--languages " + languages +
                     ": made languages are all learned; name the folder of texts by --ids");
  if (n.experts > 0 && n.k > n.experts)
    throw UsageError("--k " + std::to_string(n.k) + ": a layer has " + std::to_string(n.experts) +
                     " experts; give at most as many");
  return flags;
}

}  // namespace translation
