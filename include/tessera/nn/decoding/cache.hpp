// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Keys and values that are kept while texts grow: a new token attends to all before it, and no
/// token is computed twice. Heads, batch or places of the cache may be split, by rules alone.
///
///     auto cache = KeyValueCache<Here>::like(mesh, {.batch = 2, .places = 5, .groups = 3, .head_dim = 2});
///     const auto at = NewPlaces<Here>::at(mesh, {{0, 1}, {3, 4}}, 5);    // two new tokens in each of two texts
///     auto y = cached_attention(layer, x, cache, at);                 // x is (batch, new, embed)
///
/// Laws: cached_attention of tokens one by one equals attention of them all that is causal, to
/// rounding. A cache is written in place, and never gathered: what is sent has the size of the new
/// tokens. Places that a text has not reached may hold what an earlier one left, but no NaN.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/nn/attention.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/comparison.hpp>
#include <tessera/op/indexed/scatter.hpp>
#include <tessera/op/rows/softmax.hpp>

namespace tessera {

namespace fn {
struct PlaceOfIndex {
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>(i[0]);
  }
};
struct Second {
  static constexpr std::string_view name = "places";
  KOKKOS_FUNCTION std::int32_t operator()(std::int32_t, std::int32_t second) const {
    return second;
  }
};
/// Whether a kept token that is seen is nearer than `window` places.
struct SeenNear {
  static constexpr std::string_view name = "window";
  Index window;
  KOKKOS_FUNCTION bool operator()(bool seen, std::int32_t query, std::int32_t key) const {
    return seen && Index{query} - key < window;
  }
};
}  // namespace fn

struct CacheSizes {
  Index batch = 1, places = 1, groups = 1, head_dim = 1;
};

/// Of one layer: (batch, places, groups, head_dim).
template <class U> struct KeyValueCache {
  using Tensor = typename U::template Tensor<logical::batch, logical::cache, logical::groups,
                                             logical::head_dim>;
  Tensor keys, values;
  static constexpr auto fields = Fields<&KeyValueCache::keys, &KeyValueCache::values>{};

  /// Returns a cache of zeros. Communication: none. Collective over the mesh.
  static KeyValueCache like(const ProcessMesh<typename U::mesh_type>& mesh, const CacheSizes& n,
                            Where where = Where::here()) {
    const auto make = [&] {
      return zeros<Tensor>(mesh, {n.batch, n.places, n.groups, n.head_dim}, where);
    };
    return {make(), make()};
  }
};

