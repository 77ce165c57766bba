// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The model: a decoder-only Transformer with a mixture of experts in every other layer (GShard,
/// section 3.1), written once. How it is split is a list of rules and nothing else.
///
///     using Here = Under<float, Grid, Split<by::Tensors>>;
///     auto model = Model<Here>::like(make, sizes);
///     auto [objective, nats] = losses(model, ids, next, sizes, step);      // scalars
///
/// Laws: the same numbers under all rules and on every mesh, to rounding.
#include <cstdint>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

namespace train_transformer {

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
using Id = std::int32_t;

/// The meaning of a dimension that the library's layers do not have.
struct experts;

/// Ways to split the model over data x model.
namespace by {
using namespace logical;
/// Everybody has all weights but experts, of which each has some, and a part of the batch.
using Batch = LayerRules<AxisRule<batch, Axes<data, model>>, AxisRule<experts, Axes<data, model>>>;
/// Heads, hidden elements and the vocabulary over `model` (Megatron-LM), experts over `data`.
using Tensors = LayerRules<AxisRule<batch, data>, AxisRule<groups, model>, AxisRule<hidden, model>,
                           AxisRule<vocabulary, model>, AxisRule<experts, data>>;
/// Every weight over all processes, gathered where it is used (ZeRO, stage 3).
using Shards = LayerRules<AxisRule<batch, Axes<data, model>>, AxisRule<experts, Axes<data, model>>,
                          AxisRule<embed, Axes<data, model>>>;
}  // namespace by

struct Sizes {
  Index vocabulary = 96, context = 64, embed = 128, heads = 4, hidden = 384, layers = 2,
        experts = 4, batch = 8;
  Index block = 0;  ///< keys of attention at a time; 0: all
  double capacity = 1.25, dropout = 0, auxiliary = 0.01;
  std::uint64_t seed = 1;
  std::vector<Recompute> again = {};  ///< layers that run again on the way back, to keep less
};

/// Experts of a layer: gate (embed, experts), in (experts, embed, hidden), out (experts, hidden,
/// embed).
template <class U>
using Experts =
    ExpertWeights<typename U::template Tensor<logical::norm, _>,
                  typename U::template Tensor<experts, logical::embed, logical::hidden>,
                  typename U::template Tensor<experts, logical::hidden, logical::embed>>;

/// x + attention(norm(x)), and then x + second(norm(x)): a feed-forward layer of twice the hidden
/// elements, or experts, of which each token uses two.
template <class U> struct Block {
  LayerNorm<U> attention_norm;
  Attention<U> attention;
  LayerNorm<U> second_norm;
  std::variant<FeedForward<U>, Experts<U>> second;
  static constexpr auto fields =
      Fields<&Block::attention_norm, &Block::attention, &Block::second_norm, &Block::second>{};

  static Block like(Parameters<Grid>& make, const Sizes& n, bool with_experts) {
    Block block;
    block.attention_norm = LayerNorm<U>::like(make, n.embed);
    block.attention = Attention<U>::like(make, {.embed = n.embed, .heads = n.heads});
    block.second_norm = LayerNorm<U>::like(make, n.embed);
    if (!with_experts) {
      block.second = FeedForward<U>::like(make, n.embed, 2 * n.hidden);
      return block;
    }
    using E = Experts<U>;
    E weights;
    weights.gate =
        make.tensor<decltype(E::gate)>({n.embed, n.experts}, Initializer::fan_in(n.embed));
    weights.in =
        make.tensor<decltype(E::in)>({n.experts, n.embed, n.hidden}, Initializer::fan_in(n.embed));
    weights.out = make.tensor<decltype(E::out)>({n.experts, n.hidden, n.embed},
                                                Initializer::fan_in(n.hidden));
    block.second = std::move(weights);
    return block;
  }
};

template <class U> struct Model {
  Embedding<U> table;
  Embedding<U, logical::positions> positions;
  std::vector<Block<U>> blocks;
  LayerNorm<U> norm;
  Dense<U, logical::embed, logical::vocabulary> head;
  static constexpr auto fields =
      Fields<&Model::table, &Model::positions, &Model::blocks, &Model::norm, &Model::head>{};

  static Model like(Parameters<Grid>& make, const Sizes& n) {
    Model model;
    model.table = Embedding<U>::like(make, n.vocabulary, n.embed, 0.1);
    model.positions = Embedding<U, logical::positions>::like(make, n.context, n.embed, 0.1);
    for (Index l = 0; l < n.layers; ++l)
      model.blocks.push_back(Block<U>::like(make, n, n.experts > 0 && l % 2 == 1));
    model.norm = LayerNorm<U>::like(make, n.embed);
    model.head = Dense<U, logical::embed, logical::vocabulary>::like(make, n.embed, n.vocabulary);
    return model;
  }
};

/// Whether, and at which step, elements are dropped and second experts drawn; none: not in
/// training. Rows that are a part of a batch say which of its rows is their first.
struct Turn {
  Index step = 0;
  bool training = true;
  Index first_row = 0;
  Index first_place = 0;  ///< of the tokens in their texts, where these are read on
};

template <class U>
using Activations = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
template <class U> using Ids = typename U::template Of<Id, logical::batch, logical::sequence>;
template <class U> using Scalar = typename U::template Tensor<>;

inline Dropout dropout_of(const Sizes& n, const Turn& turn) {
  return {turn.training ? n.dropout : 0, n.seed, static_cast<std::uint64_t>(turn.step),
          turn.first_row};
}

/// Looks at where tokens go, and sees nothing.
struct Unseen {
  template <class Gating> void operator()(const Gating&) const {}
};

/// Returns x after a block, and the auxiliary loss of its experts where it has any. x is (batch,
/// context, embed); a row of the batch is a group of tokens. attend(layer, seen, dropout) is the
/// block's attention; see(gating) is called for experts.
template <class U, class Attend, class See>
std::tuple<Activations<U>, std::optional<Scalar<U>>> after_block(
    const Block<U>& block, const Activations<U>& x, const Sizes& n, const Turn& turn,
    std::uint64_t number, const Attend& attend, const See& see) {
  using X = Activations<U>;
  const Dropout drop = dropout_of(n, turn).at(number);
  const auto seen = layer_norm(block.attention_norm, x);
  const X first = x + dropout(attend(block.attention, seen, drop.at(0)), drop.at(1));
  const X given = layer_norm(block.second_norm, first);
  if (const auto* dense = std::get_if<FeedForward<U>>(&block.second))
    return {first + dropout(feed_forward(*dense, given, fn::Gelu{}), drop.at(2)), std::nullopt};
  const auto made = mixture_of_experts(
      given, *std::get_if<Experts<U>>(&block.second),
      {.capacity_factor = n.capacity,
       .draw = {n.seed + number, turn.step, turn.first_row * x.extent(1) + turn.first_place}},
      fn::Gelu{});
  see(made.gating);
  return {first + dropout(made.output, drop.at(2)), made.gating.auxiliary_loss};
}

/// Returns the scores of the next characters, (batch, context, vocabulary), and the mean auxiliary
/// loss of the layers with experts. ids is (batch, context).
template <class U, class See = Unseen>
auto scores(const Model<U>& model, const Ids<U>& ids, const Sizes& n, const Turn& turn,
            const See& see = {}) {
  const Dropout drop = dropout_of(n, turn);
  Activations<U> x = [&] {
    const Layer scope(ids, "embedding");
    return dropout(
        add_positions(model.positions, look_up<typename Activations<U>::spec>(model.table, ids)),
        drop);
  }();
  std::optional<Scalar<U>> auxiliary;
  for (std::size_t l = 0; l < model.blocks.size(); ++l) {
    const Layer scope(ids, "block " + std::to_string(l));
    const auto run = [n, turn, number = l + 1, see](const Block<U>& block,
                                                    const Activations<U>& given) {
      const auto attend = [&](const Attention<U>& layer, const auto& seen, const Dropout& its) {
        return attention(layer, seen, seen, {.causal = true, .dropout = its, .block = n.block});
      };
      return after_block(block, given, n, turn, number, attend, see);
    };
    const Recompute again = l < n.again.size() ? n.again[l] : Recompute(false);
    auto [y, loss] = recompute_if(again, run)(model.blocks[l], x);
    x = y;
    if (loss) auxiliary = auxiliary ? Scalar<U>(*auxiliary + *loss) : *loss;
  }
  const Layer scope(ids, "head");
  const auto out =
      dense<typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>>(
          model.head, layer_norm(model.norm, x));
  return std::tuple(out, auxiliary);
}

/// Returns the objective, cross-entropy + k times the auxiliary losses, and the cross-entropy
/// alone: means, in nats a character. next is (batch, context).
template <class U>
std::tuple<Scalar<U>, Scalar<U>> losses(const Model<U>& model, const Ids<U>& ids,
                                        const Ids<U>& next, const Sizes& n, const Turn& turn) {
  const auto [out, auxiliary] = scores(model, ids, n, turn);
  const Layer scope(ids, "loss");
  const Scalar<U> nats = mean<"bs->">(cross_entropy(out, next));
  if (!auxiliary) return {nats, nats};
  using T = typename U::value_type;
  return {nats + *auxiliary * static_cast<T>(n.auxiliary), nats};
}

}  // namespace train_transformer
