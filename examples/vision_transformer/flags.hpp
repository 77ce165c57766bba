// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the user asks for on the command line.
///
///     Flags flags = read_flags({"--images", "images", "--split=space"});
///
/// Laws: a flag that does not exist or a value that makes no sense is a UsageError that names it.
#include <string>
#include <vector>

#include "../support/flags.hpp"

namespace vision {

using tessera::Index;

inline constexpr const char* usage =
    R"(Trains a Vision Transformer to tell images apart, split over processes.

  mpiexec -n 4 vision_transformer --images FOLDER [--flag VALUE]...

  --images FOLDER     what to learn from, by examples/vision_transformer/fetch.py FOLDER
  --made              learn from images that the program makes
  --mesh DxM          processes that split data x model (near square)
  --split HOW         how the model is split: batch, tensors, shards or space, which divides each image by
                      rows (batch)
  --patch N           pixels of a patch's side (4)        --pool HOW  token or mean (token)
  --embed N           width of the model (64)             --layers N  (4)
  --heads N           of attention (4)                    --hidden N  of a feed-forward layer (128)
  --batch N           images a step (64)                  --steps N   (1000)
  --lr X              largest learning rate (0.002)       --decay X   of the weights (0.05)
  --dropout X         (0)                                 --smoothing X  of classes (0.1)
  --seed N            (1)
  --dry               print the plan only, for a mesh of any size, on one process
  --help              print this
)";

struct Flags {
  std::string images, split = "batch", pool = "token";
  support::MeshFlag mesh;
  Index patch = 4, embed = 64, layers = 4, heads = 4, hidden = 128, batch = 64, steps = 1000;
  double rate = 2e-3, decay = 0.05, dropout = 0, smoothing = 0.1;
  std::uint64_t seed = 1;
  bool made = false, dry = false, help = false;
};

inline Flags read_flags(const std::vector<std::string>& words) {
  Flags flags;
  support::FlagTable table;
  table.flag("--made", flags.made)
      .flag("--dry", flags.dry)
      .flag("--help", flags.help)
      .text("--images", flags.images)
      .count("--patch", flags.patch)
      .count("--embed", flags.embed)
      .count("--layers", flags.layers)
      .count("--heads", flags.heads)
      .count("--hidden", flags.hidden)
      .count("--batch", flags.batch)
      .count("--steps", flags.steps)
      .positive("--lr", flags.rate)
      .from_zero("--decay", flags.decay)
      .from_zero("--dropout", flags.dropout)
      .from_zero("--smoothing", flags.smoothing)
      .whole("--seed", flags.seed)
      .one_of("--pool", flags.pool, {"token", "mean"})
      .one_of("--split", flags.split, {"batch", "tensors", "shards", "space"})
      .mesh("--mesh", flags.mesh);
  table.read(words);
  if (!flags.help && flags.made != flags.images.empty())
    throw tessera::UsageError(
        flags.made ? "--images and --made say twice what to learn from; give one of them"
                   : "--images is not given, and there is nothing to learn from; give the folder "
                     "that examples/vision_transformer/fetch.py makes, or --made");
  return flags;
}

}  // namespace vision
