// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Attention of heads, whose scores need not be in memory all at once: keys come in blocks, and
/// each query has the greatest of its scores so far, the sum of their exponentials, and the sum of
/// values with these weights. On the way back the scores of a block are computed once more. All
/// keys may be one block (the default): its weights are kept for the way back, and where attention
/// is causal each tile of queries has the keys up to its last place alone.
///
///     auto heads = blocked_attention(queries, keys, values, {.causal = true, .block = 3});
///     auto y = attention(layer, x, x, {.causal = true, .block = 3});         // a whole layer
///
/// Laws: all blocks give the same, to rounding, with its gradients, masks and dropped weights;
/// blocks of keys that all come after the queries are left out; the memory for scores is that of a
/// block. Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018); Rabe
/// and Staats, "Self-attention Does Not Need O(n^2) Memory" (2021); Dao et al., "FlashAttention"
/// (2022), algorithms 1 and 4.
///
/// docs/figures.md compares their times; give blocks of 256 keys or more.
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/nn/attention_options.hpp>
#include <tessera/nn/detail/block_attention.hpp>
#include <tessera/nn/positions.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {
namespace detail {

/// Returns the mask, split as scores are; undefined without one.
template <class M> BlockMask mask_of(const M& mask, const BlockShardings& on, Where where) {
  BlockMask to;
  const auto moved = [&](const auto& x, const Sharding& sharding) {
    return DynamicTensor(moved_to(x.core(), sharding, {"reshard", where}));
  };
  if constexpr (!std::is_same_v<M, AllValid>) to.keys = moved(mask_of_keys(mask), on.mask);
  if constexpr (by_documents<M>) to.queries = moved(mask_of_queries(mask), on.asking);
  return to;
}

/// Throws UsageError where a number of the options is negative.
inline void require_blocks(const AttentionOptions& options, Where where) {
  require_count("block", options.block, "all keys at once", where);
  require_window(options, where);
  require_count("queries", options.queries, "a number that suits", where);
  require_count("scores_bytes", options.scores_bytes, "no bound", where);
}
/// Returns the heads by such a BlockAttention, with its gradients; `table` is that of a relative
/// bias, or none.
template <class Y, class Blocks, TypedTensor Q, TypedTensor K, TypedTensor V, TypedTensor... Table>
Y heads_by(const Blocks& blocks, const Q& queries, const K& keys, const V& values, Where where,
           const Table&... table) {
  const auto forward = [blocks](const Q& q, const K& k, const V& v, const Table&... z) {
    const auto made = blocks.with(z...).forward(q, k, v, heads_sharding<Y>(q));
    const Y heads(made.heads.core());
    return with_saved(heads, q, k, v, z..., heads, made.rows);
  };
  const auto back = [blocks](const Y& dy, const Q& q, const K& k, const V& v, const Table&... z,
                             const Y& heads, const BlockRows& rows) {
    const auto by = blocks.with(z...).back(dy, q, k, v, heads, rows);
    return std::tuple(Q(by.queries.core()), K(by.keys.core()), V(by.values.core()),
                      Table(by.table.core())...);
  };
  return custom_gradient(forward, back, where)(queries, keys, values, table...);
}

template <TypedTensor Q, TypedTensor K, TypedTensor V, class M, TypedTensor... Table>
HeadsOf<Q, K, V> attention_by_blocks(const Q& queries, const K& keys, const V& values,
                                     AttentionOptions options, const M& valid, Where where,
                                     const Table&... table) {
  using T = typename Q::value_type;
  using C = ComputeType<T>;
  using Y = HeadsOf<Q, K, V>;
  require_blocks(options, where);
  require_mask(valid, keys.extent(0), queries.extent(1), keys.extent(1), where);
  if constexpr (across<M>) {
    require_no_places("a causal mask", options.causal, where);
    require_no_places("a window", options.window > 0, where);
    require_no_places("a bias", sizeof...(Table) > 0, where);
  }
  // No distance is as large, and sums with it do not overflow.
  options.window = min_of(options.window, std::numeric_limits<Index>::max() / 4);
  use_tensor_of<C>();
  const Sharding scores = scores_sharding(queries, keys), heads = heads_sharding<Y>(queries);
  const MeshShape& mesh = queries.core().mesh()->shape();
  if (options.block == 0 && options.scores_bytes > 0)
    options.block =
        block_within(options, queries.extents(), keys.extent(1), mesh, scores, sizeof(C));
  const BlockShardings on =
      options.block > 0 ? BlockShardings::of_blocks(scores, heads)
                        : BlockShardings::of_all(scores, heads, queries.core().sharding(),
                                                 keys.core().sharding(), values.core().sharding());
  const BlockSizes sizes(queries.extents(), keys.extents(), options, mesh, on);
  const BlockMask mask = mask_of(valid, on, where);
  const auto by = [&]<class S>(std::type_identity<S>, const K& k, const V& v) {
    const BlockAttention<T, S, by_documents<M>> blocks(on, sizes, options, mask, where);
    return heads_by<Y>(blocks, queries, k, v, where, table...);
  };
  const auto run = [&](const K& k, const V& v) {
    return sizes.kept ? by(std::type_identity<T>{}, k, v) : by(std::type_identity<C>{}, k, v);
  };
  if constexpr (by_documents<M>)
    return run(keys, values);
  else
    return without_later(kept(keys, valid, where), kept(values, valid, where), options, where, run);
}
}  // namespace detail

