// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A block of a Conformer, the encoder of speech: half a feed-forward layer, attention, a
/// convolution along time, the other half, and a norm.
///
///     auto block = ConformerBlock<Here>::like(make, {.embed = 6, .heads = 3, .hidden = 8, .window = 5});
///     auto [y, mean, variance] = conformer_block(block, x, {}, valid);        // while training
///     auto z = conformer_block(block, {mean, variance}, x, {}, valid);        // by given statistics
///
/// Laws: equals Hugging Face's Wav2Vec2ConformerEncoderLayer of equal weights where all places are
/// valid, and its SeamlessM4TConformerEncoderLayer where they are not, to rounding; what stands at
/// places that are not valid, NaN too, and without dropout how many there are, changes no other
/// place, nor a statistic; where the sequence is split, the convolution receives the places that
/// its window reaches beyond a block, and no more; the same numbers under all rules and on every
/// mesh, to rounding. Errors: those of the operators that it is made of.
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/nn/attention.hpp>
#include <tessera/nn/batch_norm.hpp>
#include <tessera/nn/dropout.hpp>
#include <tessera/nn/feed_forward.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/op/product/convolve.hpp>

namespace tessera {

/// Which parameters a Conformer block has.
struct ConformerSizes {
  Index embed = 256, heads = 4, hidden = 1024;
  Index window = 31;  ///< places of which the convolution makes one
  Index buckets = 0;  ///< of relative positions, as RelativeSizes has them; 0: none
};

/// A gated product, a convolution along time of each channel alone, batch norm, and a product. The
/// channels are named as the elements within a feed-forward layer, since they are split as these:
/// then all between the two products is local but for halos.
template <class U> struct ConvolutionModule {
  using Kernel = typename U::template Tensor<_, _, logical::hidden>;
  LayerNorm<U> norm;
  Dense<U, logical::embed, logical::hidden> in, gate;
  Kernel kernel;  ///< (window, 1, channels)
  BatchNorm<U, logical::hidden> batch_norm;
  Dense<U, logical::hidden, logical::embed> out;
  static constexpr auto fields =
      Fields<&ConvolutionModule::norm, &ConvolutionModule::in, &ConvolutionModule::gate,
             &ConvolutionModule::kernel, &ConvolutionModule::batch_norm, &ConvolutionModule::out>{};

  /// Returns a module of rows of `embed` elements, with as many channels within, without biases.
  static ConvolutionModule like(Parameters<typename U::mesh_type>& make, Index embed, Index window,
                                Where where = Where::here()) {
    ConvolutionModule module;
    module.norm = LayerNorm<U>::like(make, embed);
    module.in = Dense<U, logical::embed, logical::hidden>::like(make, embed, embed, false);
    module.gate = Dense<U, logical::embed, logical::hidden>::like(make, embed, embed, false);
    module.kernel =
        make.template tensor<Kernel>({window, 1, embed}, Initializer::fan_in(window), where);
    module.batch_norm = BatchNorm<U, logical::hidden>::like(make, embed);
    module.out = Dense<U, logical::hidden, logical::embed>::like(make, embed, embed, false);
    return module;
  }
};

template <class U> struct ConformerBlock {
  LayerNorm<U> first_norm;
  FeedForward<U> first;
  LayerNorm<U> attention_norm;
  Attention<U> attention;
  std::optional<RelativeBias<U>> relative;
  ConvolutionModule<U> convolution;
  LayerNorm<U> second_norm;
  FeedForward<U> second;
  LayerNorm<U> norm;
  static constexpr auto fields =
      Fields<&ConformerBlock::first_norm, &ConformerBlock::first, &ConformerBlock::attention_norm,
             &ConformerBlock::attention, &ConformerBlock::relative, &ConformerBlock::convolution,
             &ConformerBlock::second_norm, &ConformerBlock::second, &ConformerBlock::norm>{};

  /// Throws UsageError for a window of no places, and as Attention::like does.
  static ConformerBlock like(Parameters<typename U::mesh_type>& make, const ConformerSizes& n,
                             Where where = Where::here()) {
    if (n.window < 1)
      throw UsageError("conformer block: the convolution's window has " + std::to_string(n.window) +
                           " places, and a window has at least 1; give an odd number, such as 31",
                       where);
    ConformerBlock block;
    block.first_norm = LayerNorm<U>::like(make, n.embed);
    block.first = FeedForward<U>::like(make, n.embed, n.hidden);
    block.attention_norm = LayerNorm<U>::like(make, n.embed);
    block.attention =
        Attention<U>::like(make, {.embed = n.embed, .heads = n.heads, .bias = true}, where);
    if (n.buckets > 0)
      block.relative =
          RelativeBias<U>::like(make, {.buckets = n.buckets, .groups = n.heads}, where);
    block.convolution = ConvolutionModule<U>::like(make, n.embed, n.window, where);
    block.second_norm = LayerNorm<U>::like(make, n.embed);
    block.second = FeedForward<U>::like(make, n.embed, n.hidden);
    block.norm = LayerNorm<U>::like(make, n.embed);
    return block;
  }
};

/// How a Conformer block runs, whatever its weights are.
struct ConformerOptions {
  double epsilon = 1e-5;  ///< of all norms
  Dropout dropout = {};   ///< within and after each layer, and of attention
  /// .rotary turns queries and keys; it drops as `dropout` says. Where it is causal the convolution
  /// sees no later places either.
  AttentionOptions attention = {};
};

/// The statistics of a Conformer block's batch norm.
template <class U> using ConformerStatistics = BatchStatistics<U, logical::hidden>;

namespace detail {
/// Returns what the depthwise convolution makes of x, a place of it for each: (batch, sequence,
/// channels). Of a window of an even number of places one more comes after a place than before it.
template <class U, TypedTensor A>
auto along_time(const ConvolutionModule<U>& module, const A& x, bool causal, Where where) {
  using Y = typename U::template Spec<logical::batch, logical::sequence, logical::hidden>;
  const Index others = module.kernel.extent(0) - 1, before = causal ? others : others / 2;
  const Convolution settings{
      .low = {before}, .high = {others - before}, .feature_groups = module.kernel.extent(2)};
  return convolve<"bxi,xio->bxo", Y>(x, module.kernel, settings, where);
}

/// Returns x + half of a feed-forward layer of norm(x); it drops at `place` and the next one.
template <class U, TypedTensor A>
A with_half(const LayerNorm<U>& norm, const FeedForward<U>& layer, const A& x,
            const ConformerOptions& options, std::uint64_t place, Where where) {
  const A z = layer_norm(norm, x, options.epsilon, where);
  const auto h = dropout(dense(layer.in, z, fn::Silu{}, where), options.dropout.at(place), where);
  const A y = A(dense<typename A::spec>(layer.out, h, NoActivation{}, where)) *
              from_double<typename A::value_type>(0.5);
  return x + dropout(y, options.dropout.at(place + 1), where);
}

/// The states of a Conformer block after attention, and what its batch norm is given.
template <class A, class H> struct BeforeBatchNorm {
  A states;
  H channels;
};
template <class U, TypedTensor A, class V>
auto before_batch_norm(const ConformerBlock<U>& block, const A& given,
                       const ConformerOptions& options, const V& valid, Where where) {
  static_assert(std::is_same_v<V, AllValid> || TypedTensor<V>,
                "[tessera] a Conformer block takes a mask (batch, sequence), bool, and not "
                "documents: its convolution would see from one into the next; give each text a row "
                "of its own");
  AttentionOptions own = options.attention;
  own.dropout = options.dropout.at(0);
  const A x =
      with_half(block.first_norm, block.first, kept(given, valid, where), options, 1, where);
  const A asks = layer_norm(block.attention_norm, x, options.epsilon, where);
  const A seen = attention(block.attention, asks, asks, own, valid, block.relative, where);
  const A states = x + dropout(seen, options.dropout.at(3), where);
  const ConvolutionModule<U>& module = block.convolution;
  const A z = kept(layer_norm(module.norm, states, options.epsilon, where), valid, where);
  const auto gated =
      dense(module.in, z, NoActivation{}, where) * dense(module.gate, z, fn::Sigmoid{}, where);
  const auto channels = along_time(module, gated, own.causal, where);
  return BeforeBatchNorm<A, std::decay_t<decltype(channels)>>{states, channels};
}
/// Returns the block's result: `normed` is what batch norm made of the channels.
template <class U, TypedTensor A, TypedTensor H>
A after_batch_norm(const ConformerBlock<U>& block, const A& states, const H& normed,
                   const ConformerOptions& options, Where where) {
  const auto h = map(fn::Silu{}, normed, where);
  const A y = A(dense<typename A::spec>(block.convolution.out, h, NoActivation{}, where));
  const A x = states + dropout(y, options.dropout.at(4), where);
  return layer_norm(block.norm, with_half(block.second_norm, block.second, x, options, 5, where),
                    options.epsilon, where);
}
}  // namespace detail

/// Returns x after a block, and the mean and variance of the channels of its batch norm, those of
/// this batch: x is (batch, sequence, embed), y like x; `valid`, if given, is (batch, sequence),
/// bool, false where a text has ended: states there count as 0, and mean nothing in the result.
/// Communication: that of two feed-forward layers and of attention; of batch_norm; for the
/// convolution one more product's, and where the sequence is split one exchange of a halo: window -
/// 1 places of each text, of the channels that a process has; on the way back one of the gradient's
/// and, for the kernel's gradient, one of the input's again. Collective over the mesh. Throws
/// ShapeError when extents disagree. Source: Gulati et al., "Conformer" (2020), section 2; with
/// positions as attention has them (rotary, or relative as in T5) in place of Transformer-XL's.
template <class U, TypedTensor A, class V = AllValid>
auto conformer_block(const ConformerBlock<U>& block, const A& x,
                     const ConformerOptions& options = {}, const V& valid = {},
                     Where where = Where::here()) {
  const auto before = detail::before_batch_norm(block, x, options, valid, where);
  const auto normed = [&] {
    const auto& norm = block.convolution.batch_norm;
    if constexpr (std::is_same_v<V, AllValid>)
      return batch_norm(norm, before.channels, options.epsilon, where);
    else
      return batch_norm(norm, before.channels, valid, options.epsilon, where);
  }();
  const A y = detail::after_batch_norm(block, before.states, normed.y, options, where);
  return BatchNormed<A, std::decay_t<decltype(normed.mean)>>{y, normed.mean, normed.variance};
}
/// Returns y by given statistics: after training. Communication: as above, without
/// batch_norm's. Collective over the mesh.
template <class U, TypedTensor A, class V = AllValid>
A conformer_block(const ConformerBlock<U>& block, const ConformerStatistics<U>& statistics,
                  const A& x, const ConformerOptions& options = {}, const V& valid = {},
                  Where where = Where::here()) {
  const auto before = detail::before_batch_norm(block, x, options, valid, where);
  const auto normed =
      batch_norm(block.convolution.batch_norm, statistics, before.channels, options.epsilon, where);
  return detail::after_batch_norm(block, before.states, normed, options, where);
}

}  // namespace tessera
