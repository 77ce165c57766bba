// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Causal attention by tiles of queries, each with the keys up to its last place alone: scores of
/// keys that no query of a tile sees are not computed.
///
///     auto heads = attended_in_tiles(tiles, queries, keys, values, options, where);
///
/// Laws: equals attention by all scores, to rounding, with its gradients and dropped weights, and
/// communicates nothing more; for the way back it keeps the tiles' weights, beside what it was
/// given.
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/softmax.hpp>
#include <tessera/grad/custom_gradient.hpp>
#include <tessera/nn/attention_scores.hpp>
#include <tessera/nn/detail/block_parts.hpp>
#include <tessera/op/shape/pad.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace detail {

/// Returns the tiles of queries; one where attention is not causal, or a query may see no key.
/// `options.queries` is the size of a tile. Of 0 an eighth of the queries, and no fewer than 64:
/// eight tiles compute 9/16 of all scores, and products of fewer rows are slower.
inline Spans causal_tiles(Index queries, const AttentionOptions& options) {
  Index tile = options.queries > 0 ? options.queries : max_of(ceil_div(queries, 8), Index{64});
  if (!options.causal || options.first < 0) tile = queries;
  return {queries, max_of(tile, Index{1})};
}

/// Whether tiles send no more than all at once: sequences and elements of heads are whole, and what
/// else is split is so in keys and values too, whose gradients are then sums of a process's own.
template <TypedTensor Q, TypedTensor K, TypedTensor V> constexpr bool tiles_allowed() {
  const Sharding q = TensorFacts<Q>::sharding(), k = TensorFacts<K>::sharding(),
                 v = TensorFacts<V>::sharding();
  const AxisSet whole = q[1].set() | q[4].set() | k[1].set() | k[3].set() | v[1].set() | v[3].set();
  const AxisSet heads = q[0].set() | q[2].set() | q[3].set();
  return whole == AxisSet{} && heads - (k[0].set() | k[2].set()) == AxisSet{} &&
         heads - (v[0].set() | v[2].set()) == AxisSet{};
}

