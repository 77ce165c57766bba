// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The parameters of a layer of experts, how it runs, and what it returns;
/// nn/experts/expert_layer.hpp computes it.
///
///     auto layer = Experts<Here>::like(make, {.embed = 6, .experts = 4, .hidden = 8});
///     const ExpertOptions one_of_many{.k = 1, .capacity_factor = 1.25}, none_dropped{.k = 2, .capacity_factor = 0};
#include <cstdint>
#include <optional>

#include <tessera/nn/gating.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

/// choice_bias: experts are chosen by gates plus a bias, which balanced_bias moves, and neither
/// gradients nor optimizers.
struct ExpertSizes {
  Index embed = 0, experts = 1, hidden = 0;
  bool choice_bias = false;
};

template <class U> struct Experts {
  template <class... Names> using Tensor = typename U::template Tensor<Names...>;
  using Real = ComputeType<typename U::value_type>;
  using Bias = typename U::template Of<Real, _>;
  Tensor<logical::norm, _> gate;  ///< which is small, and whole
  Tensor<logical::experts, logical::embed, logical::hidden> in;
  Tensor<logical::experts, logical::hidden, logical::embed> out;
  std::optional<Bias> choice_bias;
  static constexpr auto fields =
      Fields<&Experts::gate, &Experts::in, &Experts::out, &Experts::choice_bias>{};
  static constexpr auto untrained = Fields<&Experts::choice_bias>{};

  static Experts like(Parameters<typename U::mesh_type>& make, const ExpertSizes& n,
                      Where where = Where::here()) {
    const auto from_embed = Initializer::fan_in(n.embed);
    Experts layer;
    layer.gate =
        make.template tensor<decltype(layer.gate)>({n.embed, n.experts}, from_embed, where);
    layer.in =
        make.template tensor<decltype(layer.in)>({n.experts, n.embed, n.hidden}, from_embed, where);
    layer.out = make.template tensor<decltype(layer.out)>({n.experts, n.hidden, n.embed},
                                                          Initializer::fan_in(n.hidden), where);
    if (n.choice_bias)
      layer.choice_bias = make.template tensor<Bias>({n.experts}, Initializer::zeros(), where);
    return layer;
  }
};

/// How a layer of experts runs, whatever its weights are.
struct ExpertOptions {
  Index k = 2;  ///< experts of a token
  /// Places of an expert for a group of S tokens: ceil(k S f / E), and at least one; 0: nothing is
  /// dropped but what `draw` leaves out, and rows lie sorted by expert
  /// (nn/experts/detail/dropless.hpp).
  double capacity_factor = 1;
  /// Where nothing is dropped, whether the host waits for the loads, so that no more is sent and
  /// computed than they ask for; else there is room for any. A function that is compiled, or on
  /// paper, has room for any.
  bool counted = false;
  Index texts = 1;  ///< texts of a group, which compete for places; they divide the batch
  std::optional<RoutingDraw> draw = {};  ///< of further choices (GatingOptions)
};

/// What a layer of experts returns.
template <class X> struct ExpertOutput {
  using Real = ComputeType<typename X::value_type>;
  template <class T> using Scalar = ShardedTensor<T, typename X::mesh_type, P<>>;
  X output;                                                       ///< like the tokens
  Scalar<Real> balance_loss, z_loss;                              ///< of the gates
  ShardedTensor<std::int64_t, typename X::mesh_type, P<_>> load;  ///< (E): choices of each expert
  Scalar<std::int64_t> dropped;  ///< choices that found no place, or were not drawn
  static constexpr auto fields =
      Fields<&ExpertOutput::output, &ExpertOutput::balance_loss, &ExpertOutput::z_loss,
             &ExpertOutput::load, &ExpertOutput::dropped>{};
};

}  // namespace tessera