/// Where new tokens stand in their texts, the same for all layers.
template <class U> struct NewPlaces {
  template <class T, class... Names> using Of = typename U::template Of<T, Names...>;
  Of<std::int32_t, logical::batch, logical::sequence> places;
  Of<std::int32_t, logical::batch> first;                            ///< column 0 of `places`
  Of<bool, logical::batch, logical::sequence, logical::cache> seen;  ///< the places each token sees
  Index most = -1;  ///< the greatest place; -1: it is not known
  /// The places in their texts of all tokens that are kept, (batch, places of the cache); where it
  /// is undefined, each lies at its own place.
  Of<std::int32_t, logical::batch, logical::cache> kept = {};

  /// Returns the places of which row b has `places[b]`, as many for each, one after the other, in a
  /// cache of `kept` places. Every process gives the same. Communication: none. Collective over the
  /// mesh. Throws ShapeError where rows differ in length, or places are not consecutive numbers in
  /// 0 … kept - 1.
  static NewPlaces at(const ProcessMesh<typename U::mesh_type>& mesh,
                      const std::vector<std::vector<Index>>& places, Index kept,
                      Where where = Where::here()) {
    const auto batch = static_cast<Index>(places.size());
    const Index count = batch > 0 ? static_cast<Index>(places[0].size()) : 0;
    NewPlaces at;
    std::vector<std::int32_t> all, first;
    for (const std::vector<Index>& row : places) {
      for (std::size_t i = 0; i < row.size(); ++i)
        if (row[i] < 0 || row[i] >= kept || row[i] != row[0] + static_cast<Index>(i))
          throw ShapeError("a new token is given place " + std::to_string(row[i]) +
                               ", the first of its text having " + std::to_string(row[0]) +
                               ", in a cache of " + std::to_string(kept) +
                               " places; give places one after the other, or make a longer cache",
                           where);
      if (static_cast<Index>(row.size()) != count || count == 0)
        throw ShapeError("one text has " + std::to_string(count) + " new tokens, and another " +
                             std::to_string(row.size()) +
                             "; give each text as many, and at least one: tokens beyond a text's "
                             "last are overwritten when it goes on",
                         where);
      for (const Index place : row) {
        all.push_back(static_cast<std::int32_t>(place));
        at.most = max_of(at.most, place);
      }
      first.push_back(static_cast<std::int32_t>(row[0]));
    }
    at.places = from_host<decltype(at.places)>(mesh, {batch, count}, all, where);
    at.first = from_host<decltype(at.first)>(mesh, {batch}, first, where);
    const auto kept_places = at.own_places(kept, where);
    at.seen = map<"bs,t->bst", typename decltype(at.seen)::spec>(fn::GreaterEqual{}, at.places,
                                                                 kept_places, where);
    return at;
  }

  /// Returns the places of all tokens that are kept, in a cache of so many. Communication: none.
  auto kept_places(Where where = Where::here()) const {
    return kept.core().defined()
               ? kept
               : decltype(kept)(map<"b,t->bt", typename decltype(kept)::spec>(
                     fn::Second{}, first, own_places(seen.extent(2), where), where));
  }

 private:
  auto own_places(Index count, Where where) const {
    return from_function<Of<std::int32_t, logical::cache>>(detail::mesh_like(places), {count},
                                                           fn::PlaceOfIndex{}, where);
  }
};

namespace detail {
/// Returns the attention of queries (batch, new, groups, repeats, head_dim), scaled, to what is
/// kept; score(scores) are the scores, (batch, groups, repeats, new, places), with masked ones at
/// minus infinity, and weight(weights) those that count. Nothing that is kept is gathered.
template <class A, class U, TypedTensor Q, class Score, class Weight>
A attention_to_kept(const Attention<U>& layer, const Q& queries, const KeyValueCache<U>& kept,
                    const Score& score, const Weight& weight, Where where) {
  const auto scores = einsum<"bsgrd,btgd->bgrst">(queries, kept.keys, where);
  const auto heads = einsum<"bgrst,btgd->bsgrd", typename Q::spec>(
      weight(softmax<"bgrst", 't'>(score(scores), where)), kept.values, where);
  return out_of_heads<A>(layer, heads, where);
}
template <class U, TypedTensor A>
auto kept_queries(const Attention<U>& layer, const A& x, Where where) {
  return scaled_queries(
      layer, biased(einsum<"bsm,mgrd->bsgrd">(x, layer.query, where), layer.query_bias, where));
}
/// Returns scores, or weights, with `other` where `seen` says that a key is not; E are the letters.
template <Equation E, class S, class M>
S seen_scores(const S& scores, const M& seen, double other, Where where) {
  using T = typename S::value_type;
  return S(map<E, typename S::spec>(fn::Fixed<fn::Select, 2, T>{{}, from_double<T>(other)}, seen,
                                    scores, where));
}
/// Returns which kept tokens each new one sees, as `at` and a window say.
template <class U> auto seen_in_window(const NewPlaces<U>& at, Index window, Where where) {
  if (window == 0) return at.seen;
  using Seen = std::decay_t<decltype(at.seen)>;
  return Seen(map<"bst,bs,bt->bst", typename Seen::spec>(fn::SeenNear{window}, at.seen, at.places,
                                                         at.kept_places(where), where));
}
}  // namespace detail

