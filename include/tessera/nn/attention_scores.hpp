// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What attention is told, and attention by its definition: all scores, their softmax, and the sum
/// of values with these weights. nn/blocked_attention.hpp has the same without all scores.
///
///     const AttentionOptions options{.causal = true, .block = 512};
///     auto heads = detail::attended(queries, keys, values, options, AllValid{}, Where{});
///
/// Laws: a masked key has weight zero beside one that is not, and a row of masked keys alone has
/// equal weights and no NaN.
#include <type_traits>

#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/nn/dropout.hpp>
#include <tessera/op/einsum.hpp>
#include <tessera/op/map.hpp>
#include <tessera/op/softmax.hpp>

namespace tessera {

struct AttentionOptions {
  bool causal = false;  ///< a query sees keys up to its own place alone
  Index first = 0;      ///< the place of the first query among the keys
  bool rotary = false;  ///< queries and keys are turned by their places
  double rotary_base = 10000;
  Dropout dropout = {};  ///< of the weights of the keys
  /// So many keys at a time, and their scores alone are in memory (nn/blocked_attention.hpp); 0:
  /// all.
  Index block = 0;
  /// So many queries at a time, where a process has all of a text; 0: with `block` as many as keys,
  /// and no fewer than 256, without it an eighth of all, and no fewer than 64.
  Index queries = 0;
  /// Where `block` is 0 and a process's scores have more bytes than this, keys come in blocks whose
  /// scores have no more; 0: never.
  Index scores_bytes = 0;
};
/// Stands for no mask of keys.
struct AllValid {};

namespace detail {
/// What is added to the score of a key that is masked: so little that its exponential is zero
/// beside any other, and finite, so that a row of these alone has no NaN.
template <class T> constexpr double masked_score = std::is_same_v<T, half> ? -3e4 : -1e30;
}  // namespace detail

namespace fn {
/// The score of query i[3] and key i[4], lowered where the key comes after the query.
struct CausalScore {
  static constexpr std::string_view name = "causal mask";
  Index first;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const GlobalIndex& i, T score) const {
    using C = ComputeType<T>;
    const C lowered = static_cast<C>(tessera::detail::masked_score<T>);
    return static_cast<T>(static_cast<C>(score) +
                          tessera::detail::choose(i[4] > i[3] + first, lowered, C(-0.0)));
  }
  template <int> using slope_by = UnitSlope;
};
template <class T> struct ValidBias {
  static constexpr Slope slope = Slope::zero;
  KOKKOS_FUNCTION T operator()(bool valid) const {
    return valid ? T{} : tessera::detail::from_double<T>(tessera::detail::masked_score<T>);
  }
};
}  // namespace fn

namespace detail {
/// Returns the scores (batch, groups, repeats, queries, keys) with those of masked keys lowered.
template <TypedTensor A, class V>
A masked(const A& scores, const AttentionOptions& options, const V& valid, Where where) {
  using T = typename A::value_type;
  A masked =
      options.causal ? A(map_with_index(fn::CausalScore{options.first}, scores, where)) : scores;
  if constexpr (!std::is_same_v<V, AllValid>)
    masked = map<"bgrst,bt->bgrst", typename A::spec>(fn::Add{}, masked,
                                                      map(fn::ValidBias<T>{}, valid, where), where);
  return masked;
}

/// Scores (batch, groups, repeats, queries, keys) of such queries and keys, and the heads (batch,
/// queries, groups, repeats, head_dim) that these and the values give.
template <class Q, class K>
using ScoresOf = typename TypedEinsum<"bsgrd,btgd->bgrst", Deduced, Q, K>::result;
template <class Q, class K, class V>
using HeadsOf = typename TypedEinsum<"bgrst,btgd->bsgrd", Deduced, ScoresOf<Q, K>, V>::result;

/// Returns the heads: queries are (batch, queries, groups, repeats, head_dim), scaled, keys and
/// values (batch, keys, groups, head_dim), the result like queries. Communication: that of the two
/// products. Collective over the mesh.
template <TypedTensor Q, TypedTensor K, TypedTensor V, class M>
HeadsOf<Q, K, V> attended(const Q& queries, const K& keys, const V& values,
                          const AttentionOptions& options, const M& valid, Where where) {
  const auto scores = einsum<"bsgrd,btgd->bgrst">(queries, keys, where);
  const auto weights = dropout(softmax<"bgrst", 't'>(masked(scores, options, valid, where), where),
                               options.dropout, where);
  return einsum<"bgrst,btgd->bsgrd">(weights, values, where);
}
}  // namespace detail

}  // namespace tessera