/// The tiles, forward and back, on dynamic tensors. Queries, heads and their gradients are (batch,
/// queries, groups, repeats, head_dim), keys and values (batch, keys, groups, head_dim).
template <class T> class CausalTiles {
 public:
  using C = ComputeType<T>;
  /// `all` are the extents of all scores (bgrst).
  CausalTiles(const Spans& tiles, const Extents& all, const AttentionOptions& options,
              const Sharding& scores, Where where)
      : tiles_(tiles),
        all_(all),
        options_(options),
        drop_(dropped(options.dropout, where)),
        scores_(scores),
        rows_{scores[0], scores[1], scores[2], scores[3]},
        where_(where) {}

  /// Returns the heads under `out`, and adds each tile's weights to a list.
  DynamicTensor forward(const DynamicTensor& q, const DynamicTensor& k, const DynamicTensor& v,
                        const Sharding& out, std::vector<DynamicTensor>& weights) const {
    std::vector<DynamicTensor> heads;
    for (Index i = 0; i < tiles_.count(); ++i) {
      const Span s = tiles_[i], t = seen(s);
      DynamicTensor made = product("bsgrd,btgd->bgrst", queries_of(q, s), keys_of(k, t), scores_);
      made = placed_map<T>("bgrst->bgrst", fn::Seen{masked_score, true, s.from + options_.first},
                           where_, made);
      weights.push_back(softmax<T>("bgrst", 't', made, where_));
      heads.push_back(product("bgrst,btgd->bsgrd", thinned(weights.back(), s), keys_of(v, t), out));
    }
    return joined(1, std::move(heads), where_);
  }

  /// Returns the gradients by queries, keys and values from that by heads.
  std::tuple<DynamicTensor, DynamicTensor, DynamicTensor> back(
      const DynamicTensor& by_heads, const DynamicTensor& q, const DynamicTensor& k,
      const DynamicTensor& v, const DynamicTensor& heads,
      const std::vector<DynamicTensor>& weights) const {
    // sum over keys of weight times its gradient: that of a head times its own gradient
    const DynamicTensor mean = product("bsgrd,bsgrd->bgrs", by_heads, heads, rows_);
    std::vector<DynamicTensor> by_queries;
    DynamicTensor by_keys, by_values;
    for (Index i = 0; i < tiles_.count(); ++i) {
      const Span s = tiles_[i], t = seen(s);
      const DynamicTensor& weight = weights[static_cast<std::size_t>(i)];
      const DynamicTensor query = queries_of(q, s), by_head = queries_of(by_heads, s);
      add(by_values, product("bgrst,bsgrd->btgd", thinned(weight, s), by_head, v.sharding()));
      const DynamicTensor by_weight =
          thinned(product("bsgrd,btgd->bgrst", by_head, keys_of(v, t), scores_), s);
      const DynamicTensor by_score =
          block_map<T, T, T, T>("bgrst,bgrst,bgrs->bgrst", fn::SoftmaxBack{}, scores_, where_,
                                by_weight, weight, part_of(mean, 3, s, where_));
      add(by_keys, product("bgrst,bsgrd->btgd", by_score, query, k.sharding()));
      by_queries.push_back(product("bgrst,btgd->bsgrd", by_score, keys_of(k, t), q.sharding()));
    }
    return {joined(1, std::move(by_queries), where_), finished(by_keys), finished(by_values)};
  }

 private:
  /// Returns the keys that a tile of queries sees.
  Span seen(Span s) const { return {0, min_of(all_[4], s.to + options_.first)}; }
  DynamicTensor queries_of(const DynamicTensor& x, Span s) const {
    return part_of(x, 1, s, where_);
  }
  DynamicTensor keys_of(const DynamicTensor& x, Span t) const { return part_of(x, 1, t, where_); }
  DynamicTensor product(std::string_view equation, const DynamicTensor& a, const DynamicTensor& b,
                        const Sharding& out) const {
    return detail::product(equation, a, b, out, where_);
  }
  /// Returns the weights of a tile without those that are dropped.
  DynamicTensor thinned(const DynamicTensor& weights, Span s) const {
    if (options_.dropout.rate == 0) return weights;
    return detail::thinned<T>(weights, drop_, s, {}, all_, where_);
  }
  /// Adds a gradient by the first keys to that by fewer, in float for half types.
  void add(DynamicTensor& sum, const DynamicTensor& x) const {
    const DynamicTensor more = converted<C, T>(x, where_);
    sum = sum.defined() ? block_map<C, C, C>("btgd,btgd->btgd", fn::Add{}, x.sharding(), where_,
                                             grown(sum, x.extents()[1]), more)
                        : more;
  }
  /// Returns the gradient with zeros for keys that no query sees.
  DynamicTensor finished(const DynamicTensor& sum) const {
    return converted<T, C>(grown(sum, all_[4]), where_);
  }
  DynamicTensor grown(const DynamicTensor& x, Index to) const {
    const Index more = to - x.extents()[1];
    return more == 0 ? x : pad(x, {0, 0, 0, 0}, {0, more, 0, 0}, {}, {}, where_);
  }

  Spans tiles_;
  Extents all_;
  AttentionOptions options_;
  fn::Dropped drop_;
  Sharding scores_, rows_;  ///< bgrst, bgrs
  Where where_;
};

/// As attended, by tiles. Source of the way back: Dao et al. (2022), appendix B.2.
template <TypedTensor Q, TypedTensor K, TypedTensor V>
HeadsOf<Q, K, V> attended_in_tiles(const Spans& spans, const Q& queries, const K& keys,
                                   const V& values, const AttentionOptions& options, Where where) {
  using Y = HeadsOf<Q, K, V>;
  const Extents &n = queries.extents(), all{n[0], n[2], n[3], n[1], keys.extents()[1]};
  const CausalTiles<typename Q::value_type> tiles(spans, all, options,
                                                  scores_sharding(queries, keys), where);
  const auto forward = [tiles](const Q& q, const K& k, const V& v) {
    std::vector<DynamicTensor> weights;
    const Y heads(tiles.forward(q, k, v, heads_sharding<Y>(q), weights).core());
    return with_saved(heads, q, k, v, heads, weights);
  };
  const auto back = [tiles](const Y& dy, const Q& q, const K& k, const V& v, const Y& heads,
                            const std::vector<DynamicTensor>& weights) {
    const auto [by_q, by_k, by_v] = tiles.back(dy, q, k, v, heads, weights);
    return std::tuple(Q(by_q.core()), K(by_k.core()), V(by_v.core()));
  };
  return custom_gradient(forward, back, where)(queries, keys, values);
}

}  // namespace detail
}  // namespace tessera
