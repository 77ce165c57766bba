// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What attention is told, and what its masks do to scores, keys and values.
/// nn/blocked_attention.hpp computes it.
///
///     const AttentionOptions options{.causal = true, .block = 512};
///     auto heads = blocked_attention(queries, keys, values, options);
///
/// Laws: a masked key has weight zero, whatever its score is, and neither its elements nor its
/// value's are read: they may be NaN; so may those of keys that come after a query, by `causal`. A
/// query all of whose keys are masked gets zeros. Keys outside a window have weight zero, and are
/// to be finite. Documents (nn/documents/documents.hpp): what is not finite in one, keys, values,
/// queries or gradients, changes nothing of another.
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/grad/custom_gradient.hpp>
#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/nn/detail/letters.hpp>
#include <tessera/nn/detail/where_valid.hpp>
#include <tessera/nn/documents/documents.hpp>
#include <tessera/nn/dropout.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/product/einsum.hpp>
#include <tessera/op/reduce.hpp>

namespace tessera {

struct AttentionOptions {
  bool causal = false;  ///< a query sees keys up to its own place alone
  Index first = 0;      ///< the place of the first query among the keys
  Index window = 0;     ///< a query sees keys nearer than so many places alone; 0: all
  bool rotary = false;  ///< queries and keys are turned by their places
  double rotary_base = 10000;
  Index farthest = 128;  ///< of a relative bias: distances from here on share one bucket
  Dropout dropout = {};  ///< of the weights of the keys
  /// So many keys at a time, and their scores alone are in memory (nn/blocked_attention.hpp); 0:
  /// all, whose weights are kept for the way back.
  Index block = 0;
  /// So many queries at a time, where a process has all of a text; 0: with `block` as many as keys,
  /// and no fewer than 256, without it an eighth of all, and no fewer than 64.
  Index queries = 0;
  /// Where `block` is 0 and a process's scores have more bytes than this, keys come in blocks whose
  /// scores have no more; 0: never.
  Index scores_bytes = 0;
};

namespace detail {
/// The score of a masked key: that of no other is less.
inline constexpr double masked_score = -std::numeric_limits<double>::infinity();

/// Throws UsageError for a negative number of the options; `zero` says what 0 stands for.
inline void require_count(const char* name, Index n, const char* zero, Where where) {
  if (n < 0)
    throw UsageError("attention: " + std::string(name) + " is " + std::to_string(n) +
                         ", and none can be fewer than 0; give 0, for " + zero + ", or more",
                     where);
}
inline void require_window(const AttentionOptions& options, Where where) {
  require_count("window", options.window, "all keys before and after", where);
}
}  // namespace detail

namespace fn {
/// x of query i[3] and key i[4] where the query sees the key, else another number: a key that is
/// valid, lies within the window, and does not come after the query where attention is causal.
struct Seen {
  static constexpr std::string_view name = "mask";
  double other;
  bool causal;
  Index first;
  Index window = 0;  ///< 0: none
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return (*this)(i, x, true);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const GlobalIndex& i, T x, bool valid) const {
    using C = ComputeType<T>;
    const Index after = i[4] - i[3] - first;  // so far after the query the key comes
    const bool near = window == 0 || (after < window && -after < window);
    const bool seen = valid && near && !(causal && after > 0);
    return static_cast<T>(tessera::detail::choose(seen, static_cast<C>(x), static_cast<C>(other)));
  }
  /// Masked keys have weight zero, so that their scores' gradient is zero before it comes here.
  template <int I> using slope_by = std::conditional_t<I == 0, UnitSlope, ZeroSlope>;
};
/// What a query sees of the keys of its own document.
struct SeenInDocument {
  static constexpr std::string_view name = "document mask";
  Seen mask;
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const GlobalIndex& i, T x, std::int32_t query,
                                           std::int32_t key) const {
    return mask(i, x, query == key && InDocument{}(key));
  }
  template <int I> using slope_by = Seen::slope_by<I>;
};
/// x, or 0 where it is not finite; gradients pass.
struct FinitePart {
  static constexpr std::string_view name = "finite part";
  template <int> using slope_by = UnitSlope;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    return IsFinite{}(x) ? x : T{};
  }
};
/// The place i[1] of elements of which one is not finite, else one beyond all.
struct PlaceNotFinite {
  static constexpr std::string_view name = "first that is not finite";
  static constexpr Slope slope = Slope::zero;
  template <RealElement... T>
  KOKKOS_FORCEINLINE_FUNCTION std::int32_t operator()(const GlobalIndex& i, T... x) const {
    return (IsFinite{}(x) && ...) ? std::numeric_limits<std::int32_t>::max()
                                  : static_cast<std::int32_t>(i[1]);
  }
};
/// x of query i[1], and NaN where that sees a key or value that is not finite; of gradients, where
/// they are not zero.
struct Spoilt {
  static constexpr std::string_view name = "seen beyond the mask";
  Index first;
  bool back;
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const GlobalIndex& i, T x, std::int32_t place) const {
    const bool seen = i[1] + first >= place && !(back && x == T{});
    return seen ? std::numeric_limits<T>::quiet_NaN() : x;
  }
};
}  // namespace fn

