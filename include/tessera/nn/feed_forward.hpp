// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The feed-forward layer of a Transformer: to more elements, a function of them, and back; and its
/// gated form, in which a second product scales the function's values (SwiGLU with fn::Silu).
///
///     auto layer = FeedForward<Here>::like(make, 6, 8);
///     auto y = feed_forward(layer, x, fn::Gelu{});          // also fn::Relu{}
///     auto gated = GatedFeedForward<Here>::like(make, 6, 8);
///     auto z = feed_forward(gated, x, fn::Silu{});
///
/// Laws: feed_forward(layer, x, f) == dense(layer.out, f(dense(layer.in, x))). Errors: those of the
/// operators that it is made of.
#include <tessera/nn/dense.hpp>
#include <tessera/op/elements/arithmetic.hpp>

namespace tessera {

template <class U, class In = logical::embed, class Mid = logical::hidden> struct FeedForward {
  Dense<U, In, Mid> in;
  Dense<U, Mid, In> out;
  static constexpr auto fields = Fields<&FeedForward::in, &FeedForward::out>{};

  /// Returns a layer of rows of `embed` elements, with `hidden` ones within.
  static FeedForward like(Parameters<typename U::mesh_type>& make, Index embed, Index hidden,
                          bool with_bias = true) {
    auto first = Dense<U, In, Mid>::like(make, embed, hidden, with_bias);
    return {first, Dense<U, Mid, In>::like(make, hidden, embed, with_bias)};
  }
};

template <class U, class In = logical::embed, class Mid = logical::hidden> struct GatedFeedForward {
  Dense<U, In, Mid> gate, in;
  Dense<U, Mid, In> out;
  static constexpr auto fields =
      Fields<&GatedFeedForward::gate, &GatedFeedForward::in, &GatedFeedForward::out>{};

  static GatedFeedForward like(Parameters<typename U::mesh_type>& make, Index embed, Index hidden,
                               bool with_bias = false) {
    auto gate = Dense<U, In, Mid>::like(make, embed, hidden, with_bias);
    auto in = Dense<U, In, Mid>::like(make, embed, hidden, with_bias);
    return {gate, in, Dense<U, Mid, In>::like(make, hidden, embed, with_bias)};
  }
};

/// Returns out(activation(in(x))): x is (..., embed), the result like x. Communication: that of two
/// products: where the hidden elements are split (Megatron-LM) one all-reduce of x's size, or a
/// reduce-scatter where x's last dimension is split over the same axes (GSPMD's 2D finalized).
/// Collective over the mesh. Source: Vaswani et al. (2017), section 3.3.
template <class U, class In, class Mid, TypedTensor A, class F>
A feed_forward(const FeedForward<U, In, Mid>& layer, const A& x, const F& activation,
               Where where = Where::here()) {
  const auto h = dense(layer.in, x, activation, where);
  return A(dense<typename A::spec>(layer.out, h, detail::NoActivation{}, where));
}
/// Returns out(activation(gate(x)) in(x)). Communication: as above. Source: Shazeer, "GLU variants
/// improve Transformer" (2020).
template <class U, class In, class Mid, TypedTensor A, class F>
A feed_forward(const GatedFeedForward<U, In, Mid>& layer, const A& x, const F& activation,
               Where where = Where::here()) {
  const auto gate = dense(layer.gate, x, activation, where);
  const auto h = dense(layer.in, x, detail::NoActivation{}, where);
  return A(dense<typename A::spec>(layer.out, gate * h, detail::NoActivation{}, where));
}

}  // namespace tessera
