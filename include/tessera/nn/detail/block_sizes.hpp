// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How blocked attention cuts its queries and keys, and how what it makes is split: functions of
/// extents and shardings alone, so that all processes cut alike.
///
///     const auto on = BlockShardings::of_blocks(scores, heads);
///     const BlockSizes sizes(queries, keys, options, mesh, on);
#include <tessera/base/math.hpp>
#include <tessera/nn/attention_options.hpp>
#include <tessera/spec/block.hpp>

namespace tessera::detail {

/// How what attention makes is split, by the letters b batch, g groups, r repeats, s queries, t
/// keys, d elements of a head.
struct BlockShardings {
  Sharding scores;     ///< bgrst
  Sharding rows;       ///< bgrs
  Sharding queries;    ///< bsgrd
  Sharding keys;       ///< btgd
  Sharding values;     ///< btgd, forward
  Sharding heads;      ///< bsgrd
  Sharding mask;       ///< bt
  Sharding asking;     ///< bs, of the documents of queries
  Sharding back;       ///< btgd, values on the way back
  Sharding by_heads;   ///< bsgrd, the heads' gradient
  Sharding by_keys;    ///< btgd, a block's gradient, as by_values
  Sharding by_values;  ///< btgd
  /// That of a relative bias for queries and keys, grst, and of its table's gradient, zgr.
  Sharding bias() const { return {scores[1], scores[2], scores[3], scores[4]}; }
  Sharding by_table() const {
    return Sharding{{}, scores[1], scores[2]}.with_partial(
        scores[0].set() | scores[3].set() | scores[4].set(), Reduction::sum);
  }
  /// Whether tiles of queries send no more than all at once: sequences and elements of heads are
  /// whole, and what else is split is so in keys and values too, whose gradients are then sums of a
  /// process's own.
  bool tiles = false;

  /// Returns those of blocks of keys, from those of all scores (bgrst) and of the result (bsgrd):
  /// keys, and elements over which products sum, are whole, and gradients of keys and values are
  /// open sums over queries and repeats of each process.
  static BlockShardings of_blocks(const Sharding& all, const Sharding& result) {
    const Sharding queries{all[0], all[3], all[1], all[2], {}}, keys{all[0], {}, all[1], {}};
    const Sharding open = keys.with_partial(all[2].set() | all[3].set(), Reduction::sum);
    return {.scores = {all[0], all[1], all[2], all[3], {}},
            .rows = {all[0], all[1], all[2], all[3]},
            .queries = queries,
            .keys = keys,
            .values = {all[0], {}, all[1], result[4]},
            .heads = {all[0], all[3], all[1], all[2], result[4]},
            .mask = {all[0], {}},
            .asking = {all[0], all[3]},
            .back = keys,
            .by_heads = queries,
            .by_keys = open,
            .by_values = open};
  }
  /// Returns those of all keys at once: what is given stays where it is.
  static BlockShardings of_all(const Sharding& all, const Sharding& result, const Sharding& q,
                               const Sharding& k, const Sharding& v) {
    const AxisSet whole =
        q[1].set() | q[4].set() | k[1].set() | k[3].set() | v[1].set() | v[3].set();
    const AxisSet heads = q[0].set() | q[2].set() | q[3].set();
    return {.scores = all,
            .rows = {all[0], all[1], all[2], all[3]},
            .queries = q,
            .keys = k,
            .values = v,
            .heads = result,
            .mask = {all[0], all[4]},
            .asking = {all[0], all[3]},
            .back = v,
            .by_heads = result,
            .by_keys = k,
            .by_values = v,
            .tiles = whole == AxisSet{} && heads - (k[0].set() | k[2].set()) == AxisSet{} &&
                     heads - (v[0].set() | v[2].set()) == AxisSet{}};
  }
};

/// From one place to before another.
struct Span {
  Index from = 0, to = 0;
};

/// A length cut into spans of equal size, of which the last may be shorter; one at least.
struct Spans {
  Index length = 0, size = 1;
  Index count() const { return max_of(ceil_div(length, size), Index{1}); }
  Span operator[](Index i) const { return {i * size, min_of((i + 1) * size, length)}; }
};

/// Returns the keys a block such that the scores of a process with most have at most
/// options.scores_bytes; 0 where all of them have no more.
inline Index block_within(const AttentionOptions& options, const Extents& queries, Index keys,
                          const MeshShape& mesh, const Sharding& scores, std::size_t element) {
  const Sharding whole{scores[0], scores[1], scores[2], scores[3], {}};
  const Box most = block(Extents{queries[0], queries[2], queries[3], queries[1], keys}, whole, mesh,
                         Coordinates(mesh.rank(), 0));
  const auto length = [&](int d) { return most.side[d].hi - most.side[d].lo; };
  const Index heads = length(0) * length(1) * length(2), texts = length(3);
  const auto bytes = [&](Index s, Index t) {
    return saturating_mul(saturating_mul(heads, static_cast<Index>(element)), saturating_mul(s, t));
  };
  if (bytes(texts, keys) <= options.scores_bytes) return 0;
  const bool cut = mesh.group_size(scores[3].set()) == 1;
  const auto fits = [&](Index t) {
    const Index s = options.queries > 0 ? options.queries : max_of(t, Index{256});
    return bytes(cut ? min_of(s, texts) : texts, t) <= options.scores_bytes;
  };
  Index least = 1, beyond = max_of(keys, Index{2});  // `least` is taken, `beyond` is too many
  while (beyond - least > 1) {
    const Index middle = least + (beyond - least) / 2;
    (fits(middle) ? least : beyond) = middle;
  }
  return least;
}

/// Returns the tiles of queries that each have all keys up to their last place; one where attention
/// is not causal, or a query may see no key. `options.queries` is the size of a tile. Of 0 an
/// eighth of the queries, and no fewer than 64: eight tiles compute 9/16 of all scores, and
/// products of fewer rows are slower.
inline Spans causal_tiles(Index queries, const AttentionOptions& options) {
  Index tile = options.queries > 0 ? options.queries : max_of(ceil_div(queries, 8), Index{64});
  if (!options.causal || options.first < 0) tile = queries;
  return {queries, max_of(tile, Index{1})};
}

/// Tiles of queries and blocks of keys.
class BlockSizes {
 public:
  Spans queries, keys;
  Extents all;         ///< of scores
  bool kept;           ///< whether keys are one block, whose weights are kept for the way back
  bool up_to = false;  ///< whether that has the keys up to a tile's last place alone