namespace detail {
/// Returns what each key has, (batch, keys, ...), with zeros where keys are masked: a weight of
/// zero times NaN would be NaN.
template <TypedTensor K, class M> K kept(const K& x, const M& valid, Where where) {
  if constexpr (std::is_same_v<M, AllValid>)
    return x;
  else
    return where_valid(x, valid, where);
}

/// Returns the place of the first key with an element, or a value's, that is not finite: (batch,
/// groups).
template <TypedTensor K, TypedTensor V>
auto first_not_finite(const K& keys, const V& values, Where where) {
  const auto first = [&](const auto&... x) {
    return reduce<Min, "btgd->bg">(map_with_index(at(where), fn::PlaceNotFinite{}, x...), where);
  };
  if constexpr (std::is_same_v<K, V>)
    return first(keys, values);
  else
    return map<"bg,bg->bg">(fn::Minimum{}, first(keys), first(values), where);
}
/// Returns the heads of run(keys, values). Where attention is causal the keys and values are
/// without what is not finite, since it would spoil queries before it, by weights of zero; the
/// heads of queries that see it are NaN.
template <TypedTensor K, TypedTensor V, class Run>
auto without_later(const K& keys, const V& values, const AttentionOptions& options, Where where,
                   const Run& run) {
  using Y = std::decay_t<decltype(run(keys, values))>;
  if (!options.causal) return run(keys, values);
  const auto place = first_not_finite(keys, values, where);
  using Place = std::decay_t<decltype(place)>;
  const auto spoilt = [first = options.first](bool back, const Y& y, const Place& from) {
    return Y(map_with_index<"bsgrd,bg->bsgrd", typename Y::spec>(fn::Spoilt{first, back}, y, from));
  };
  const auto marked = custom_gradient(
      [spoilt](const Y& y, const Place& from) { return with_saved(spoilt(false, y, from), from); },
      [spoilt](const Y& dy, const Place& from) {
        return std::tuple(spoilt(true, dy, from), zero_gradient);
      },
      where);
  return marked(run(map(fn::FinitePart{}, keys, where), map(fn::FinitePart{}, values, where)),
                place);
}

/// Scores (batch, groups, repeats, queries, keys) of such queries and keys, and the heads (batch,
/// queries, groups, repeats, head_dim) that these and the values give.
template <class Q, class K>
using ScoresOf = typename TypedEinsum<"bsgrd,btgd->bgrst", Deduced, Q, K>::result;
template <class Q, class K, class V>
using HeadsOf = typename TypedEinsum<"bgrst,btgd->bsgrd", Deduced, ScoresOf<Q, K>, V>::result;

/// Return how scores and heads lie: as their types say, and what these leave open as it is deduced.
template <TypedTensor Q, TypedTensor K> Sharding scores_sharding(const Q& q, const K& k) {
  const Sharding& promised = TensorFacts<ScoresOf<Q, K>>::sharding();
  if constexpr (!ScoresOf<Q, K>::open) return promised;
  return filled(promised,
                deduce(parse("bsgrd,btgd->bgrst"), {q.core().sharding(), k.core().sharding()}));
}
template <class Y, TypedTensor Q> Sharding heads_sharding(const Q& q) {
  return filled(TensorFacts<Y>::sharding(), q.core().sharding());
}

}  // namespace detail

}  // namespace tessera
