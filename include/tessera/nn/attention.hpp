// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Multi-head and grouped-query attention, to the same text or to another one, with causal and
/// padding masks. Heads, batch or sequence may be split, by rules alone.
///
///     auto layer = Attention<Here>::like(make, {.embed = 6, .heads = 3});
///     auto y = attention(layer, x, x, {.causal = true});
///     auto z = attention(layer, x, memory, {}, valid);      // valid is (batch, memory's places), bool
///     auto w = attention(layer, x, x, {.causal = true, .block = 512});   // without all scores at once
///     auto u = attention(layer, x, x, {.causal = true}, numbers);   // of documents that share rows, (batch, sequence), int32
///     auto biased = Attention<Here>::like(make, {.embed = 6, .heads = 3, .bias = true});   // BERT's
///
/// Laws: equals plain loops over heads; with one key and value a head (groups == heads) it is
/// multi-head, with one for all (groups == 1) multi-query attention. Masked keys may be anything,
/// NaN too; where a text attends to itself, a masked place counts as 0 where it is not finite, as a
/// query too. A query all of whose keys are masked, by `valid`, by `causal` or by both together,
/// gets zeros from every head, and passes no gradient on.
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/nn/blocked_attention.hpp>
#include <tessera/nn/dense.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/positions.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/product/einsum.hpp>
#include <tessera/op/shape/concatenate.hpp>
#include <tessera/op/shape/dimensions.hpp>
#include <tessera/op/shape/slice.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

/// How large an attention layer is. 0: groups as many as heads, head_dim embed / heads, context as
/// embed. bias: each of its four products has one, which begins as zero.
struct AttentionSizes {
  Index embed = 0, heads = 1, groups = 0, head_dim = 0, context = 0;
  bool bias = false;
};

/// Heads are (groups, repeats): the heads of a group share a key and a value.
template <class U> struct Attention {
  template <class... Names> using Tensor = typename U::template Tensor<Names...>;
  using Query = Tensor<logical::embed, logical::groups, logical::repeats, logical::head_dim>;
  using Key = Tensor<logical::embed, logical::groups, logical::head_dim>;
  using Out = Tensor<logical::groups, logical::repeats, logical::head_dim, logical::embed>;
  using QueryBias = Tensor<logical::groups, logical::repeats, logical::head_dim>;
  using KeyBias = Tensor<logical::groups, logical::head_dim>;
  Query query;
  Key key, value;
  Out out;
  std::optional<QueryBias> query_bias;
  std::optional<KeyBias> key_bias, value_bias;
  std::optional<Tensor<logical::embed>> out_bias;
  static constexpr auto fields =
      Fields<&Attention::query, &Attention::key, &Attention::value, &Attention::out,
             &Attention::query_bias, &Attention::key_bias, &Attention::value_bias,
             &Attention::out_bias>{};

  /// Throws UsageError when groups do not divide the heads, or the heads the elements.
  static Attention like(Parameters<typename U::mesh_type>& make, AttentionSizes n,
                        Where where = Where::here()) {
    if (n.groups == 0) n.groups = n.heads;
    if (n.context == 0) n.context = n.embed;
    const auto require_divides = [&](const char* what, Index by, Index of) {
      if (by < 1 || of % by != 0)
        throw UsageError("attention: " + std::to_string(of) + what + std::to_string(by) +
                             "; the number must divide it; give others",
                         where);
    };
    require_divides(" heads in groups: ", n.groups, n.heads);
    if (n.head_dim == 0) {
      require_divides(" elements in heads: ", n.heads, n.embed);
      n.head_dim = n.embed / n.heads;
    }
    const Index repeats = n.heads / n.groups;
    Attention layer;
    layer.query = make.template tensor<Query>({n.embed, n.groups, repeats, n.head_dim},
                                              Initializer::fan_in(n.embed), where);
    layer.key = make.template tensor<Key>({n.context, n.groups, n.head_dim},
                                          Initializer::fan_in(n.context), where);
    layer.value = make.template tensor<Key>({n.context, n.groups, n.head_dim},
                                            Initializer::fan_in(n.context), where);
    layer.out = make.template tensor<Out>({n.groups, repeats, n.head_dim, n.embed},
                                          Initializer::fan_in(n.heads * n.head_dim), where);
    if (!n.bias) return layer;
    const Initializer zeros = Initializer::zeros();
    layer.query_bias =
        make.template tensor<QueryBias>({n.groups, repeats, n.head_dim}, zeros, where);
    layer.key_bias = make.template tensor<KeyBias>({n.groups, n.head_dim}, zeros, where);
    layer.value_bias = make.template tensor<KeyBias>({n.groups, n.head_dim}, zeros, where);
    layer.out_bias = make.template tensor<Tensor<logical::embed>>({n.embed}, zeros, where);
    return layer;
  }
};

