// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The model: characters seen before -> embedding -> feed-forward layers -> the next character,
/// with its gradient written by hand. Partitioned as GSPMD's "2D finalized" feed-forward (GSPMD,
/// Table 1): every weight and every activation is split over both mesh axes. Feeding it is
/// support/text.hpp's matter, improving it adam.hpp's.
///
///     Pass<T> pass = forward(weights, context);            // (batch, context) character ids
///     auto nats = loss(pass, target);                      // a scalar tensor
///     Weights<T> gradients = backward(weights, pass, target);
///
/// Laws: the same numbers on every mesh, to rounding.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/tensor/tree.hpp>
#include <tessera/tessera.hpp>

namespace gradients_by_hand {

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class T, class... Dims> using Tensor = ShardedTensor<T, Grid, P<Dims...>>;
using Id = std::int32_t;

struct Sizes {
  Index vocabulary = 96, context = 12, embed = 128, hidden = 512, layers = 2, batch = 512;
};

template <class T> struct FeedForward {
  Tensor<T, data, model> in;   // embed, hidden
  Tensor<T, model> bias;       // hidden
  Tensor<T, model, data> out;  // hidden, embed
  static constexpr auto fields = Fields<&FeedForward::in, &FeedForward::bias, &FeedForward::out>{};
};

/// What is learnt; gradients and Adam's moments are the same tensors with other values.
template <class T> struct Weights {
  Tensor<T, data, model> table;   // vocabulary, embed
  Tensor<T, _, model, data> mix;  // context, embed, embed: one matrix for each place before
  std::vector<FeedForward<T>> layers;
  Tensor<T, data, model> head;  // embed, vocabulary
  Tensor<T, model> bias;        // vocabulary
  static constexpr auto fields =
      Fields<&Weights::table, &Weights::mix, &Weights::layers, &Weights::head, &Weights::bias>{};
};

/// Returns the weights at the start: random by global index, so that every mesh starts alike.
template <class T>
Weights<T> initial_weights(const ProcessMesh<Grid>& mesh, const Sizes& n, std::uint64_t seed) {
  const auto normal = [&]<class X>(X& x, const Extents& extents, double inputs) {
    x = random_normal<X>(mesh, extents, ++seed, 0, 1 / std::sqrt(inputs));
  };
  Weights<T> w;
  normal(w.table, {n.vocabulary, n.embed}, 1);
  normal(w.mix, {n.context, n.embed, n.embed}, static_cast<double>(n.context * n.embed));
  for (Index l = 0; l < n.layers; ++l) {
    FeedForward<T>& layer = w.layers.emplace_back();
    normal(layer.in, {n.embed, n.hidden}, static_cast<double>(n.embed));
    layer.bias = zeros<Tensor<T, model>>(mesh, n.hidden);
    normal(layer.out, {n.hidden, n.embed}, static_cast<double>(n.hidden * n.layers));
  }
  normal(w.head, {n.embed, n.vocabulary}, static_cast<double>(4 * n.embed));
  w.bias = zeros<Tensor<T, model>>(mesh, n.vocabulary);
  return w;
}

// The functions of the maps: kernels of our own, each one pass over memory.
template <class T> struct OneHot {
  KOKKOS_FUNCTION T operator()(Id id, Id place) const { return id == place ? T{1} : T{0}; }
};
template <class T> struct BiasGelu {
  KOKKOS_FUNCTION T operator()(T x, T bias) const { return fn::Gelu{}(x + bias); }
};
template <class T> struct BiasGeluGradient {
  KOKKOS_FUNCTION T operator()(T gradient, T x, T bias) const {
    return gradient * fn::GeluGradient{}(x + bias);
  }
};
template <class T> struct CrossEntropy {
  T weight;
  KOKKOS_FUNCTION T operator()(T log_p, T target) const { return -weight * target * log_p; }
};
template <class T> struct CrossEntropyGradient {
  T weight;
  KOKKOS_FUNCTION T operator()(T log_p, T target) const {
    return weight * (fn::Exp{}(log_p)-target);
  }
};
struct Place {
  KOKKOS_FUNCTION Id operator()(const GlobalIndex& i) const { return static_cast<Id>(i[0]); }
};

/// All that the backward pass takes from the forward pass.
template <class T> struct Pass {
  Tensor<T, data, _, _> one_hot;       // batch, context, vocabulary
  Tensor<T, data, _, model> embedded;  // batch, context, embed
  struct Layer {
    Tensor<T, data, model> x;     // batch, embed: what goes in
    Tensor<T, data, model> sum;   // batch, hidden: before bias and gelu
    Tensor<T, data, model> gelu;  // batch, hidden
  };
  std::vector<Layer> layers;
  Tensor<T, data, model> x;      // batch, embed: what comes out
  Tensor<T, data, model> log_p;  // batch, vocabulary
};

/// Returns the logarithms of the next character's probabilities, and what led to them.
/// context is (batch, context), character ids below `vocabulary`.
template <class T> Pass<T> forward(const Weights<T>& w, const Tensor<Id, data, _>& context) {
  const ProcessMesh<Grid> mesh(context.core().mesh());
  const Layer scope(mesh, "forward");
  const auto places = from_function<Tensor<Id, _>>(mesh, {w.table.extent(0)}, Place{});
  Pass<T> pass;
  pass.one_hot = map<"bk,v->bkv">(OneHot<T>{}, context, places);
  pass.embedded = einsum<"bkv,vm->bkm">(pass.one_hot, w.table);
  auto x = einsum<"bkm,kmd->bd", P<data, model>>(pass.embedded, w.mix);
  for (const FeedForward<T>& layer : w.layers) {
    const Layer within(mesh, "layer " + std::to_string(pass.layers.size()));
    const auto sum = einsum<"bm,mh->bh">(x, layer.in);
    const auto gelu = map(BiasGelu<T>{}, sum, layer.bias);
    pass.layers.push_back({x, sum, gelu});
    x = x + einsum<"bh,hm->bm", P<data, model>>(gelu, layer.out);
  }
  pass.x = x;
  pass.log_p = log_softmax<"bv", 'v'>(einsum<"bm,mv->bv">(x, w.head) + w.bias);
  return pass;
}

/// Returns one-hot rows of the characters that did come: (batch, vocabulary), vocabulary split.
template <class T>
Tensor<T, data, model> target_rows(const Pass<T>& pass, const Tensor<Id, data>& target) {
  const ProcessMesh<Grid> mesh(target.core().mesh());
  const auto places = from_function<Tensor<Id, model>>(mesh, {pass.log_p.extent(1)}, Place{});
  return map<"b,v->bv">(OneHot<T>{}, target, places);
}

/// Returns the mean cross-entropy in nats a character.
template <class T> Tensor<T> loss(const Pass<T>& pass, const Tensor<T, data, model>& target) {
  const T weight = T{1} / static_cast<T>(target.extent(0));
  return sum(map(CrossEntropy<T>{weight}, pass.log_p, target));
}

/// Returns the gradient of the loss by every weight, each sharded as its weight.
template <class T>
Weights<T> backward(const Weights<T>& w, const Pass<T>& pass,
                    const Tensor<T, data, model>& target) {
  const Layer scope(target, "backward");
  Weights<T> g;
  const T weight = T{1} / static_cast<T>(target.extent(0));
  const auto logits = map(CrossEntropyGradient<T>{weight}, pass.log_p, target);
  g.bias = sum<"bv->v">(logits);
  g.head = einsum<"bm,bv->mv", P<data, model>>(pass.x, logits);
  auto x = einsum<"bv,mv->bm", P<data, model>>(logits, w.head);
  g.layers.resize(w.layers.size());
  for (std::size_t l = w.layers.size(); l-- > 0;) {
    const Layer within(target, "layer " + std::to_string(l));
    const auto& layer = w.layers[l];
    const auto& seen = pass.layers[l];
    g.layers[l].out = einsum<"bh,bm->hm", P<model, data>>(seen.gelu, x);
    const auto gelu = einsum<"bm,hm->bh", P<data, model>>(x, layer.out);
    const auto sums = map(BiasGeluGradient<T>{}, gelu, seen.sum, layer.bias);
    g.layers[l].bias = sum<"bh->h">(sums);
    g.layers[l].in = einsum<"bm,bh->mh", P<data, model>>(seen.x, sums);
    x = x + einsum<"bh,mh->bm", P<data, model>>(sums, layer.in);
  }
  g.mix = einsum<"bkm,bd->kmd", P<_, model, data>>(pass.embedded, x);
  const auto embedded = einsum<"bd,kmd->bkm", P<data, _, model>>(x, w.mix);
  g.table = einsum<"bkv,bkm->vm", P<data, model>>(pass.one_hot, embedded);
  return g;
}

}  // namespace gradients_by_hand
