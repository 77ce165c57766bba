// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Layers of a Transformer for all stages of a pipeline at once, as pipeline/shifted.hpp runs them:
/// attention, a feed-forward layer and a mixture of experts, whose stages lie along one axis, and
/// whose rows, heads and experts others split.
///
///     using N = Nested<Grid, x, Axes<y>, _, y>;       // stages over x; rows, and experts too, over y
///     N::State after = N::encoder(weights, state);
///
/// A state is (stages, rows, tokens, embed).
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/nn.hpp>
#include <tessera/pipeline/shifted.hpp>
#include <tessera/tessera.hpp>

#include "support/larger.hpp"

namespace nested_test {
using namespace tessera;

/// Sizes of a layer.
struct Sizes {
  Index stages = 4, embed = 8, heads = 2, each = 3, hidden = 6, experts = 4;
};

/// Scores of keys that a query of the first `texts` tokens sees: of those that are not after it,
/// and of all tokens from there on.
struct SeenFrom {
  Index texts;
  KOKKOS_FUNCTION bool sees(const GlobalIndex& i) const { return i[4] <= i[3] || i[4] >= texts; }
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T score) const {
    return sees(i) ? score : -std::numeric_limits<T>::infinity();
  }
  template <class T> KOKKOS_FUNCTION T derivative(const GlobalIndex& i, T) const {
    return sees(i) ? T{1} : T{};
  }
};
/// No number where zero is given, else zero.
struct NoneOfZero {
  template <class T> KOKKOS_FUNCTION T operator()(T x) const {
    return x == T{} ? static_cast<T>(NAN) : T{};
  }
};

/// Axes and then others.
template <class First, class Rest> struct Joined;
template <class... A, class... B> struct Joined<Axes<A...>, Axes<B...>> {
  using type = Axes<A..., B...>;
};
/// Axes without one.
template <class All, class Gone> struct Without1;
template <class... A, class Gone> struct Without1<Axes<A...>, Gone> {
  template <class... K> static constexpr auto joined(Axes<K...>) { return Axes<K...>{}; }
  template <class... K, class F, class... Rest>
  static constexpr auto joined(Axes<K...>, F*, Rest*... rest) {
    if constexpr (std::is_same_v<F, Gone>)
      return joined(Axes<K...>{}, rest...);
    else
      return joined(Axes<K..., F>{}, rest...);
  }
  using type = decltype(joined(Axes<>{}, static_cast<A*>(nullptr)...));
};