namespace fn {
/// Whether an element is valid, or at least finite.
struct ValidOrFinite {
  static constexpr std::string_view name = "mask";
  static constexpr Slope slope = Slope::zero;
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION bool operator()(bool valid, T x) const {
    return valid || IsFinite{}(x);
  }
};
}  // namespace fn

namespace detail {
/// Returns x with zeros where it is masked and not finite; valid is (batch, sequence).
template <TypedTensor A, TypedTensor V>
A finite_where_masked(const A& x, const V& valid, Where where) {
  using T = typename A::value_type;
  const auto kept = map<"bs,bse->bse", typename A::spec>(fn::ValidOrFinite{}, valid, x, where);
  return map(fn::Fixed<fn::Select, 2, T>{{}, T{}}, kept, x, where);
}
/// Returns x as the text that asks: where it is the context too, or its documents are known, what
/// is masked and not finite is zero, or the matrices' gradients would not be finite.
template <TypedTensor A, TypedTensor C, class V>
A asking(const A& x, const C& context, const V& valid, Where where) {
  if constexpr (by_documents<V>)
    return finite_where_masked(x, valid_of(mask_of_queries(valid), where), where);
  else if constexpr (std::is_same_v<A, C> && !std::is_same_v<V, AllValid>)
    if (x.core().storage() == context.core().storage() && x.extents() == context.extents())
      return finite_where_masked(x, valid_of(mask_of_queries(valid), where), where);
  return x;
}

/// Queries (batch, sequence, groups, repeats, head_dim), keys and values (batch, keys, groups,
/// head_dim).
template <class Q, class K> struct Projected {
  Q queries;
  K keys, values;
};
/// Returns x and context times the layer's matrices, plus its biases. Where they are one tensor it
/// is one product with the matrices side by side: x is gathered once where its last dimension is
/// split, the gradients of the matrices are one reduction, and one product is faster than three.
/// (That the gradients by x are reduced once is the tape's doing: grad/adjoint/open_sums.hpp.)
template <class U, TypedTensor A, TypedTensor C, class V>
auto projected(const Attention<U>& layer, const A& x, const C& context, const V& valid,
               Where where) {
  using Layer = Attention<U>;
  using Q = decltype(einsum<"bsm,mgrd->bsgrd">(x, layer.query));
  using K = decltype(einsum<"btm,mgd->btgd">(context, layer.key));
  if constexpr (std::is_same_v<A, C> && TensorFacts<typename Layer::Query>::sharding()[2].empty())
    if (x.core().storage() == context.core().storage() && x.extents() == context.extents()) {
      const auto weights = concatenate<2>(layer.query, expand_dims<2>(layer.key, where),
                                          expand_dims<2>(layer.value, where));
      const auto all = einsum<"bsm,mgrd->bsgrd">(asking(x, context, valid, where), weights, where);
      using Thirds = std::array<Q, 3>;
      const auto split = custom_gradient(
          [r = layer.query.extent(2)](const Q& y) {
            const auto parts = slices<3>(y, {{0}, {r}, {r + 1}}, {{r}, {r + 1}, {r + 2}});
            return with_saved(Thirds{parts[0], parts[1], parts[2]});
          },
          [](const Thirds& d) { return Q(concatenate<3>(d[0], d[1], d[2])); }, where);
      const Thirds parts = split(all);
      return Projected<Q, K>{biased(parts[0], layer.query_bias, where),
                             biased(K(squeeze<3>(parts[1], where)), layer.key_bias, where),
                             biased(K(squeeze<3>(parts[2], where)), layer.value_bias, where)};
    }
  const C seen = kept(context, valid_of(mask_of_keys(valid), where),
                      where);  // also on the way back, for the matrices' gradients
  return Projected<Q, K>{
      biased(einsum<"bsm,mgrd->bsgrd">(asking(x, context, valid, where), layer.query, where),
             layer.query_bias, where),
      biased(einsum<"btm,mgd->btgd">(seen, layer.key, where), layer.key_bias, where),
      biased(einsum<"btm,mgd->btgd">(seen, layer.value, where), layer.value_bias, where)};
}
/// Returns queries by 1 / sqrt(head_dim), before they are turned.
template <class U, TypedTensor Q> Q scaled_queries(const Attention<U>& layer, const Q& q) {
  const Index size = layer.query.extent(3);
  return q * from_double<typename Q::value_type>(
                 1 / std::sqrt(static_cast<double>(size < 1 ? 1 : size)));
}
/// Returns x's type: the heads times the layer's last matrix, plus its bias.
template <class A, class U, TypedTensor H>
A out_of_heads(const Attention<U>& layer, const H& heads, Where where) {
  return biased(A(einsum<"bsgrd,grdm->bsm", typename A::spec>(heads, layer.out, where)),
                layer.out_bias, where);
}
/// Returns a layer's attention, whose heads are run(queries, keys, values).
template <class U, TypedTensor A, TypedTensor C, class V, class Run>
A attention_of(const Attention<U>& layer, const A& x, const C& context,
               const AttentionOptions& options, const V& valid, Where where, const Run& run) {
  require_mask(valid, context.extent(0), x.extent(1), context.extent(1), where);
  if constexpr (across<V>) require_no_places("rotary", options.rotary, where);
  auto [q, k, v] = projected(layer, x, context, valid, where);
  q = scaled_queries(layer, q);
  if (options.rotary) {
    if constexpr (with_places<V>) {
      const auto tables = rotary_tables(q, valid.places, options.rotary_base, where);
      q = turned_by(q, tables, where);
      k = turned_by(k, tables, where);
    } else {
      q = rotary(q, options.first, options.rotary_base, where);
      k = rotary(k, 0, options.rotary_base, where);
    }
  }
  return out_of_heads<A>(layer, run(q, k, v, without_places(valid)), where);
}
}  // namespace detail

