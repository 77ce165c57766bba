// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The loop over tiles of queries and blocks of keys of nn/blocked_attention.hpp, forward and back,
/// on dynamic tensors: it is compiled once for each element type, and once more for half types.
///
///     const BlockAttention<float> blocks(on, sizes, options, {mask, {}}, where);
///     auto [heads, rows] = blocks.forward(q, k, v, sharding);
///     auto by = blocks.back(dy, q, k, v, heads, rows);        // by.queries, by.keys, by.values
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/softmax.hpp>
#include <tessera/nn/detail/block_parts.hpp>
#include <tessera/nn/detail/relative_bucket.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/indexed/scatter.hpp>
#include <tessera/op/indexed/take.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/rows/softmax.hpp>
#include <tessera/op/shape/pad.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace detail {

/// What the way back needs of each tile of queries: its weights, (batch, groups, repeats, queries,
/// keys), where they are kept, and else the greatest score of a query, (batch, groups, repeats,
/// queries), and 1 over the sum of e^(score - greatest).
struct BlockRows {
  std::vector<DynamicTensor> weights, greatest, share;
  static constexpr auto fields =
      Fields<&BlockRows::weights, &BlockRows::greatest, &BlockRows::share>{};
};

/// Which keys count, (batch, keys), bool, undefined where all do; or the documents of keys, and of
/// queries, (batch, queries), int32.
struct BlockMask {
  DynamicTensor keys, queries;
};