/// The layers on a mesh: stages over the axis S, rows over the axes D, heads and hidden elements
/// over H, experts over K.
template <class Grid, class S, class D, class H, class K> struct Nested {
  template <class... E> using Tensor = ShardedTensor<double, Grid, P<E...>>;
  using State = Tensor<S, D, _, _>;
  using Rows = Tensor<_, D, _, _>;  ///< (micro-batches, rows, tokens, embed)

  struct Layer {
    Tensor<S, _, H, _> query, key, value;  ///< (stages, embed, heads, each)
    Tensor<S, H, _, _> joined;             ///< (stages, heads, each, embed)
    Tensor<S, _, _> gate;                  ///< (stages, embed, experts)
    Tensor<S, K, _, H> in;                 ///< (stages, experts, embed, hidden)
    Tensor<S, K, H, _> out;                ///< (stages, experts, hidden, embed)
    static constexpr auto fields = Fields<&Layer::query, &Layer::key, &Layer::value, &Layer::joined,
                                          &Layer::gate, &Layer::in, &Layer::out>{};

    static Layer like(Parameters<Grid>& make, const Sizes& n) {
      const auto fan = [](Index inputs) { return Initializer::fan_in(inputs); };
      Layer l;
      l.query =
          make.template tensor<decltype(query)>({n.stages, n.embed, n.heads, n.each}, fan(n.embed));
      l.key =
          make.template tensor<decltype(key)>({n.stages, n.embed, n.heads, n.each}, fan(n.embed));
      l.value =
          make.template tensor<decltype(value)>({n.stages, n.embed, n.heads, n.each}, fan(n.embed));
      l.joined = make.template tensor<decltype(joined)>({n.stages, n.heads, n.each, n.embed},
                                                        fan(n.heads * n.each));
      l.gate = make.template tensor<decltype(gate)>({n.stages, n.embed, n.experts}, fan(n.embed));
      l.in = make.template tensor<decltype(in)>({n.stages, n.experts, n.embed, n.hidden},
                                                fan(n.embed));
      l.out = make.template tensor<decltype(out)>({n.stages, n.experts, n.hidden, n.embed},
                                                  fan(n.hidden));
      return l;
    }
  };

  /// Rows of mean square 1; of zeros, zeros.
  static State normal(const State& s) {
    const auto mean_square =
        einsum<"zbte,zbte->zbt", P<S, D, _>>(s, s) * (1.0 / static_cast<double>(s.extent(3)));
    return State(map<"zbte,zbt->zbte">(fn::Multiply{}, s, rsqrt(mean_square + 1e-3)));
  }
  /// What the first `texts` tokens see of all.
  static State attended(const Layer& w, const State& s, Index texts) {
    const auto of = [&](const auto& projection) {
      return einsum<"zbte,zehd->zbthd", P<S, D, _, H, _>>(s, projection);
    };
    const auto scores = einsum<"zbthd,zbuhd->zbhtu", P<S, D, H, _, _>>(of(w.query), of(w.key));
    const auto weights = softmax<"zbhtu", 'u'>(map_with_index(SeenFrom{texts}, scores));
    return einsum<"zbthd,zhde->zbte", P<S, D, _, _>>(
        einsum<"zbhtu,zbuhd->zbthd", P<S, D, _, H, _>>(weights, of(w.value)), w.joined);
  }
  /// The mixture of experts of each stage: rows of all stages are the groups of one gating. Second
  /// experts are drawn by the token's number, counted from the first of stage `stage` on.
  static State mixed(const Layer& w, const State& s, Index stage) {
    using All = typename Joined<Axes<S>, D>::type;
    using Left = typename Without1<D, K>::type;
    const Index z = s.extent(0), b = s.extent(1), t = s.extent(2), e = s.extent(3),
                k = w.gate.extent(2);
    const auto logits =
        reshape<P<All, _, _>>(einsum<"zbte,zek->zbtk", P<S, D, _, _>>(s, w.gate), {z * b, t, k});
    const auto gating = top2_gating(logits, expert_capacity(t, k, 1.25), {11, 2, stage * b * t});
    const auto tokens = reshape<P<All, _, _>>(s, {z * b, t, e});
    const auto buffers = to_buffers(tokens, gating);  // (experts, groups, places, embed)
    const Index c = buffers.extent(2);
    const auto sent =
        reshard<P<K, S, Left, _, _>>(reshape<P<_, S, D, _, _>>(buffers, {k, z, b, c, e}));
    const auto made = einsum<"kzbcf,zkfe->kzbce", P<K, S, Left, _, _>>(
        tanh(einsum<"kzbce,zkef->kzbcf", P<K, S, Left, _, H>>(sent, w.in)), w.out);
    const auto back = reshape<P<_, All, _, _>>(reshard<P<_, S, D, _, _>>(made), {k, z * b, c, e});
    return reshape<P<S, D, _, _>>(from_buffers<std::remove_const_t<decltype(tokens)>>(back, gating),
                                  {z, b, t, e});
  }
  /// A layer of an encoder: all tokens see all others. The first of the stages is number `stage`.
  static State encoder(const Layer& w, const State& s, Index stage = 0) {
    const State first = s + attended(w, normal(s), 0);
    return first + mixed(w, normal(first), stage);
  }
  /// A layer of a decoder: the first `texts` tokens are read and written, and see what is behind
  /// them, which stays.
  static State decoder(const Layer& w, const State& s, Index texts, Index stage = 0) {
    const Index all = s.extent(2);
    const State seen = State(slice<2>(attended(w, normal(s), texts), {0}, {texts}));
    const State first = State(slice<2>(s, {0}, {texts})) + seen;
    return State(
        concatenate<2>(first + mixed(w, normal(first), stage), slice<2>(s, {texts}, {all})));
  }

  /// The stages one after the other, each micro-batch by itself: what shifted<S> is to give. For
  /// meshes of one process.
  template <class F> static Rows in_order(const F& f, const Layer& w, const Rows& x, Index stages) {
    std::vector<Rows> all;
    for (Index m = 0; m < x.extent(0); ++m) {
      State s = reshard<P<S, D, _, _>>(slice<0>(x, {m}, {m + 1}));
      for (Index z = 0; z < stages; ++z) {
        const Layer own = map_tensors(
            [&](const auto& tensor) {
              return std::remove_cvref_t<decltype(tensor)>(slice<0>(tensor, {z}, {z + 1}));
            },
            w);
        s = f(own, s, z);
      }
      all.push_back(reshard<P<_, D, _, _>>(s));
    }
    return tessera::detail::behind_each_other(all);
  }
};

inline void append(std::vector<double>& to, const auto& tree) {
  for_each_tensor(
      [&](const auto& x) {
        const auto host = to_host(x);
        to.insert(to.end(), host.values.begin(), host.values.end());
      },
      tree);
}
/// The largest difference, by the largest number; infinite where one is none.
inline double apart(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double most = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = support::larger(most, std::abs(a[i] - b[i]));
    scale = std::max(scale, std::abs(b[i]));
  }
  return most / scale;
}

}  // namespace nested_test
