// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--mesh", "2x2", "--split=tensors"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <string>
#include <vector>

#include "../support/flags.hpp"
#include "model.hpp"

namespace train_transformer {

inline constexpr const char* usage =
    R"(Trains a Transformer, with a mixture of experts in every other layer, on text, split over processes.

  mpiexec -n 4 train_transformer [--flag VALUE]...

  --text FILE|FOLDER  what to learn from (/usr/share/common-licenses); a part is held out
  --mesh DxM          processes that split data x model (near square)
  --split HOW         how the model is split: batch, tensors or shards; chosen: as one of them, and what a step
                      makes between its weights as sends least (batch)
  --stages N          parts of the layers, each on processes of its own, of which --mesh names those of
                      one part; micro-batches go through them (0: all layers on all processes)
  --schedule HOW      gpipe, 1f1b, interleaved, zero-bubble, zero-bubble-v, or a file with a line for each
                      part, such as 0F0,0F1,0B0,0B1 (1f1b). A part has one stage, of zero-bubble-v two, and of
                      interleaved as many as --mesh leaves processes for (two without it)
  --micro-batches N   of which a batch consists (four for each part, at most its rows)
  --update HOW        who updates a weight that several have: replicated, sharded or cheapest (cheapest)
  --context N         characters the model sees (64)      --embed N   width of the model (128)
  --heads N           of attention (4)                    --layers N  (2)
  --hidden N          width of an expert; half of a feed-forward layer's (384)
  --experts N         of every other layer; 0: none (4)   --capacity X  of an expert (1.25)
  --block N           keys of attention at a time, without all scores in memory (0: all at once)
  --memory N          MiB that a step may hold beside weights and optimizer; layers run again for it (0: any)
  --batch N           rows of characters a step (8)       --steps N   (1300)
  --lr X              largest learning rate (0.005)       --decay X   of the weights (0.05)
  --clip X            largest norm of the gradients (1)   --dropout X (0)
  --sample N          characters to write at the end (300)
  --seed N            (1)
  --save FILE         write weights, optimizer and step to FILE at the end, and on the way each
  --save-every N      steps (0: at the end alone)
  --resume FILE       go on from there, on any mesh, split in any way
  --log FILE          write step, seconds and losses to FILE.csv, and their curve to FILE.svg
  --measure N         steps between held-out losses in the log (100)
  --trace FILE        write when what ran in the last three steps, for ui.perfetto.dev
  --eager             run each operator as it is called, in place of compiled steps
  --dry               print the plan only, for a mesh of any size, on one process
  --help              print this
)";

struct Flags {
  std::string text = "/usr/share/common-licenses", split = "batch", update = "cheapest";
  std::string save, resume, log, trace;
  support::MeshFlag mesh;
  Sizes sizes;
  std::string schedule = "1f1b";
  Index stages = 0, micro_batches = 0;  ///< 0: none; as the schedule likes
  Index steps = 1300, sample = 300, save_every = 0, measure = 100, memory = 0;
  double rate = 5e-3, decay = 0.05, clip = 1;
  bool eager = false, dry = false, help = false;
};

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  Sizes& n = flags.sizes;
  support::FlagTable table;
  table.flag("--eager", flags.eager)
      .flag("--dry", flags.dry)
      .flag("--help", flags.help)
      .count("--context", n.context)
      .count("--embed", n.embed)
      .count("--heads", n.heads)
      .count("--hidden", n.hidden)
      .count("--layers", n.layers)
      .whole("--experts", n.experts)
      .whole("--block", n.block)
      .whole("--memory", flags.memory)
      .count("--batch", n.batch)
      .positive("--capacity", n.capacity)
      .from_zero("--dropout", n.dropout)
      .whole("--seed", n.seed)
      .count("--steps", flags.steps)
      .whole("--sample", flags.sample)
      .whole("--save-every", flags.save_every)
      .count("--measure", flags.measure)
      .positive("--lr", flags.rate)
      .from_zero("--decay", flags.decay)
      .from_zero("--clip", flags.clip)
      .whole("--stages", flags.stages)
      .count("--micro-batches", flags.micro_batches)
      .text("--schedule", flags.schedule)
      .text("--text", flags.text)
      .text("--save", flags.save)
      .text("--resume", flags.resume)
      .text("--log", flags.log)
      .text("--trace", flags.trace)
      .one_of("--split", flags.split, {"batch", "tensors", "shards", "chosen"})
      .one_of("--update", flags.update, {"replicated", "sharded", "cheapest"})
      .mesh("--mesh", flags.mesh);
  table.read(words);
  const auto refuse = [](const std::string& why) { throw tessera::UsageError(why); };
  if (flags.stages > 1000)
    refuse("--stages is given " + std::to_string(flags.stages) + "; give at most 1000");
  if (flags.stages == 0 && (flags.micro_batches > 0 || flags.schedule != "1f1b"))
    refuse(
        "--schedule and --micro-batches say how a batch goes through stages, and there are none; "
        "give --stages too");
  if (flags.stages > 0 && flags.split == "chosen")
    refuse(
        "--split chosen chooses the shardings of a step on one mesh, and --stages divides it among "
        "parts; give batch, tensors or shards");
  if (flags.stages > 0 && flags.memory > 0)
    refuse(
        "--memory chooses layers of a step on one mesh, and --stages divides it among parts; give "
        "more stages, or a schedule that holds fewer micro-batches");
  return flags;
}

}  // namespace train_transformer