/// Returns the attention of new tokens to all tokens of their texts so far, and keeps their keys
/// and values in the cache: x is (batch, new, embed), the cache of (batch, places), the result like
/// x. Options: rotary, rotary_base, window, and farthest of a relative bias, if there is one; it is
/// causal. Communication: that of attention, where nothing is gathered that is larger than the new
/// tokens' queries, keys and values: where the cache's places are split, two all-reduces of a
/// number a query and head, and one of the heads. Collective over the mesh. Throws ShapeError when
/// extents disagree, UsageError for a negative window, and where options.farthest is not beyond the
/// distances that have a bucket each.
template <class U, TypedTensor A>
A cached_attention(const Attention<U>& layer, const A& x, KeyValueCache<U>& cache,
                   const NewPlaces<U>& at, const AttentionOptions& options,
                   const std::optional<RelativeBias<U>>& relative, Where where = Where::here()) {
  if (at.seen.extent(2) != cache.keys.extent(1))
    throw ShapeError("cached_attention: the cache has " + std::to_string(cache.keys.extent(1)) +
                         " places, and the new tokens' are of a cache of " +
                         std::to_string(at.seen.extent(2)) + "; make them for this cache",
                     where);
  detail::require_window(options, where);
  fn::RelativeBucket bucket{.farthest = options.farthest, .both_ways = false};
  if (relative) {
    bucket.buckets = relative->table.extent(0);
    detail::require_farthest("cached_attention", bucket, where);
  }
  auto q = detail::kept_queries(layer, x, where);
  auto k = detail::biased(einsum<"bsm,mgd->bsgd">(x, layer.key, where), layer.key_bias, where);
  const auto v =
      detail::biased(einsum<"bsm,mgd->bsgd">(x, layer.value, where), layer.value_bias, where);
  if (options.rotary) {
    q = rotary(q, at.places, options.rotary_base, where);
    k = rotary(k, at.places, options.rotary_base, where);
  }
  scatter_into<Set, "btgd,b,bTgd->btgd">(cache.keys, at.first, k, {}, where);
  scatter_into<Set, "btgd,b,bTgd->btgd">(cache.values, at.first, v, {}, where);
  const auto seen = detail::seen_in_window(at, options.window, where);
  return detail::attention_to_kept<A>(
      layer, q, cache,
      [&](const auto& scores) {
        using S = std::decay_t<decltype(scores)>;
        const auto masked = [&](const S& all) {
          return detail::seen_scores<"bst,bgrst->bgrst">(all, seen, detail::masked_score, where);
        };
        if (!relative) return masked(scores);
        const auto buckets = map<"bs,bt->bst", typename decltype(at.seen)::spec>(
            bucket, at.places, at.kept_places(where), where);
        return masked(S(map(fn::WithBias{}, scores,
                            take<"zgr,bst->bgrst", typename S::spec>(relative->table, buckets,
                                                                     OutOfRange::clamp, where),
                            where)));
      },
      [](const auto& weights) { return weights; }, where);
}

/// The same without a relative bias.
template <class U, TypedTensor A>
A cached_attention(const Attention<U>& layer, const A& x, KeyValueCache<U>& cache,
                   const NewPlaces<U>& at, const AttentionOptions& options = {},
                   Where where = Where::here()) {
  return cached_attention(layer, x, cache, at, options, std::optional<RelativeBias<U>>(), where);
}

/// Returns the attention of new tokens to another text, whose keys and values are kept: x is
/// (batch, new, embed), the result like x; `valid`, if given, is (batch, places), bool, split as
/// the kept ones are. A token all of whose keys are masked gets zeros from every head.
/// Communication: as cached_attention. Collective over the mesh. Throws ShapeError when extents
/// disagree.
template <class U, TypedTensor A, class V = AllValid>
A attention_to_kept(const Attention<U>& layer, const A& x, const KeyValueCache<U>& kept,
                    const V& valid = {}, Where where = Where::here()) {
  const auto with = [&](const auto& numbers, double other) {
    (void)other;
    if constexpr (std::is_same_v<V, AllValid>)
      return numbers;
    else
      return detail::seen_scores<"bt,bgrst->bgrst">(numbers, valid, other, where);
  };
  return detail::attention_to_kept<A>(
      layer, detail::kept_queries(layer, x, where), kept,
      [&](const auto& s) { return with(s, detail::masked_score); },
      [&](const auto& w) { return with(w, 0); }, where);
}

}  // namespace tessera