/// Scores and weights have elements S: those of blocks the type in which T is summed, those that
/// are kept T. With `documents` the mask is by them: a key or value that is not finite makes the
/// scores of its key NaN, the mask replaces those that a query does not see, and weights multiply
/// finite parts.
template <class T, class S = ComputeType<T>, bool documents = false> class BlockAttention {
 public:
  using C = ComputeType<T>;
  BlockAttention(const BlockShardings& on, const BlockSizes& sizes, const AttentionOptions& options,
                 const BlockMask& mask, Where where)
      : on_(on),
        sizes_(sizes),
        options_(options),
        drop_(dropped(options.dropout, row_volume(sizes.all), where)),
        mask_(mask),
        where_(where) {}

  struct Made {
    DynamicTensor heads;
    BlockRows rows;
  };
  struct Gradients {
    DynamicTensor queries, keys, values, table;
  };

  /// Returns the same with a relative bias by such a table, (buckets, groups, repeats).
  BlockAttention with(const DynamicTensor& table) const {
    BlockAttention other = *this;
    other.table_ = table;
    return other;
  }
  BlockAttention with() const { return *this; }

  /// Returns the heads (batch, queries, groups, repeats, head_dim) under `out`.
  Made forward(const DynamicTensor& q, const DynamicTensor& k, const DynamicTensor& v,
               const Sharding& out) const {
    const DynamicTensor queries = arranged(q, on_.queries), keys = arranged(spoilt(k, v), on_.keys),
                        values = finite<S>(arranged(v, on_.values));
    std::vector<DynamicTensor> heads;
    BlockRows rows;
    for (Index i = 0; i < sizes_.queries.count(); ++i) {
      const Span s = sizes_.queries[i];
      const DynamicTensor query = part_of(queries, 1, s, where_);
      heads.push_back(narrowed(sizes_.kept ? kept_tile(s, query, keys, values, rows)
                                           : running_tile(s, query, keys, values, rows)));
    }
    return {placed(joined(1, std::move(heads), where_), out), std::move(rows)};
  }

  /// Returns the gradients, each under its tensor's own sharding. Source: Dao et al. (2022),
  /// appendix B.2.
  Gradients back(const DynamicTensor& dy, const DynamicTensor& q, const DynamicTensor& k,
                 const DynamicTensor& v, const DynamicTensor& heads, const BlockRows& rows) const {
    // sum over keys of weight times its gradient: that of a head times its own gradient
    const DynamicTensor slope = finite<T>(dy);
    const DynamicTensor mean =
        product("bsgrd,bsgrd->bgrs", widened(slope), finite<S>(widened(heads)), on_.rows);
    const DynamicTensor queries = arranged(q, on_.queries),
                        keys = arranged(sizes_.kept ? k : spoilt(k, v), on_.keys),
                        values = arranged(v, on_.back),
                        by_heads = sizes_.queries.count() == 1 && sizes_.kept
                                       ? widened(slope)  // which may lie anywhere
                                       : arranged(slope, on_.by_heads),
                        kinds = kinds_of(dy);
    std::vector<DynamicTensor> by_queries(static_cast<std::size_t>(sizes_.queries.count())),
        by_keys, by_values;
    DynamicTensor by_table;
    const Index blocks = sizes_.seen(sizes_.queries[sizes_.queries.count() - 1], options_),
                first = sizes_.first_seen(sizes_.queries[0], options_);
    for (Index j = first; j < blocks; ++j) {
      DynamicTensor by_key, by_value;
      for (Index i = 0; i < sizes_.queries.count(); ++i) {
        const Span s = sizes_.queries[i], t = sizes_.block_of(j, s, options_);
        if (j < sizes_.first_seen(s, options_) || j >= sizes_.seen(s, options_)) continue;
        const std::size_t n = static_cast<std::size_t>(i);
        const DynamicTensor query = part_of(queries, 1, s, where_),
                            by_head = part_of(by_heads, 1, s, where_),
                            key = part_of(keys, 1, t, where_);
        DynamicTensor weight = passing(
            sizes_.kept ? rows.weights[n] : share_of(scores(query, key, s, t), rows, n), kinds, s);
        add(by_value, product("bgrst,bsgrd->btgd", thinned(weight, s, t), by_head, on_.by_values));
        const DynamicTensor by_weight = thinned(
            product("bsgrd,btgd->bgrst", by_head, part_of(values, 1, t, where_), on_.scores), s, t);
        weight = block_map<S, S, S, S>("bgrst,bgrst,bgrs->bgrst", Back{}, on_.scores, where_,
                                       by_weight, weight, part_of(mean, 3, s, where_));
        if (table_.defined()) add(by_table, table_gradient(weight, s, t));
        add(by_key, product("bgrst,bsgrd->btgd", weight, finite<S>(query), on_.by_keys));
        add(by_queries[n], product("bgrst,btgd->bsgrd", weight, finite<S>(key), on_.queries));
      }
      by_keys.push_back(converted<T, C>(by_key, where_));
      by_values.push_back(converted<T, C>(by_value, where_));
    }
    for (DynamicTensor& one : by_queries) one = converted<T, C>(one, where_);
    const Index before = first * sizes_.keys.size;
    return {placed(joined(1, std::move(by_queries), where_), q.sharding()),
            finished(std::move(by_keys), before, k), finished(std::move(by_values), before, v),
            finished_table(by_table)};
  }

 private:
  using Back = std::conditional_t<documents, fn::MaskedSoftmaxBack, fn::SoftmaxBack>;

  /// Returns the heads of a tile of queries, by the softmax of its scores, and keeps the weights.
  DynamicTensor kept_tile(Span s, const DynamicTensor& query, const DynamicTensor& keys,
                          const DynamicTensor& values, BlockRows& rows) const {
    const Span t = sizes_.block_of(0, s, options_);
    DynamicTensor weight =
        softmax<S>("bgrst", 't', scores(query, part_of(keys, 1, t, where_), s, t), where_);
    // A softmax of masked scores alone is NaN; without a mask every query sees a key.
    if (mask_.keys.defined() || options_.window > 0 || (options_.causal && options_.first < 0))
      weight = seen(0, weight, s, t);
    rows.weights.push_back(weight);
    return product("bgrst,btgd->bsgrd", thinned(weight, s, t), part_of(values, 1, t, where_),
                   on_.heads);
  }

  /// Returns the heads of a tile of queries, by blocks of keys, and keeps two numbers a query.
  DynamicTensor running_tile(Span s, const DynamicTensor& query, const DynamicTensor& keys,
                             const DynamicTensor& values, BlockRows& rows) const {
    DynamicTensor greatest, total, heads;
    const Index begin = sizes_.first_seen(s, options_);
    for (Index j = begin; j < sizes_.seen(s, options_); ++j) {
      const Span t = sizes_.block_of(j, s, options_);
      DynamicTensor weight = scores(query, part_of(keys, 1, t, where_), s, t);
      DynamicTensor most = reduced(Reduction::max, weight);
      if (j > begin)
        most =
            block_map<S, S, S>("bgrs,bgrs->bgrs", fn::Maximum{}, on_.rows, where_, most, greatest);
      weight =
          block_map<S, S, S>("bgrst,bgrs->bgrst", fn::ExpAbove{}, on_.scores, where_, weight, most);
      const DynamicTensor sum = reduced(Reduction::sum, weight);
      weight = thinned(weight, s, t);
      const DynamicTensor part =
          product("bgrst,btgd->bsgrd", weight, part_of(values, 1, t, where_), on_.heads);
      if (j > begin) {
        const DynamicTensor left =
            block_map<S, S, S>("bgrs,bgrs->bgrs", fn::ExpAbove{}, on_.rows, where_, greatest, most);
        total = block_map<S, S, S, S>("bgrs,bgrs,bgrs->bgrs", fn::ScaledSum{}, on_.rows, where_,
                                      total, left, sum);
        heads = block_map<S, S, S, S>("bsgrd,bgrs,bsgrd->bsgrd", fn::ScaledSum{}, on_.heads, where_,
                                      heads, left, part);
      } else {
        total = sum;
        heads = part;
      }
      greatest = most;
    }
    const DynamicTensor share =
        block_map<S, S>("bgrs->bgrs", fn::ShareOfSum{}, on_.rows, where_, total);
    rows.greatest.push_back(greatest);
    rows.share.push_back(share);
    if (sizes_.keys.length > 0)  // else the sums of no values are zeros
      heads =
          block_map<S, S, S>("bsgrd,bgrs->bsgrd", fn::Multiply{}, on_.heads, where_, heads, share);
    return heads;
  }
  /// Returns the weights of tile n from its scores.
  DynamicTensor share_of(const DynamicTensor& score, const BlockRows& rows, std::size_t n) const {
    return block_map<S, S, S, S>("bgrst,bgrs,bgrs->bgrst", fn::ShareAbove{}, on_.scores, where_,
                                 score, rows.greatest[n], rows.share[n]);
  }

  /// Returns the scores of a tile of queries and a block of keys, with those of masked keys
  /// replaced.
  DynamicTensor scores(const DynamicTensor& query, const DynamicTensor& key, Span s, Span t) const {
    DynamicTensor score = product("bsgrd,btgd->bgrst", query, key, on_.scores);
    if (table_.defined())
      score = block_map<S, S, T>(
          "bgrst,grst->bgrst", fn::WithBias{}, on_.scores, where_, score,
          take("zgr,st->grst", table_, buckets(s, t), {}, CallOptions(on_.bias(), where_)));
    return seen(masked_score, score, s, t);
  }
  /// Returns the buckets of a relative bias, (queries, keys).
  DynamicTensor buckets(Span s, Span t) const {
    const fn::RelativeBucket bucket{.buckets = table_.extents()[0],
                                    .farthest = options_.farthest,
                                    .both_ways = !options_.causal,
                                    .query = s.from + options_.first,
                                    .key = t.from};
    using Runner = IndexFunctionRunner<std::int32_t, fn::RelativeBucket>;
    const TensorDesc desc{
        DType::i32, {s.to - s.from, t.to - t.from}, {on_.scores[3], on_.scores[4]}};
    return DynamicTensor(
        create(table_.core().mesh(), desc, Runner::kernel(bucket), {"relative bucket", where_}));
  }
  DynamicTensor table_gradient(const DynamicTensor& by_score, Span s, Span t) const {
    return scatter<Sum>("st,bgrst->zgr", {buckets(s, t), by_score}, {table_.extents()[0]}, {},
                        CallOptions(on_.by_table(), where_));
  }
  DynamicTensor finished_table(const DynamicTensor& by_table) const {
    if (!table_.defined()) return {};
    return block_map<T, C>("zgr->zgr", fn::Cast<T>{}, table_.sharding(), where_,
                           placed(by_table, table_.sharding()));
  }
  /// Returns numbers of queries s and keys t, with `other` in place of masked keys'.
  DynamicTensor seen(double other, const DynamicTensor& x, Span s, Span t) const {
    const Index first = s.from + options_.first - t.from;
    const fn::Seen mask{other, options_.causal && t.to - t.from - 1 > first, first,
                        options_.window};
    if constexpr (documents) {
      return placed_map<S, std::int32_t, std::int32_t>(
          "bgrst,bs,bt->bgrst", fn::SeenInDocument{mask}, sizes_.all, where_, x,
          part_of(mask_.queries, 1, s, where_), part_of(mask_.keys, 1, t, where_));
    } else {
      if (mask_.keys.defined())
        return placed_map<S, bool>("bgrst,bt->bgrst", mask, sizes_.all, where_, x,
                                   part_of(mask_.keys, 1, t, where_));
      return mask.causal || mask.window > 0
                 ? placed_map<S>("bgrst->bgrst", mask, sizes_.all, where_, x)
                 : x;
    }
  }
  /// Return, with documents, keys with NaN where they or their values are not finite; x with zeros
  /// there; the kinds of queries' gradients, (batch, groups, repeats, queries); and the weights
  /// that pass them on.
  DynamicTensor spoilt(const DynamicTensor& k, const DynamicTensor& v) const {
    if constexpr (documents)
      return block_map<T, T, T>(each_element(4).of_two, fn::SpoiltKey{}, k.sharding(), where_, k,
                                v);
    else
      return k;
  }
  template <class E> DynamicTensor finite(const DynamicTensor& x) const {
    if constexpr (documents)
      return block_map<E, E>(each_element(x.extents().size()).of_one, fn::FinitePart{},
                             x.sharding(), where_, x);
    else
      return x;
  }
  DynamicTensor kinds_of(const DynamicTensor& dy) const {
    if constexpr (documents)
      return reduced("bsgrd->bgrs", Reduction::max,
                     block_map<S, T>(each_element(5).of_one, fn::GradientKind<S>{}, dy.sharding(),
                                     where_, dy));
    else
      return {};
  }
  DynamicTensor passing(const DynamicTensor& weight, const DynamicTensor& kinds, Span s) const {
    if constexpr (documents)
      return block_map<S, S, S>("bgrst,bgrs->bgrst", fn::WeightBack{}, on_.scores, where_, weight,
                                part_of(kinds, 3, s, where_));
    else
      return weight;
  }
  /// Returns the weights without those that are dropped.
  DynamicTensor thinned(const DynamicTensor& weight, Span s, Span t) const {
    if (options_.dropout.rate == 0) return weight;
    return detail::thinned<S>(weight, drop_, s, t, sizes_.all, where_);
  }
  DynamicTensor product(std::string_view equation, const DynamicTensor& a, const DynamicTensor& b,
                        const Sharding& out) const {
    return detail::product(equation, a, b, out, where_);
  }
  DynamicTensor reduced(Reduction kind, const DynamicTensor& x) const {
    return reduced("bgrst->bgrs", kind, x);
  }
  DynamicTensor reduced(std::string_view equation, Reduction kind, const DynamicTensor& x) const {
    return DynamicTensor(reduce(parse(equation), kind, false, x.core(), on_.rows,
                                {equation, where_}, {}, dtype_of<S>));
  }
  /// Adds a gradient to the sum, which is in float for half types and may have fewer keys.
  void add(DynamicTensor& to, const DynamicTensor& x) const {
    const DynamicTensor more = converted<C, S>(x, where_);
    to = to.defined() ? block_map<C, C, C>(each_element(x.extents().size()).of_two, fn::Add{},
                                           x.sharding(), where_, grown(to, x.extents()[1]), more)
                      : more;
  }
  DynamicTensor placed(const DynamicTensor& x, const Sharding& to) const {
    return DynamicTensor(moved_to(x.core(), to, {"reshard", where_}));
  }
  DynamicTensor arranged(const DynamicTensor& x, const Sharding& to) const {
    return widened(placed(x, to));
  }
  DynamicTensor widened(const DynamicTensor& x) const { return converted<S, T>(x, where_); }
  DynamicTensor narrowed(const DynamicTensor& x) const { return converted<T, S>(x, where_); }
  /// Returns the gradient by keys or values from those of the blocks that are seen, before which
  /// there are so many keys that no query sees.
  DynamicTensor finished(std::vector<DynamicTensor> blocks, Index before,
                         const DynamicTensor& like) const {
    const DynamicTensor all = joined(1, std::move(blocks), where_);
    return placed(grown(all, sizes_.keys.length, before), like.sharding());
  }
  /// Returns x with zeros for the keys that no query sees, `before` of them before x's.
  DynamicTensor grown(const DynamicTensor& x, Index to, Index before = 0) const {
    const Index more = to - x.extents()[1] - before;
    return before == 0 && more == 0 ? x
                                    : pad(x, {0, before, 0, 0}, {0, more, 0, 0}, {}, {}, where_);
  }

  BlockShardings on_;
  BlockSizes sizes_;
  AttentionOptions options_;
  fn::Dropped drop_;
  BlockMask mask_;
  DynamicTensor table_;
  Where where_;
};

}  // namespace detail
}  // namespace tessera
