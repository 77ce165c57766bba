// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Experts that drop nothing, whatever their load: the rows of tokens lie sorted by expert, in
/// tiles of which each belongs to one expert, so that the products are those of the rows there are,
/// and of at most a tile more for each expert.
///
///     const X y = by_sorted_rows(layer, x, gating, options, fn::Relu{}, where);
///
/// A choice of a token goes to the holder of its expert: the part of the axes that split experts
/// where that lies. A holder has `rows` places for each group, all of which are sent, and tiles for
/// them, all of which are computed: as many as the host has counted at the fullest holder, or,
/// where it does not count, as many as tokens could go there: each has no more choices there than
/// the holder has experts. Of D holders these are up to D times the choices that there are, and the
/// tiles have up to twice as many rows as places. An all-to-all brings rows and their experts'
/// numbers; the holder puts the rows where the tiles of their experts are, and the way back is the
/// same the other way. The last tiles may have no rows.
///
/// Source: Gale et al., "MegaBlocks" (2022), with tiles in place of block-sparse products.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <tessera/nn/experts/experts.hpp>
#include <tessera/nn/experts/top_k_gating.hpp>
#include <tessera/nn/mixture_of_experts.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/product/epilogue.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/shape/pad.hpp>
#include <tessera/op/shape/reshape.hpp>
#include <tessera/op/to_host.hpp>

namespace tessera {
namespace fn {
/// The number of what a choice or place has, by a sum of numbers from 1 on; -1: none.
struct NumberFromSum {
  static constexpr std::string_view name = "number of a place";
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t sum) const { return sum - 1; }
};
/// A choice that has a place; of an expert that there is not, for others.
struct ChoiceIfSent {
  static constexpr std::string_view name = "sent";
  Index experts;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t expert, std::int64_t position) const {
    return position < 0 ? experts : expert;
  }
};
/// The holder of an expert; one that there is not, for none.
struct HolderOf {
  static constexpr std::string_view name = "holder";
  Index experts, each, holders;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t expert) const {
    return expert < experts ? expert / each : holders;
  }
};
/// The number of an expert at its holder, from 1 on.
struct NumberAtHolder {
  static constexpr std::string_view name = "expert at its holder";
  Index each;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t expert) const { return expert % each + 1; }
};
struct TilesOf {
  static constexpr std::string_view name = "tiles";
  Index tile;
  KOKKOS_FUNCTION std::int32_t operator()(std::int32_t rows) const {
    return static_cast<std::int32_t>(ceil_div(Index{rows}, tile));
  }
};
/// Where a row lies: that of its rank among its expert's rows, which begin at a tile; -1 for none.
struct PlaceInTiles {
  static constexpr std::string_view name = "place in tiles";
  Index tile;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t expert, std::int32_t rank,
                                          std::int32_t first) const {
    return expert < 0 ? -1 : first * tile + rank;
  }
};
/// Where a choice's row lies at its holder; -1 where there is none.
struct PlaceAtHolder {
  static constexpr std::string_view name = "place at a holder";
  Index holders;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t holder, std::int32_t before,
                                          std::int32_t earlier) const {
    return holder < holders ? std::int64_t{before} + earlier : -1;
  }
};
struct NumberAlong2 {
  static constexpr std::string_view name = "number of a row";
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i, std::int64_t) const {
    return i[2] + 1;
  }
};
/// 1 for an expert whose tiles end at this one or before.
struct EndedBefore {
  static constexpr std::string_view name = "ended";
  KOKKOS_FUNCTION std::int32_t operator()(std::int32_t end, std::int64_t tile) const {
    return end <= tile ? 1 : 0;
  }
};
}  // namespace fn

