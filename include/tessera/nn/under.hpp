// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a model is written against: an element type, a mesh, and the rules that say which mesh axes
/// split a dimension by its meaning. The names of namespace `logical` are those of the layers of
/// this room; nn/rules.hpp has rules for all of them.
///
///     using Here = Under<float, Grid, TensorParallel<data, model>>;
///     Here::Tensor<logical::embed, logical::hidden> weight;      // P<_, model>
///     Here::Of<std::int32_t, logical::batch, _> ids;             // other elements: P<data, _>
///     using Free = Under<float, Grid, OpenRules>;                  // how weights are split is chosen
///
/// Laws: the same source under other rules computes the same numbers, to rounding.
#include <tessera/spec/logical.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

/// Meanings of dimensions.
namespace logical {
struct batch;        ///< examples
struct sequence;     ///< places of a text, of queries
struct embed;        ///< the elements of a token
struct hidden;       ///< the elements within a feed-forward layer
struct groups;       ///< groups of heads with one key and value: heads, where each has its own
struct repeats;      ///< the heads of a group
struct head_dim;     ///< the elements of a head
struct vocabulary;   ///< tokens, or classes, that there are
struct positions;    ///< places that a table knows
struct cache;        ///< places of a text whose keys and values are kept
struct experts;      ///< experts of a mixture
struct norm;         ///< the elements of a token, in the parameters of a norm
struct height;       ///< rows of an image, or of its patches
struct width;        ///< their columns
struct channels;     ///< channels of an image
struct in_channels;  ///< those that a convolution reads
}  // namespace logical

template <Element T, class M, class R> struct Under {
  using value_type = T;
  using mesh_type = M;
  using rules = R;
  template <class... Names> using Spec = Logical<R, Names...>;
  template <class... Names> using Tensor = ShardedTensor<T, M, Logical<R, Names...>>;
  template <Element U, class... Names> using Of = ShardedTensor<U, M, Logical<R, Names...>>;
  template <class Other> using On = Under<T, Other, R>;  ///< the same on a mesh of another type
};

}  // namespace tessera
