// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Attention whose scores are never in memory all at once: keys come in blocks, and each query has
/// the greatest of its scores so far, the sum of their exponentials, and the sum of values with
/// these weights. On the way back the scores of a block are computed once more.
///
///     auto heads = blocked_attention(queries, keys, values, {.causal = true, .block = 3});
///     auto y = attention(layer, x, x, {.causal = true, .block = 3});         // a whole layer
///
/// Laws: equals attention by all scores, to rounding, with its gradients, masks and dropped
/// weights; blocks of keys that all come after the queries are left out; the memory for scores is
/// that of a block. Source: Milakov and Gimelshein, "Online normalizer calculation for softmax"
/// (2018); Rabe and Staats, "Self-attention Does Not Need O(n^2) Memory" (2021); Dao et al.,
/// "FlashAttention" (2022), algorithms 1 and 4.
///
/// Forward and back of 8 heads of 64 floats, in processor time of one core against all scores, and
/// the most memory (an AMD EPYC with AVX-512, in MB):
///
///     sequence   block     all keys   causal     memory   of all scores
///     1024       256           1.20     0.83         26             102
///     2048       256           1.12     0.56         44             396
///     2048       512           1.07     0.64         64             396
///     4096       512           1.11     0.58        100            1560
///
/// and blocks of 64 take 1.4 times as long: give 256 or more.
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/nn/attention_scores.hpp>
#include <tessera/nn/detail/block_attention.hpp>
#include <tessera/nn/detail/causal_tiles.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {
namespace detail {

/// Returns the mask of keys, whole along them; undefined without a mask.
template <class M>
DynamicTensor whole_mask(const M& valid, const BlockShardings& on, Index batch, Index keys,
                         Where where) {
  if constexpr (std::is_same_v<M, AllValid>) {
    return {};
  } else {
    if (!(valid.extents() == Extents{batch, keys}))
      throw ShapeError("blocked_attention: the mask is " + to_string(valid.extents()) +
                           ", and there are " + std::to_string(batch) + " texts of " +
                           std::to_string(keys) + " keys; give an element for each key",
                       where);
    return reshard(DynamicTensor(valid), on.mask, where);
  }
}

/// Throws UsageError where a number of the options is negative.
inline void require_blocks(const AttentionOptions& options, Where where) {
  const auto require = [&](const char* name, Index n, const char* zero) {
    if (n < 0)
      throw UsageError("attention: " + std::string(name) + " is " + std::to_string(n) +
                           ", and none can be fewer than 0; give 0, for " + zero + ", or more",
                       where);
  };
  require("block", options.block, "all keys at once");
  require("queries", options.queries, "a number that suits");
  require("scores_bytes", options.scores_bytes, "no bound");
}
}  // namespace detail

/// Returns the sums of values with weights softmax(q k): queries are (batch, queries, groups,
/// repeats, head_dim), scaled, keys and values (batch, keys, groups, head_dim), the result like
/// queries; `valid`, if given, is (batch, keys), bool. options.block is the number of keys at a
/// time, 0 for all; options.rotary is the layer's. Sums of half types are kept in float. Memory:
/// two or three blocks of scores, and a few tensors of the size of queries, keys and values; for
/// the way back these and two numbers a query and head. Communication: where the sequence of keys
/// is split, also where that of queries is not, an all-gather of keys and one of values each way,
/// and a reduction of their gradients, a reduce-scatter where they are split as queries are; where
/// queries or repeats are split a sum of these gradients over the axes; where elements of heads are
/// split, what attention by all scores sends, queries and keys once more, and a sum of a number a
/// query and head; where attention is causal and the sequence of keys is split, a minimum of a
/// number a group; none otherwise. Collective over the mesh.
/// Throws ShapeError when extents disagree, UsageError when options.block or options.queries is
/// negative.
template <TypedTensor Q, TypedTensor K, TypedTensor V, class M = AllValid>
detail::HeadsOf<Q, K, V> blocked_attention(const Q& queries, const K& keys, const V& values,
                                           const AttentionOptions& options, const M& valid = {},
                                           Where where = Where::here()) {
  using C = ComputeType<typename Q::value_type>;
  using Y = detail::HeadsOf<Q, K, V>;
  detail::require_blocks(options, where);
  detail::use_tensor_of<C>();
  const detail::BlockShardings on(detail::scores_sharding(queries, keys),
                                  detail::heads_sharding<Y>(queries));
  const detail::BlockSizes sizes(queries.extents(), keys.extents(), options,
                                 queries.core().mesh()->shape(), on);
  const DynamicTensor mask = detail::whole_mask(valid, on, keys.extent(0), keys.extent(1), where);
  const detail::BlockAttention<typename Q::value_type> blocks(on, sizes, options, mask, where);
  const auto forward = [blocks](const Q& q, const K& k, const V& v) {
    const auto made = blocks.forward(q, k, v, detail::heads_sharding<Y>(q));
    const Y heads(made.heads.core());
    return with_saved(heads, q, k, v, heads, made.rows);
  };
  const auto back = [blocks](const Y& dy, const Q& q, const K& k, const V& v, const Y& heads,
                             const detail::BlockRows& rows) {
    const auto by = blocks.back(dy, q, k, v, heads, rows);
    return std::tuple(Q(by.queries.core()), K(by.keys.core()), V(by.values.core()));
  };
  return detail::without_later(
      detail::kept(keys, valid, where), detail::kept(values, valid, where), options, where,
      [&](const K& k, const V& v) { return custom_gradient(forward, back, where)(queries, k, v); });
}

namespace detail {
/// Returns the heads, by blocks of keys where the options say so, and else by tiles of queries
/// where no scores of later keys are needed. Communication: that of attended or blocked_attention.
/// Collective over the mesh.
template <TypedTensor Q, TypedTensor K, TypedTensor V, class M>
HeadsOf<Q, K, V> attend(const Q& q, const K& k, const V& v, AttentionOptions options,
                        const M& valid, Where where) {
  require_blocks(options, where);
  if (options.block == 0 && options.scores_bytes > 0)
    options.block =
        block_within(options, q.extents(), k.extent(1), q.core().mesh()->shape(),
                     scores_sharding(q, k), sizeof(ComputeType<typename Q::value_type>));
  if (options.block > 0) return blocked_attention(q, k, v, options, valid, where);
  return without_later(kept(k, valid, where), kept(v, valid, where), options, where,
                       [&](const K& keys, const V& values) -> HeadsOf<Q, K, V> {
                         if constexpr (std::is_same_v<M, AllValid> && tiles_allowed<Q, K, V>())
                           if (const Spans tiles = causal_tiles(q.extent(1), options);
                               tiles.count() > 1)
                             return attended_in_tiles(tiles, q, keys, values, options, where);
                         return attended(q, keys, values, options, valid, where);
                       });
}
}  // namespace detail

}  // namespace tessera