namespace detail {
/// Runs f as a layer of a Program.
template <class X, class F> auto in_layer(const X& x, const char* name, Where where, const F& f) {
  const Layer scope(x, name, where);
  return f();
}
/// Returns the sum of each token's rows, (G, S, K, M), by its weights, as tokens X.
template <class X, class HeldRows, class Weights>
X weighed(const HeldRows& rows, const Weights& weights, Where where) {
  using Real = typename Weights::value_type;
  using T = typename X::value_type;
  if constexpr (std::is_same_v<T, Real>)
    return X(einsum<"gskm,gsk->gsm", typename X::spec>(rows, weights, where));
  else
    return X(cast<T>(
        einsum<"gskm,gsk->gsm", typename X::spec>(cast<Real>(rows, where), weights, where), where));
}

/// How rows are laid out. There are `holders` of `experts` each, and `parts` of the groups at each,
/// of `groups` groups; these have `rows` places each, and a part `tiles` tiles of `tile` rows.
struct SortedSizes {
  Index holders, experts, parts, groups, rows, tile, tiles;

  /// Sets what follows from rows of a group and in all of a part.
  void hold(Index of_group, Index of_part) {
    rows = max_of(of_group, Index{1});
    const Index all = max_of(of_part, Index{1});
    tile = ceil_div(all, experts);
    tiles = min_of(all, all / tile + experts);
  }
  /// Sets room for so many choices of a group at each holder.
  void hold_all(Index choices) { hold(choices, groups * choices); }
  /// Sets room for the choices that there are of each group for each holder, (G, D) row-major, at
  /// most `choices`, rounded up by a sixteenth of that, so that few plans are made.
  void hold(const std::vector<std::int64_t>& counts, Index choices) {
    const Index step = max_of(choices / 16, Index{1});
    Index most = 0, most_of_part = 0;
    const auto all = static_cast<Index>(counts.size()) / holders;
    for (Index d = 0; d < holders; ++d)
      for (Index first = 0; first < all; first += groups) {
        Index sum = 0;
        for (Index g = first; g < min_of(first + groups, all); ++g) {
          const Index n = counts[static_cast<std::size_t>(g * holders + d)];
          most = max_of(most, n);
          sum += n;
        }
        most_of_part = max_of(most_of_part, sum);
      }
    const Index of_group = min_of(ceil_div(most, step) * step, choices);
    hold(of_group, min_of(ceil_div(most_of_part, step) * step, groups * of_group));
  }
};

/// Specs of rows and of weights at holders, for tokens X and weights W (E, M, H): D holders, Q
/// parts of the groups, which keep the axes that split neither experts nor H.
template <class X, class W> struct AtHolders {
  static constexpr AxisList closed(const AxisList& axes) {
    return is_open(axes) ? AxisList{} : axes;
  }
  static constexpr AxisList d = closed(TensorFacts<W>::sharding()[0]),
                            h = closed(TensorFacts<W>::sharding()[2]),
                            q = without(without(closed(TensorFacts<X>::sharding()[0]), d), h),
                            m = without(without(closed(TensorFacts<X>::sharding()[2]), d), q),
                            w = without(without(closed(TensorFacts<W>::sharding()[1]), d), q);
  struct Ids {
    static constexpr Sharding value{d, q, {}};
  };
  struct Each {
    static constexpr Sharding value{d, q, {}, {}};
  };
  struct Back {
    static constexpr Sharding value{
        {}, closed(TensorFacts<X>::sharding()[0]), {}, closed(TensorFacts<X>::sharding()[2])};
  };
  struct HeldRows {
    static constexpr Sharding value{d, q, {}, m};
  };
  struct Tiles {
    static constexpr Sharding value{d, q, {}, {}, m};
  };
  struct Hidden {
    static constexpr Sharding value{d, q, {}, {}, h};
  };
  struct In {
    static constexpr Sharding value{d, q, {}, w, h};
  };
  struct Out {
    static constexpr Sharding value{d, q, {}, h, w};
  };
  struct Weight {
    static constexpr Sharding value{d, {}, w, h};
  };
  struct WeightOut {
    static constexpr Sharding value{d, {}, h, w};
  };
  template <class S> using Spec = spec_of<typename X::mesh_type, S>;
};

/// Returns x with `n` elements along dimension D, of zeros where there are more, or as x has them.
template <int D, class Spec, class A> auto resized(const A& x, Index n, Where where) {
  const Index more = n - x.extent(D);
  using T = typename A::value_type;
  return more == 0 ? reshard<Spec>(x, where)
                   : reshard<Spec>(pad<D>(x, {0}, {more}, {}, T{}, where), where);
}

/// Returns the weights (E, A, B) by holder, (D, E, A, B).
template <class Spec, class W>
auto at_holders(const W& weights, const SortedSizes& n, Where where) {
  const Index all = n.holders * n.experts;
  return reshape<Spec>(resized<0, typename W::spec>(weights, all, where),
                       {n.holders, n.experts, weights.extent(1), weights.extent(2)}, where);
}

/// Returns what the experts make of tokens x, (G, S, M), by such a gating.
template <class U, class X, class Logits, class F>
X by_sorted_rows(const Experts<U>& layer, const X& x, const TopKGating<Logits>& gating,
                 const ExpertOptions& options, const F& activation, Where where) {
  using At = AtHolders<X, decltype(layer.in)>;
  using Ids = typename At::template Spec<typename At::Ids>;
  using HeldRows = typename At::template Spec<typename At::HeldRows>;
  using Choice = SpecOfDims<X, 0, 1, -1>;
  using AllRows = SpecOfDims<X, -1, 0, -1, 2>;
  using AllIds = SpecOfDims<X, -1, 0, -1>;
  const MeshShape& mesh = x.core().mesh()->shape();
  const Index groups = x.extent(0), experts = layer.gate.extent(1), k = gating.experts.extent(2);
  SortedSizes n{};
  n.holders = mesh.group_size(At::d.set());
  n.experts = ceil_div(experts, n.holders);
  n.parts = mesh.group_size(At::q.set());
  n.groups = ceil_div(groups, n.parts);
  const Index choices = x.extent(1) * min_of(k, n.experts);  // of a group at one holder, at most

  typename TopKGating<Logits>::Choices chosen = gating.experts;
  if (options.draw)  // which may leave choices out; else all have a place
    chosen =
        map<"gsk,gsk->gsk", Choice>(fn::ChoiceIfSent{experts}, chosen, gating.positions, where);
  const auto holder =
      map<"gsk->gsk", Choice>(fn::HolderOf{experts, n.experts, n.holders}, chosen, where);
  const ChoiceRanks ranks(holder, n.holders, where);
  const TensorCore& counts = ranks.count.core();
  if (options.counted && !counts.dry() &&
      !counts.storage()->promised())  // a listed one has no values yet
    n.hold(to_host(cast<std::int64_t>(ranks.count, where), where).values, choices);
  else
    n.hold_all(choices);
  const auto position = map<"gsk,gsk,gsk->gsk", Choice>(fn::PlaceAtHolder{n.holders}, holder,
                                                        ranks.before, ranks.earlier, where);

  // 1. Rows and their experts' numbers, at their holders.
  const auto sent = in_layer(x, "dispatch", where, [&] {
    const auto token = map<"gdc->gdc">(
        fn::NumberFromSum{},
        scatter<Sum, "gsk,gsk,gsk->gdc", SpecOfDims<X, 0, -1, -1>>(
            holder, position, map_with_index<"gsk->gsk">(fn::NumberInGroup{}, holder, where),
            {n.holders, n.rows}, OutOfRange::drop, where),
        where);
    const auto expert = scatter<Sum, "gsk,gsk,gsk->dgc", AllIds>(
        holder, position, map<"gsk->gsk">(fn::NumberAtHolder{n.experts}, chosen, where),
        {n.holders, n.rows}, OutOfRange::drop, where);
    const auto taken =
        reshard<HeldRows>(take<"gsm,gdc->dgcm", AllRows>(x, token, OutOfRange::drop, where), where);
    const Index all = n.parts * n.groups, of_part = n.groups * n.rows;
    return std::pair(
        reshape<HeldRows>(resized<1, HeldRows>(taken, all, where),
                          {n.holders, n.parts, of_part, x.extent(2)}, where),
        reshape<Ids>(map(fn::NumberFromSum{},
                         resized<1, Ids>(reshard<Ids>(expert, where), all, where), where),
                     {n.holders, n.parts, of_part}, where));
  });
  const auto& rows = sent.first;
  const auto& ids = sent.second;

  // 2. Where the rows of each expert's tiles are.
  const auto ones = map<"dqr,e->dqre", typename At::template Spec<typename At::Each>>(
      fn::OneWhereSame{}, ids, numbers_on<P<_>>(ids, {n.experts}), where);
  const auto tiles =
      map(fn::TilesOf{n.tile}, reduce<As<Sum, std::int32_t>, "dqre->dqe", Ids>(ones, where), where);
  const auto first =
      cumulative<As<Sum, std::int32_t>, "dqe", 'e'>(tiles, {.exclusive = true}, where);
  const auto rank = take<"dqre,dqr->dqr", Ids>(
      cumulative<As<Sum, std::int32_t>, "dqre", 'r'>(ones, {.exclusive = true}, where), ids,
      OutOfRange::drop, where);
  const auto place = map<"dqr,dqr,dqr->dqr", Ids>(
      fn::PlaceInTiles{n.tile}, ids, rank,
      take<"dqe,dqr->dqr", Ids>(first, ids, OutOfRange::drop, where), where);
  const auto row =
      map<"dqt->dqt">(fn::NumberFromSum{},
                      scatter<Sum, "dqr,dqr->dqt", Ids>(
                          place, map_with_index<"dqr->dqr">(fn::NumberAlong2{}, ids, where),
                          {n.tiles * n.tile}, OutOfRange::drop, where),
                      where);
  const auto expert = reduce<Sum, "dqte->dqt", Ids>(
      map<"dqe,t->dqte", typename At::template Spec<typename At::Each>>(
          fn::EndedBefore{}, cumulative<As<Sum, std::int32_t>, "dqe", 'e'>(tiles, {}, where),
          numbers_on<P<_>>(ids, {n.tiles}), where),
      where);

  // 3. Tiles, each by its expert's weights.
  const auto made = in_layer(x, "experts", where, [&] {
    const auto given = reshape<typename At::template Spec<typename At::Tiles>>(
        take<"dqrm,dqt->dqtm", HeldRows>(rows, row, OutOfRange::drop, where),
        {n.holders, n.parts, n.tiles, n.tile, x.extent(2)}, where);
    const auto in = take<"demh,dqt->dqtmh", typename At::template Spec<typename At::In>>(
        at_holders<typename At::template Spec<typename At::Weight>>(layer.in, n, where), expert,
        OutOfRange::clamp, where);
    const auto out = take<"dehm,dqt->dqthm", typename At::template Spec<typename At::Out>>(
        at_holders<typename At::template Spec<typename At::WeightOut>>(layer.out, n, where), expert,
        OutOfRange::clamp, where);
    const auto hidden =
        einsum<"dqtbm,dqtmh->dqtbh", typename At::template Spec<typename At::Hidden>>(
            given, in, then(activation), where);
    return einsum<"dqtbh,dqthm->dqtbm", typename At::template Spec<typename At::Tiles>>(hidden, out,
                                                                                        where);
  });

  // 4. Back to the tokens.
  return in_layer(x, "combine", where, [&] {
    const auto by_row = take<"dqtm,dqr->dqrm", HeldRows>(
        reshape<HeldRows>(made, {n.holders, n.parts, n.tiles * n.tile, x.extent(2)}, where), place,
        OutOfRange::drop, where);
    const auto by_group =
        reshape<HeldRows>(by_row, {n.holders, n.parts * n.groups, n.rows, x.extent(2)}, where);
    const auto back = reshard<typename At::template Spec<typename At::Back>>(
        resized<1, HeldRows>(by_group, groups, where), where);
    return weighed<X>(take<"dgcm,gsk,gsk->gskm", SpecOfDims<X, 0, 1, -1, 2>>(
                          back, holder, position, OutOfRange::drop, where),
                      gating.weights, where);
  });
}

}  // namespace detail
}  // namespace tessera
