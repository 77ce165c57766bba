// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How blocked attention cuts its queries and keys, and how what it makes is split: functions of
/// extents and shardings alone, so that all processes cut alike.
///
///     const BlockShardings on(scores, heads);
///     const BlockSizes sizes(queries, keys, options, mesh, on);
#include <tessera/base/math.hpp>
#include <tessera/nn/attention_scores.hpp>
#include <tessera/spec/block.hpp>

namespace tessera::detail {

/// By the letters b batch, g groups, r repeats, s queries, t keys, d elements of a head. Keys, and
/// elements over which products sum, are whole.
struct BlockShardings {
  Sharding scores;   ///< bgrst
  Sharding rows;     ///< bgrs
  Sharding queries;  ///< bgrsd
  Sharding keys;     ///< bgtd
  Sharding mask;     ///< bt
  Sharding values;   ///< bgtd, elements as in the result
  Sharding heads;    ///< bgrsd, the same
  Sharding open;     ///< bgtd, sums over queries and repeats of each process

  /// From those of all scores (bgrst) and of the result (bsgrd).
  BlockShardings(const Sharding& all, const Sharding& result)
      : scores{all[0], all[1], all[2], all[3], {}},
        rows{all[0], all[1], all[2], all[3]},
        queries{all[0], all[1], all[2], all[3], {}},
        keys{all[0], all[1], {}, {}},
        mask{all[0], {}},
        values{all[0], all[1], {}, result[4]},
        heads{all[0], all[1], all[2], all[3], result[4]},
        open(keys.with_partial(all[2].set() | all[3].set(), Reduction::sum)) {}
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

/// Tiles of queries and blocks of keys.
struct BlockSizes {
  Spans queries, keys;
  Extents all;  ///< of scores

  BlockSizes(const Extents& q, const Extents& k, const AttentionOptions& options,
             const MeshShape& mesh, const BlockShardings& on)
      : queries{q[1]}, keys{k[1], max_of(k[1], Index{1})}, all{q[0], q[2], q[3], q[1], k[1]} {
    if (options.block > 0) keys.size = min_of(options.block, keys.size);
    queries.size = options.queries > 0 ? options.queries : max_of(keys.size, Index{256});
    if (mesh.group_size(on.rows[3].set()) > 1) queries.size = q[1];  // each process has some
    queries.size = max_of(min_of(queries.size, q[1]), Index{1});
  }
};

}  // namespace tessera::detail