/// Returns the attention of x's places to those of `context`: x is (batch, sequence, embed),
/// context (batch, keys, elements), the result like x; `valid`, if given, is (batch, keys), bool,
/// or documents (nn/documents/documents.hpp): Documents or their numbers, (batch, sequence), where
/// x and context share rows, and CrossDocuments where they do not. A head's weights are
/// softmax(q k / sqrt(head_dim)) over the keys that are not masked. Rotary turns
/// Documents by their places in them; all else goes by places in the row, whose distances are those
/// within a document where its places follow one another. Communication: where groups or repeats of
/// heads are split one all-reduce of x's size (Megatron-LM), or a reduce-scatter where x's last
/// dimension is split; where the sequence is split an all-gather of keys and one of values, one of
/// the mask, (batch, keys), if there is one, and without documents a small minimum where it is
/// causal; weights that are split along embed are gathered. Collective over the mesh. Throws
/// ShapeError when extents disagree, UsageError when a number of the options is negative, or they
/// go by places between rows (CrossDocuments). Source: Vaswani et al. (2017), section 3.2; Ainslie
/// et al., "GQA" (2023); by blocks as in nn/blocked_attention.hpp.
template <class U, TypedTensor A, TypedTensor C, class V = AllValid>
A attention(const Attention<U>& layer, const A& x, const C& context,
            const AttentionOptions& options = {}, const V& valid = {},
            Where where = Where::here()) {
  return detail::attention_of(layer, x, context, options, valid, where,
                              [&](const auto& q, const auto& k, const auto& v, const auto& mask) {
                                return blocked_attention(q, k, v, options, mask, where);
                              });
}
/// The same with a number added to each score, by the key's distance and the head, where there is
/// such a bias. Communication: also that of its table and of the table's gradient.
template <class U, TypedTensor A, TypedTensor C, class V>
A attention(const Attention<U>& layer, const A& x, const C& context,
            const AttentionOptions& options, const V& valid,
            const std::optional<RelativeBias<U>>& bias, Where where = Where::here()) {
  if (!bias) return attention(layer, x, context, options, valid, where);
  return detail::attention_of(layer, x, context, options, valid, where,
                              [&](const auto& q, const auto& k, const auto& v, const auto& mask) {
                                return blocked_attention(q, k, v, options, mask, *bias, where);
                              });
}

}  // namespace tessera
