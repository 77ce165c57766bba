// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--sequences", "antibodies/learn.fasta", "--split=tensors"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <string>
#include <vector>

#include "../protein_encoder/model.hpp"
#include "../support/flags.hpp"

namespace train_protein_encoder {

using namespace protein_encoder;

inline constexpr const char* usage =
    R"(Trains ESM2's architecture to find the masked letters of protein sequences, split over processes.

  python3 examples/train_protein_encoder/fetch.py antibodies
  mpiexec -n 2 train_protein_encoder --sequences antibodies/learn.fasta --held-out antibodies/held_out.fasta [--flag VALUE]...

  --sequences FILE    FASTA, or one sequence a line
  --held-out FILE     to be measured; none: each twentieth sequence of the other file
  --made              learn from sequences that the program makes
  --mesh DxM          processes that split data x model (near square)
  --split HOW         how the model is split: batch, tensors, two (2D finalized), shards or sequence (batch)
  --layers N (4)      --embed N (128)  --heads N (8)  --hidden N (512)     sizes
  --length N          places of a row; of a longer sequence a part is drawn (the longest sequence's)
  --batch N           rows a step (32)                    --steps N   (500)
  --lr X              largest learning rate (0.002)       --decay X   of the weights (0.01)
  --dropout X         of inputs, residuals and attention (0)
  --token-dropout on  scale what is not masked, as ESM2 does: on or off (on)
  --seed N            (1)
  --measured N        held-out sequences that are measured (512)
  --measure N         steps between measures in the log (100)
  --log FILE          write losses to FILE.csv, and their curves to FILE.svg
  --save FILE         write weights, optimizer and step to FILE at the end, and on the way each
  --save-every N      steps (0: at the end alone)
  --resume FILE       go on from there, on any mesh, split in any way
  --out FILE          write the weights to FILE, for protein_encoder --weights
  --dry               print the parameters and the plan only, for a mesh of any size, on one process
  --help              print this
)";

struct Flags {
  std::string sequences, held_out, split = "batch", token_dropout = "on", log, save, resume, out;
  support::MeshFlag mesh;
  EncoderSizes sizes{.embed = 128, .heads = 8, .hidden = 512, .layers = 4};
  Index length = 0, batch = 32, steps = 500, measured = 512, measure = 100, save_every = 0;
  double rate = 2e-3, decay = 0.01, dropout = 0;
  std::uint64_t seed = 1;
  bool made = false, dry = false, help = false;
};

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  support::FlagTable table;
  table.flag("--made", flags.made)
      .flag("--dry", flags.dry)
      .flag("--help", flags.help)
      .text("--sequences", flags.sequences)
      .text("--held-out", flags.held_out)
      .text("--log", flags.log)
      .text("--save", flags.save)
      .text("--resume", flags.resume)
      .text("--out", flags.out)
      .count("--layers", flags.sizes.layers)
      .count("--embed", flags.sizes.embed)
      .count("--heads", flags.sizes.heads)
      .count("--hidden", flags.sizes.hidden)
      .count("--length", flags.length)
      .count("--batch", flags.batch)
      .count("--steps", flags.steps)
      .count("--measured", flags.measured)
      .count("--measure", flags.measure)
      .whole("--save-every", flags.save_every)
      .positive("--lr", flags.rate)
      .from_zero("--decay", flags.decay)
      .from_zero("--dropout", flags.dropout)
      .whole("--seed", flags.seed)
      .one_of("--token-dropout", flags.token_dropout, {"on", "off"})
      .one_of("--split", flags.split, {"batch", "tensors", "two", "shards", "sequence"})
      .mesh("--mesh", flags.mesh);
  table.read(words);
  if (flags.help) return flags;
  if (flags.made != flags.sequences.empty())
    throw UsageError(flags.made ? "--sequences and --made say twice what to learn from; give one "
                                  "of them"
                                : "--sequences is not given, and there is nothing to learn from; "
                                  "give the file that examples/train_protein_encoder/fetch.py "
                                  "makes, or --made");
  if (flags.made && !flags.held_out.empty())
    throw UsageError(
        "--held-out is given beside --made, which makes sequences of its own; leave "
        "one of them out");
  return flags;
}

}  // namespace train_protein_encoder
