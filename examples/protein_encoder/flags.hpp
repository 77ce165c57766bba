// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--weights", "antiberty.safetensors", "--split=tensors"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <string>
#include <vector>

#include "../support/flags.hpp"
#include "model.hpp"

namespace protein_encoder {

inline constexpr const char* usage =
    R"(Gives the states of protein sequences by an encoder, and the letters that may stand where '_' does, split over processes.

  python3 examples/protein_encoder/fetch.py antiberty weights
  mpiexec -n 4 protein_encoder --weights weights/antiberty.safetensors [--flag VALUE]...

  --weights FILE      the encoder, as fetch.py makes it; none: ESM2's architecture with random weights
  --sequences FILE    FASTA, or one sequence a line; '_' is a letter to be found (four antibodies' chains)
  --ids FILE          in their place one sequence a line as numbers of its words, without those that begin and end it
  --mesh DxM          processes that split data x model (near square)
  --split HOW         how the encoder is split: batch, tensors, two (2D finalized), shards or sequence (batch)
  --batch N           rows at a time (32), of one sequence each
  --pack N            several sequences in a row, which then has N places; the results are the same, to rounding
  --out FILE          write the mean of each sequence's last states, (sequences, width), to FILE, an npy
  --found FILE        write the words' probabilities at each '_', (places, words), to FILE, an npy
  --states FILE       write all states, (layers + 1, sequences, places, width), to FILE, an npy; zero after an end
  --trace FILE        write when what ran in the last batch, for ui.perfetto.dev
  --layers N (2)      --embed N (64)  --heads N (4)  --hidden N (128)      sizes, only without --weights
  --length N          letters of a sequence of the plan, with --dry (512)
  --dry               print the parameters and the plan only, for a mesh of any size, on one process
  --help              print this
)";

struct Flags {
  std::string weights, sequences, ids, split = "batch", out, found, states, trace;
  support::MeshFlag mesh;
  EncoderSizes sizes{.embed = 64, .heads = 4, .hidden = 128, .layers = 2};
  Index batch = 32, length = 512, pack = 0;
  bool dry = false, help = false;
};

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  support::FlagTable table;
  table.flag("--dry", flags.dry)
      .flag("--help", flags.help)
      .count("--layers", flags.sizes.layers)
      .count("--embed", flags.sizes.embed)
      .count("--heads", flags.sizes.heads)
      .count("--hidden", flags.sizes.hidden)
      .count("--length", flags.length)
      .count("--batch", flags.batch)
      .count("--pack", flags.pack)
      .text("--weights", flags.weights)
      .text("--sequences", flags.sequences)
      .text("--ids", flags.ids)
      .text("--out", flags.out)
      .text("--found", flags.found)
      .text("--states", flags.states)
      .text("--trace", flags.trace)
      .one_of("--split", flags.split, {"batch", "tensors", "two", "shards", "sequence"})
      .mesh("--mesh", flags.mesh);
  table.read(words);
  const EncoderSizes &own = flags.sizes, usual = Flags{}.sizes;
  if (!flags.weights.empty() && (own.layers != usual.layers || own.embed != usual.embed ||
                                 own.heads != usual.heads || own.hidden != usual.hidden))
    throw UsageError("--layers, --embed, --heads and --hidden are given beside --weights " +
                     flags.weights + ", whose encoder has its own; leave these or that out");
  if (!flags.ids.empty() && !flags.sequences.empty())
    throw UsageError("--ids " + flags.ids + " is given beside --sequences " + flags.sequences +
                     "; give the sequences as numbers or as letters");
  return flags;
}

}  // namespace protein_encoder