/// Returns the sums of values with weights softmax(q k): queries are (batch, queries, groups,
/// repeats, head_dim), scaled, keys and values (batch, keys, groups, head_dim), the result like
/// queries; `valid`, if given, is (batch, keys), bool, or (batch, queries = keys), int32, the
/// numbers of documents, or CrossDocuments, those of both. options.window leaves out the
/// keys that are as far or farther, on both sides; options.block is the number of keys at a time, 0
/// for all, and options.scores_bytes bounds it; options.rotary is the layer's. Sums of half types
/// are kept in float. Memory: of blocks, two or three of scores, a few tensors of the size of
/// queries, keys and values, and for the way back these and two numbers a query and head; of all
/// keys at once, their scores, and their weights for the way back. Communication: of all keys at
/// once, that of the two products, and of a softmax along keys where scores are split so. Of
/// blocks, where the sequence of keys is split, also where that of queries is not, an all-gather of
/// keys and one of values each way, and a reduction of their gradients, a reduce-scatter where they
/// are split as queries are; where queries or repeats are split a sum of these gradients over the
/// axes; where elements of heads are split, what all keys at once send, and queries and keys once
/// more. Where elements of heads are split, on the way back, a sum of a number a query and head;
/// where attention is causal and the sequence of keys is split, a minimum of a number a group;
/// where queries are split along a sequence that keys share, an all-gather of the keys' mask; none
/// otherwise. Documents, in place of that minimum: where keys and values are split differently, the
/// values, and where elements of heads are split, on the way back, a maximum of a number a query
/// and head. All scores of a row are computed, those of keys of other documents too: which these
/// are is known only as it runs. Collective over the mesh. Throws ShapeError when extents disagree,
/// UsageError when options.block, options.queries or options.scores_bytes is negative.
template <TypedTensor Q, TypedTensor K, TypedTensor V, class M = AllValid>
detail::HeadsOf<Q, K, V> blocked_attention(const Q& queries, const K& keys, const V& values,
                                           const AttentionOptions& options, const M& valid = {},
                                           Where where = Where::here()) {
  return detail::attention_by_blocks(queries, keys, values, options, valid, where);
}
/// The same with a number added to each score, by the key's distance and the head. Communication:
/// also that of the table, where its heads lie otherwise, and of its gradient a sum of its size.
/// Collective over the mesh. Throws ShapeError when the table's heads are not the queries',
/// UsageError where options.farthest is not beyond the distances that have a bucket each.
template <class U, TypedTensor Q, TypedTensor K, TypedTensor V, class M>
detail::HeadsOf<Q, K, V> blocked_attention(const Q& queries, const K& keys, const V& values,
                                           const AttentionOptions& options, const M& valid,
                                           const RelativeBias<U>& bias,
                                           Where where = Where::here()) {
  const Extents &heads = queries.extents(), &there = bias.table.extents();
  if (heads[2] != there[1] || heads[3] != there[2])
    throw ShapeError("blocked_attention: queries have " + std::to_string(heads[2]) + " groups of " +
                         std::to_string(heads[3]) + " heads, and the relative bias is for " +
                         std::to_string(there[1]) + " of " + std::to_string(there[2]) +
                         "; make it for these heads",
                     where);
  detail::require_farthest(
      "blocked_attention",
      {.buckets = there[0], .farthest = options.farthest, .both_ways = !options.causal}, where);
  return detail::attention_by_blocks(queries, keys, values, options, valid, where, bias.table);
}

}  // namespace tessera
