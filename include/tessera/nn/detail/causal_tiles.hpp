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
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/softmax.hpp>
#include <tessera/grad/custom_gradient.hpp>
#include <tessera/kernel/functions/cast.hpp>
#include <tessera/nn/attention_scores.hpp>
#include <tessera/nn/detail/block_parts.hpp>
#include <tessera/op/pad.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace fn {
/// a + b, in a's type.
struct AddTo {
  static constexpr Linearity linearity = Linearity::linear;
  template <int> using slope_by = UnitSlope;
  template <class C, class T> KOKKOS_FORCEINLINE_FUNCTION C operator()(C a, T b) const {
    return a + static_cast<C>(b);
  }
};
}  // namespace fn

namespace detail {

/// Returns the tiles of queries; one where attention is not causal, or a query may see no key (it
/// has weights then). `options.queries` is the size of a tile. Of 0 an eighth of the queries, and
/// no fewer than 64: eight tiles compute 9/16 of all scores, and products of fewer rows are slower.
inline std::vector<Span> causal_tiles(Index queries, const AttentionOptions& options) {
  Index tile = options.queries > 0 ? options.queries : max_of(ceil_div(queries, 8), Index{64});
  if (!options.causal || options.first < 0) tile = queries;
  std::vector<Span> tiles;
  Index from = 0;
  do {
    tiles.push_back({from, min_of(from + max_of(tile, Index{1}), queries)});
    from = tiles.back().to;
  } while (from < queries);
  return tiles;
}

/// Whether tiles send no more than all at once: sequences and elements of heads are whole, and what
/// else is split is so in keys and values too, whose gradients are then sums of a process's own.
template <TypedTensor Q, TypedTensor K, TypedTensor V> constexpr bool tiles_allowed() {
  const Sharding q = Q::sharding(), k = K::sharding(), v = V::sharding();
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
  CausalTiles(std::vector<Span> tiles, const AttentionOptions& options, const Sharding& scores,
              Where where)
      : tiles_(std::move(tiles)),
        options_(options),
        drop_(dropped(options.dropout, where)),
        scores_(scores),
        rows_{scores[0], scores[1], scores[2], scores[3]},
        where_(where) {}

  /// Returns the heads under `out`, and adds each tile's weights to a list.
  DynamicTensor forward(const DynamicTensor& q, const DynamicTensor& k, const DynamicTensor& v,
                        const Sharding& out, std::vector<DynamicTensor>& weights) const {
    std::vector<DynamicTensor> heads;
    for (const Span s : tiles_) {
      const Span t = seen(s, k);
      DynamicTensor made = product("bsgrd,btgd->bgrst", queries_of(q, s), keys_of(k, t), scores_);
      made = placed_map<T>(fn::CausalScore{s.from + options_.first}, made, where_);
      weights.push_back(softmax<T>("bgrst", 't', made, where_));
      heads.push_back(
          product("bgrst,btgd->bsgrd", thinned(weights.back(), s, q, k), keys_of(v, t), out));
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
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      const Span s = tiles_[i], t = seen(s, k);
      const DynamicTensor query = queries_of(q, s), by_head = queries_of(by_heads, s);
      add(by_values,
          product("bgrst,bsgrd->btgd", thinned(weights[i], s, q, k), by_head, v.sharding()));
      const DynamicTensor by_weight =
          thinned(product("bsgrd,btgd->bgrst", by_head, keys_of(v, t), scores_), s, q, k);
      const DynamicTensor by_score =
          block_map<T, T, T, T>("bgrst,bgrst,bgrs->bgrst", fn::SoftmaxBack{}, scores_, where_,
                                by_weight, weights[i], part_of(mean, 3, s, where_));
      add(by_keys, product("bgrst,bsgrd->btgd", by_score, query, k.sharding()));
      by_queries.push_back(product("bgrst,btgd->bsgrd", by_score, keys_of(k, t), q.sharding()));
    }
    return {joined(1, std::move(by_queries), where_), finished(by_keys, k), finished(by_values, v)};
  }

 private:
  /// Returns the keys that a tile of queries sees.
  Span seen(Span s, const DynamicTensor& k) const {
    return {0, min_of(k.extents()[1], s.to + options_.first)};
  }
  DynamicTensor queries_of(const DynamicTensor& x, Span s) const {
    return part_of(x, 1, s, where_);
  }
  DynamicTensor keys_of(const DynamicTensor& x, Span t) const { return part_of(x, 1, t, where_); }
  DynamicTensor product(std::string_view equation, const DynamicTensor& a, const DynamicTensor& b,
                        const Sharding& out) const {
    return DynamicTensor(einsum(parse(equation), a.core(), b.core(), out, {equation, where_}));
  }
  /// Returns the weights of a tile without those that are dropped.
  DynamicTensor thinned(const DynamicTensor& weights, Span s, const DynamicTensor& q,
                        const DynamicTensor& k) const {
    if (options_.dropout.rate == 0) return weights;
    const Extents& n = q.extents();
    return placed_map<T>(fn::DroppedBlock{drop_, s.from, 0, n[2], n[3], n[1], k.extents()[1]},
                         weights, where_);
  }
  /// Adds a gradient by the first keys to that by fewer, in float for half types.
  void add(DynamicTensor& sum, const DynamicTensor& x) const {
    if (sum.defined())
      sum = block_map<C, C, T>("btgd,btgd->btgd", fn::AddTo{}, x.sharding(), where_,
                               grown(sum, x.extents()[1]), x);
    else if constexpr (std::is_same_v<C, T>)
      sum = x;
    else
      sum = block_map<C, T>("btgd->btgd", fn::Cast<C>{}, x.sharding(), where_, x);
  }
  /// Returns the gradient with zeros for keys that no query sees.
  DynamicTensor finished(const DynamicTensor& sum, const DynamicTensor& like) const {
    const DynamicTensor all = grown(sum, like.extents()[1]);
    if constexpr (std::is_same_v<C, T>)
      return all;
    else
      return block_map<T, C>("btgd->btgd", fn::Cast<T>{}, all.sharding(), where_, all);
  }
  DynamicTensor grown(const DynamicTensor& x, Index to) const {
    const Index more = to - x.extents()[1];
    return more == 0 ? x : pad(x, {0, 0, 0, 0}, {0, more, 0, 0}, {}, {}, where_);
  }

  std::vector<Span> tiles_;
  AttentionOptions options_;
  fn::Dropped drop_;
  Sharding scores_, rows_;  ///< bgrst, bgrs
  Where where_;
};

/// As attended, by tiles. Source of the way back: Dao et al. (2022), appendix B.2.
template <TypedTensor Q, TypedTensor K, TypedTensor V>
HeadsOf<Q, K, V> attended_in_tiles(std::vector<Span> spans, const Q& queries, const K& keys,
                                   const V& values, const AttentionOptions& options, Where where) {
  using Y = HeadsOf<Q, K, V>;
  const CausalTiles<typename Q::value_type> tiles(std::move(spans), options,
                                                  ScoresOf<Q, K>::sharding(), where);
  const auto forward = [tiles](const Q& q, const K& k, const V& v) {
    std::vector<DynamicTensor> weights;
    const Y heads(tiles.forward(q, k, v, Y::sharding(), weights).core());
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
