// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The models of GShard's Table 1 by the sizes of its appendix A.2, as trees of parameters on paper:
// how many weights they have, and how many bytes of them a process keeps.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {

struct experts;
/// Experts over all processes, all other weights on each of them (section 3.3, figure 5).
using Split = LayerRules<AxisRule<logical::batch, data>, AxisRule<experts, data>>;
using U = Under<float, Grid, Split>;
using Experts = ExpertWeights<U::Tensor<logical::norm, _>, U::Tensor<experts, _, logical::hidden>,
                              U::Tensor<experts, logical::hidden, _>>;

struct Sizes {
  Index layers, experts;
  Index embed = 1024, hidden = 8192, heads = 16, head_dim = 128, source = 64000, target = 32000;
};

/// Attention, in a decoder to the source too, and a feed-forward layer or, in every other layer,
/// experts.
struct Block {
  std::vector<LayerNorm<U>> norms;
  std::vector<Attention<U>> attentions;
  std::vector<FeedForward<U>> dense;
  std::vector<Experts> mixture;
  static constexpr auto fields =
      Fields<&Block::norms, &Block::attentions, &Block::dense, &Block::mixture>{};

  static Block like(Parameters<Grid>& make, const Sizes& n, bool decodes, bool mixes) {
    Block block;
    for (int i = 0; i < (decodes ? 3 : 2); ++i)
      block.norms.push_back(LayerNorm<U>::like(make, n.embed));
    for (int i = 0; i < (decodes ? 2 : 1); ++i)
      block.attentions.push_back(
          Attention<U>::like(make, {.embed = n.embed, .heads = n.heads, .head_dim = n.head_dim}));
    if (!mixes) {
      block.dense.push_back(FeedForward<U>::like(make, n.embed, n.hidden));
      return block;
    }
    const auto fan_in = Initializer::fan_in(n.embed);
    Experts e;
    e.gate = make.tensor<decltype(Experts::gate)>({n.embed, n.experts}, fan_in);
    e.in = make.tensor<decltype(Experts::in)>({n.experts, n.embed, n.hidden}, fan_in);
    e.out = make.tensor<decltype(Experts::out)>({n.experts, n.hidden, n.embed}, fan_in);
    block.mixture.push_back(std::move(e));
    return block;
  }
};
struct Translator {
  Embedding<U> source, target;
  std::vector<Block> encoder, decoder;
  Dense<U, logical::embed, logical::vocabulary> head;
  static constexpr auto fields =
      Fields<&Translator::source, &Translator::target, &Translator::encoder, &Translator::decoder,
             &Translator::head>{};

  static Translator like(Parameters<Grid>& make, const Sizes& n) {
    Translator model;
    model.source = Embedding<U>::like(make, n.source, n.embed);
    model.target = Embedding<U>::like(make, n.target, n.embed);
    for (Index l = 0; l < n.layers / 2; ++l) {
      model.encoder.push_back(Block::like(make, n, false, l % 2 == 1));
      model.decoder.push_back(Block::like(make, n, true, l % 2 == 1));
    }
    model.head = Dense<U, logical::embed, logical::vocabulary>::like(make, n.embed, n.target);
    return model;
  }
};

struct Counted {
  Index weights, bytes, bytes_of_experts;
};
Counted count(const Sizes& n, Index processes) {
  const auto mesh = dry_mesh<Grid>(static_cast<int>(processes), 1);
  Parameters<Grid> make(mesh, 1);
  const ParameterTable table = parameter_table(Translator::like(make, n));
  Counted made{table.elements(), table.bytes(), 0};
  for (const ParameterRow& row : table.rows)
    if (row.desc.rank() == 3 && row.desc.extents[0] == n.experts)
      made.bytes_of_experts += row.bytes;
  return made;
}
/// Three figures, as the table prints them.
double rounded(Index weights) {
  const double billions = static_cast<double>(weights) * 1e-9;
  const double unit = std::pow(10.0, std::floor(std::log10(billions)) - 2);
  return std::round(billions / unit) * unit;
}
}  // namespace

TEST_CASE("the weights of GShard's Table 1, by the sizes of its appendix A.2") {
  // The table prints 12.5, 37, 600 billion and a trillion for these; its sizes come to more.
  struct Row {
    Sizes sizes;
    double billions;
  };
  for (const Row& row :
       {Row{{.layers = 12, .experts = 128}, 13.3}, Row{{.layers = 36, .experts = 128}, 39.5},
        Row{{.layers = 36, .experts = 2048}, 619}, Row{{.layers = 60, .experts = 2048}, 1030}}) {
    CAPTURE(row.sizes.layers);
    CAPTURE(row.sizes.experts);
    const Counted all = count(row.sizes, row.sizes.experts);
    CHECK(rounded(all.weights) == doctest::Approx(row.billions));
    // A process keeps one expert of each mixture, and all other weights; in float.
    const Index expert = row.sizes.layers / 2 * 2 * 1024 * 8192;
    CHECK(all.bytes_of_experts == expert * 4);
    CHECK(all.bytes - all.bytes_of_experts == (all.weights - row.sizes.experts * expert) * 4);
  }
}

TEST_CASE("a process's weights stay as experts and processes grow together") {
  const Counted few = count({.layers = 36, .experts = 128}, 128);
  for (const Index n : {512, 2048}) {
    const Counted many = count({.layers = 36, .experts = n}, n);
    CHECK(many.bytes_of_experts == few.bytes_of_experts);
    // What grows beside them are the gates, (M, E).
    CHECK(many.bytes - few.bytes == 18 * 1024 * (n - 128) * 4);
  }
}
