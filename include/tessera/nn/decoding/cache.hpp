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
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/nn/attention.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/comparison.hpp>
#include <tessera/op/indexed/scatter.hpp>
#include <tessera/op/rows/softmax.hpp>

namespace tessera {

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
    const auto kept_places = iota<Of<std::int32_t, logical::cache>>(mesh, {kept}, 0, where);
    at.seen = map<"bs,t->bst", typename decltype(at.seen)::spec>(fn::GreaterEqual{}, at.places,
                                                                 kept_places, where);
    return at;
  }
};

/// Returns the attention of new tokens to all tokens of their texts so far, and keeps their keys
/// and values in the cache: x is (batch, new, embed), the cache of (batch, places), the result like
/// x. Options: rotary, rotary_base; it is causal. Communication: that of attention, where nothing
/// is gathered that is larger than the new tokens' queries, keys and values: where the cache's
/// places are split, two all-reduces of a number a query and head, and one of the heads. Collective
/// over the mesh. Throws ShapeError when extents disagree.
template <class U, TypedTensor A>
A cached_attention(const Attention<U>& layer, const A& x, KeyValueCache<U>& cache,
                   const NewPlaces<U>& at, const AttentionOptions& options = {},
                   Where where = Where::here()) {
  using T = typename A::value_type;
  if (at.seen.extent(2) != cache.keys.extent(1))
    throw ShapeError("cached_attention: the cache has " + std::to_string(cache.keys.extent(1)) +
                         " places, and the new tokens' are of a cache of " +
                         std::to_string(at.seen.extent(2)) + "; make them for this cache",
                     where);
  auto q = detail::scaled_queries(
      layer,
      detail::biased(einsum<"bsm,mgrd->bsgrd">(x, layer.query, where), layer.query_bias, where));
  auto k = detail::biased(einsum<"bsm,mgd->bsgd">(x, layer.key, where), layer.key_bias, where);
  const auto v =
      detail::biased(einsum<"bsm,mgd->bsgd">(x, layer.value, where), layer.value_bias, where);
  if (options.rotary) {
    q = rotary(q, at.places, options.rotary_base, where);
    k = rotary(k, at.places, options.rotary_base, where);
  }
  scatter_into<Set, "btgd,b,bTgd->btgd">(cache.keys, at.first, k, {}, where);
  scatter_into<Set, "btgd,b,bTgd->btgd">(cache.values, at.first, v, {}, where);
  const auto scores = einsum<"bsgrd,btgd->bgrst">(q, cache.keys, where);
  using Scores = std::decay_t<decltype(scores)>;
  const auto seen = map<"bst,bgrst->bgrst", typename Scores::spec>(
      fn::Fixed<fn::Select, 2, T>{{}, detail::from_double<T>(detail::masked_score)}, at.seen,
      scores, where);
  const auto heads = einsum<"bgrst,btgd->bsgrd", typename decltype(q)::spec>(
      softmax<"bgrst", 't'>(seen, where), cache.values, where);
  return detail::out_of_heads<A>(layer, heads, where);
}

}  // namespace tessera
