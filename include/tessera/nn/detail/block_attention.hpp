// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The loop over tiles of queries and blocks of keys of nn/blocked_attention.hpp, forward and back,
/// on dynamic tensors: it is compiled once for each element type.
///
///     const BlockAttention<float> blocks(on, sizes, options, mask, where);
///     auto [heads, rows] = blocks.forward(q, k, v, sharding);
///     auto by = blocks.back(dy, q, k, v, heads, rows);        // by.queries, by.keys, by.values
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/grad/adjoint/softmax.hpp>
#include <tessera/nn/detail/block_parts.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/shape/pad.hpp>
#include <tessera/op/shape/transpose.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace detail {

/// What the way back needs of each tile of queries, (batch, groups, repeats, queries): the greatest
/// score, and 1 over the sum of e^(score - greatest).
struct BlockRows {
  std::vector<DynamicTensor> greatest, share;
  static constexpr auto fields = Fields<&BlockRows::greatest, &BlockRows::share>{};
};

template <class T> class BlockAttention {
 public:
  using C = ComputeType<T>;
  BlockAttention(const BlockShardings& on, const BlockSizes& sizes, const AttentionOptions& options,
                 const DynamicTensor& mask, Where where)
      : on_(on),
        sizes_(sizes),
        options_(options),
        drop_(dropped(options.dropout, where)),
        mask_(mask),
        where_(where) {}

  struct Made {
    DynamicTensor heads;
    BlockRows rows;
  };
  struct Gradients {
    DynamicTensor queries, keys, values;
  };

  /// Returns the heads (batch, queries, groups, repeats, head_dim) under `out`.
  Made forward(const DynamicTensor& q, const DynamicTensor& k, const DynamicTensor& v,
               const Sharding& out) const {
    const DynamicTensor queries = arranged("bsgrd->bgrsd", q, on_.queries),
                        keys = arranged("btgd->bgtd", k, on_.keys),
                        values = arranged("btgd->bgtd", v, on_.values);
    std::vector<DynamicTensor> heads;
    BlockRows rows;
    for (Index i = 0; i < sizes_.queries.count(); ++i)
      heads.push_back(forward_tile(sizes_.queries[i], queries, keys, values, rows));
    return {transpose("bgrsd->bsgrd", joined(3, std::move(heads), where_), {out, where_}),
            std::move(rows)};
  }

  /// Returns the gradients, each under its tensor's own sharding. Source: Dao et al. (2022),
  /// appendix B.2.
  Gradients back(const DynamicTensor& dy, const DynamicTensor& q, const DynamicTensor& k,
                 const DynamicTensor& v, const DynamicTensor& heads, const BlockRows& rows) const {
    // sum over keys of weight times its gradient: that of a head times its own gradient
    const DynamicTensor mean = product("bsgrd,bsgrd->bgrs", widened(dy), widened(heads), on_.rows);
    const DynamicTensor queries = arranged("bsgrd->bgrsd", q, on_.queries),
                        keys = arranged("btgd->bgtd", k, on_.keys),
                        values = arranged("btgd->bgtd", v, on_.keys),
                        by_heads = arranged("bsgrd->bgrsd", dy, on_.queries);
    std::vector<DynamicTensor> by_queries(static_cast<std::size_t>(sizes_.queries.count())),
        by_keys, by_values;
    const Index blocks = seen(sizes_.queries[sizes_.queries.count() - 1]);
    for (Index j = 0; j < blocks; ++j) {
      const Span t = sizes_.keys[j];
      const DynamicTensor key = part_of(keys, 2, t, where_), value = part_of(values, 2, t, where_);
      DynamicTensor by_key, by_value;
      for (Index i = 0; i < sizes_.queries.count(); ++i) {
        const Span s = sizes_.queries[i];
        if (j >= seen(s)) continue;
        const std::size_t n = static_cast<std::size_t>(i);
        const DynamicTensor query = part_of(queries, 3, s, where_),
                            by_head = part_of(by_heads, 3, s, where_);
        DynamicTensor weight =
            block_map<C, C, C, C>("bgrst,bgrs,bgrs->bgrst", fn::ShareAbove{}, on_.scores, where_,
                                  scores(query, key, s, t), rows.greatest[n], rows.share[n]);
        add(by_value, product("bgrst,bgrsd->bgtd", thinned(weight, s, t), by_head, on_.open));
        const DynamicTensor by_weight =
            thinned(product("bgrsd,bgtd->bgrst", by_head, value, on_.scores), s, t);
        weight = block_map<C, C, C, C>("bgrst,bgrst,bgrs->bgrst", fn::SoftmaxBack{}, on_.scores,
                                       where_, by_weight, weight, part_of(mean, 3, s, where_));
        add(by_key, product("bgrst,bgrsd->bgtd", weight, query, on_.open));
        add(by_queries[n], product("bgrst,bgtd->bgrsd", weight, key, on_.queries));
      }
      by_keys.push_back(narrowed(by_key));
      by_values.push_back(narrowed(by_value));
    }
    for (DynamicTensor& one : by_queries) one = narrowed(one);
    return {
        transpose("bgrsd->bsgrd", joined(3, std::move(by_queries), where_), {q.sharding(), where_}),
        finished(std::move(by_keys), k), finished(std::move(by_values), v)};
  }

 private:
  /// Returns how many blocks of keys a tile of queries sees; one where it sees none.
  Index seen(Span s) const {
    const Index all = sizes_.keys.count();
    if (!options_.causal) return all;
    return min_of(all, max_of(s.to - 1 + options_.first, Index{0}) / sizes_.keys.size + 1);
  }

  DynamicTensor forward_tile(Span s, const DynamicTensor& queries, const DynamicTensor& keys,
                             const DynamicTensor& values, BlockRows& rows) const {
    const DynamicTensor query = part_of(queries, 3, s, where_);
    DynamicTensor greatest, total, heads;
    for (Index j = 0; j < seen(s); ++j) {
      const Span t = sizes_.keys[j];
      DynamicTensor weight = scores(query, part_of(keys, 2, t, where_), s, t);
      DynamicTensor most = reduced(Reduction::max, weight);
      if (j > 0)
        most =
            block_map<C, C, C>("bgrs,bgrs->bgrs", fn::Maximum{}, on_.rows, where_, most, greatest);
      weight =
          block_map<C, C, C>("bgrst,bgrs->bgrst", fn::ExpAbove{}, on_.scores, where_, weight, most);
      const DynamicTensor sum = reduced(Reduction::sum, weight);
      weight = thinned(weight, s, t);
      const DynamicTensor part =
          product("bgrst,bgtd->bgrsd", weight, part_of(values, 2, t, where_), on_.heads);
      if (j > 0) {
        const DynamicTensor left =
            block_map<C, C, C>("bgrs,bgrs->bgrs", fn::ExpAbove{}, on_.rows, where_, greatest, most);
        total = block_map<C, C, C, C>("bgrs,bgrs,bgrs->bgrs", fn::ScaledSum{}, on_.rows, where_,
                                      total, left, sum);
        heads = block_map<C, C, C, C>("bgrsd,bgrs,bgrsd->bgrsd", fn::ScaledSum{}, on_.heads, where_,
                                      heads, left, part);
      } else {
        total = sum;
        heads = part;
      }
      greatest = most;
    }
    const DynamicTensor share =
        block_map<C, C>("bgrs->bgrs", fn::ShareOfSum{}, on_.rows, where_, total);
    rows.greatest.push_back(greatest);
    rows.share.push_back(share);
    if (sizes_.keys.length > 0)  // else the sums of no values are zeros
      heads =
          block_map<C, C, C>("bgrsd,bgrs->bgrsd", fn::Multiply{}, on_.heads, where_, heads, share);
    return narrowed(heads);
  }

  /// Returns the scores of a tile of queries and a block of keys, with those of masked keys
  /// replaced.
  DynamicTensor scores(const DynamicTensor& query, const DynamicTensor& key, Span s, Span t) const {
    const DynamicTensor made = product("bgrsd,bgtd->bgrst", query, key, on_.scores);
    const Index first = s.from + options_.first - t.from;
    const fn::Seen mask{masked_score, options_.causal && t.to - t.from - 1 > first, first};
    if (mask_.defined())
      return placed_map<C, bool>("bgrst,bt->bgrst", mask, where_, made,
                                 part_of(mask_, 1, t, where_));
    return mask.causal ? placed_map<C>("bgrst->bgrst", mask, where_, made) : made;
  }
  /// Returns the weights without those that are dropped.
  DynamicTensor thinned(const DynamicTensor& weight, Span s, Span t) const {
    if (options_.dropout.rate == 0) return weight;
    return detail::thinned<C>(weight, drop_, s, t, sizes_.all, where_);
  }
  DynamicTensor product(std::string_view equation, const DynamicTensor& a, const DynamicTensor& b,
                        const Sharding& out) const {
    return detail::product(equation, a, b, out, where_);
  }
  DynamicTensor reduced(Reduction kind, const DynamicTensor& x) const {
    return DynamicTensor(reduce(parse("bgrst->bgrs"), kind, false, x.core(), on_.rows,
                                {"bgrst->bgrs", where_}, {}, dtype_of<C>));
  }
  void add(DynamicTensor& to, const DynamicTensor& x) const {
    const std::string_view all = x.extents().size() == 4 ? "bgtd,bgtd->bgtd" : "bgrsd,bgrsd->bgrsd";
    to = to.defined() ? block_map<C, C, C>(all, fn::Add{}, x.sharding(), where_, to, x) : x;
  }
  DynamicTensor arranged(std::string_view equation, const DynamicTensor& x,
                         const Sharding& to) const {
    return widened(transpose(equation, x, {to, where_}));
  }
  DynamicTensor widened(const DynamicTensor& x) const { return converted<C, T>(x, where_); }
  DynamicTensor narrowed(const DynamicTensor& x) const { return converted<T, C>(x, where_); }
  /// Returns the gradient by keys or values from those of the blocks that are seen.
  DynamicTensor finished(std::vector<DynamicTensor> blocks, const DynamicTensor& like) const {
    DynamicTensor all = joined(2, std::move(blocks), where_);
    if (const Index left = sizes_.keys.length - all.extents()[2]; left > 0)
      all = pad(all, {0, 0, 0, 0}, {0, 0, left, 0}, {}, {}, where_);
    return reshard(transpose("bgtd->btgd", all, where_), like.sharding(), where_);
  }

  BlockShardings on_;
  BlockSizes sizes_;
  AttentionOptions options_;
  fn::Dropped drop_;
  DynamicTensor mask_;
  Where where_;
};

}  // namespace detail
}  // namespace tessera