  BlockSizes(const Extents& q, const Extents& k, const AttentionOptions& options,
             const MeshShape& mesh, const BlockShardings& on)
      : queries{q[1], max_of(q[1], Index{1})},
        keys{k[1], max_of(k[1], Index{1})},
        all{q[0], q[2], q[3], q[1], k[1]},
        kept(options.block == 0) {
    if (kept) {
      if (!on.tiles) return;
      queries = causal_tiles(q[1], options);
      up_to = options.causal && options.first >= 0;
      return;
    }
    keys.size = min_of(options.block, keys.size);
    // Where queries are split each process has some.
    if (mesh.group_size(on.rows[3].set()) > 1) return;
    const Index tile = options.queries > 0 ? options.queries : max_of(keys.size, Index{256});
    queries.size = min_of(tile, queries.size);
  }

  /// Returns how many blocks of keys the queries s see, with those before the first that they see;
  /// one where they see none.
  Index seen(Span s, const AttentionOptions& options) const {
    const Index last = s.to - 1 + options.first + (options.causal ? 0 : options.window - 1);
    if (!options.causal && options.window == 0) return keys.count();
    return min_of(keys.count(), max_of(last, Index{0}) / keys.size + 1);
  }
  /// Returns the first block of keys that the queries s see; one of those that they are said to
  /// see.
  Index first_seen(Span s, const AttentionOptions& options) const {
    if (options.window == 0) return 0;
    const Index first = max_of(s.from + options.first - options.window + 1, Index{0}) / keys.size;
    return min_of(first, seen(s, options) - 1);
  }
  /// Returns the keys of block j for the queries s.
  Span block_of(Index j, Span s, const AttentionOptions& options) const {
    return up_to ? Span{0, min_of(keys.length, s.to + options.first)} : keys[j];
  }
};

}  // namespace tessera::detail
