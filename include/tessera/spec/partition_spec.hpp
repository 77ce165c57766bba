// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A sharding as a type: for each tensor dimension the mesh axis (or axes) that split it.
///
///     using A = P<data, _, model>;            // dimension 0 over data, 1 whole, 2 over model
///     using B = P<Axes<data, model>, _>;      // dimension 0 over both, data major
///     using C = P<_, _, Unreduced<Sum, model>>;   // values still to be summed over model
///
/// Laws: equal shardings are one type: P<Axes<a>> is P<a>, P<Axes<>> is P<_>, partial axes are
/// sorted. lower<M, S>() and spec_of<M, Provider> are inverse to each other.
#include <type_traits>
#include <utility>

#include <tessera/mesh/mesh.hpp>
#include <tessera/spec/verdict.hpp>

namespace tessera {

/// A dimension that is not split.
struct Replicated {};
using _ = Replicated;

/// A dimension of which nothing is said: how it is split is chosen (program/choice.hpp). A tensor's
/// type promises its other entries, and x.sharding() says how the open ones are split.
struct Open {};

/// Several axes on one dimension; the first is the major one.
template <class... A> struct Axes {};

/// Comes last in a spec: values are partial over A... and must be combined by Kind (Sum, Product,
/// Max, Min; for bools Any, All).
template <class Kind, class... A> struct Unreduced {};

template <class... Dims> struct PartitionSpec { static constexpr int entries = sizeof...(Dims); };

namespace detail {
/// Chooses a type and instantiates neither: std::conditional would be one more class for each
/// choice.
template <bool> struct Choose { template <class Yes, class> using type = Yes; };
template <> struct Choose<false> { template <class, class No> using type = No; };

template <class... A> struct AxisPack {};  // partial axes, sorted by their full name

template <class Pack, class A> struct InsertSorted;
template <class A> struct InsertSorted<AxisPack<>, A> { using type = AxisPack<A>; };
template <class Pack, class A> struct Prepend;
template <class... Rest, class A> struct Prepend<AxisPack<Rest...>, A> {
  using type = AxisPack<A, Rest...>;
};
template <class A, class... Rest> struct InsertSorted<AxisPack<A, Rest...>, A> {
  using type = AxisPack<A, Rest...>;  // a repeated axis counts once
};
template <class First, class... Rest, class A> struct InsertSorted<AxisPack<First, Rest...>, A> {
  static constexpr bool before = full_type_name<A>() < full_type_name<First>();
  using type = typename Choose<before>::template type<
      std::type_identity<AxisPack<A, First, Rest...>>,
      Prepend<typename InsertSorted<AxisPack<Rest...>, A>::type, First>>::type;
};
template <class Kind, class Pack> struct ToUnreduced;
template <class Kind, class... A> struct ToUnreduced<Kind, AxisPack<A...>> {
  using type = Unreduced<Kind, A...>;
};
template <class Pack, class... A> struct SortAxes { using type = Pack; };
template <class Pack, class First, class... Rest>
struct SortAxes<Pack, First, Rest...>
    : SortAxes<typename InsertSorted<Pack, First>::type, Rest...> {};

template <class D> struct CanonicalDim { using type = D; };
template <class A> struct CanonicalDim<Axes<A>> { using type = A; };
template <> struct CanonicalDim<Axes<>> { using type = Replicated; };
template <class Kind, class... A>
struct CanonicalDim<Unreduced<Kind, A...>>
    : ToUnreduced<Kind, typename SortAxes<AxisPack<>, A...>::type> {};

template <class D> struct IsUnreduced : std::false_type {};
template <class Kind, class... A> struct IsUnreduced<Unreduced<Kind, A...>> : std::true_type {};
template <class D> struct IsNothing : std::false_type {};  // Unreduced over no axis is dropped
template <class Kind> struct IsNothing<Unreduced<Kind>> : std::true_type {};

template <class Spec, class... D> struct CanonicalSpec { using type = Spec; };
template <class... Done, class First, class... Rest>
struct CanonicalSpec<PartitionSpec<Done...>, First, Rest...>
    : CanonicalSpec<
          typename Choose<IsNothing<First>::value>::template type<
              PartitionSpec<Done...>, PartitionSpec<Done..., typename CanonicalDim<First>::type>>,
          Rest...> {
  static_assert(!IsUnreduced<First>::value || sizeof...(Rest) == 0,
                "[tessera] Unreduced stands in the middle of a spec; a spec has one entry for each "
                "dimension and then at most one Unreduced<Kind, axes...>; put it last");
};

// Written by lowering for an axis that the mesh does not have.
inline constexpr int unknown_axis = 15;

template <class M, class A> constexpr int index_or_unknown() {
  return M::template index<A> >= 0 ? M::template index<A> : unknown_axis;
}
template <class M, class D> struct LowerDim {
  static constexpr void add(Sharding& s) {
    s.dims.push_back(AxisList{});
    s.dims.back().push_back(index_or_unknown<M, D>());
  }
};
template <class M> struct LowerDim<M, Replicated> {
  static constexpr void add(Sharding& s) { s.dims.push_back(AxisList{}); }
};
template <class M> struct LowerDim<M, Open> {
  static constexpr void add(Sharding& s) { s.dims.push_back(AxisList{open_axis}); }
};
template <class M, class... A> struct LowerDim<M, Axes<A...>> {
  static constexpr void add(Sharding& s) {
    s.dims.push_back(AxisList{});
    (s.dims.back().push_back(index_or_unknown<M, A>()), ...);
  }
};
template <class M, class Kind, class... A> struct LowerDim<M, Unreduced<Kind, A...>> {
  static constexpr void add(Sharding& s) {
    (s.partial.insert(index_or_unknown<M, A>()), ...);
    s.reduction = Kind::reduction;
  }
};
template <class M, class S> struct Lower;
template <class M, class... D> struct Lower<M, PartitionSpec<D...>> {
  static constexpr int dimensions = (0 + ... + (IsUnreduced<D>::value ? 0 : 1));
  static constexpr Sharding make() {
    static_assert(dimensions <= max_dims,
                  "[tessera] a PartitionSpec has more than 8 entries; a tensor has at most 8 "
                  "dimensions; merge neighbouring dimensions with reshape");
    Sharding s;
    if constexpr (dimensions <= max_dims) (LowerDim<M, D>::add(s), ...);
    return s;
  }
  static constexpr Sharding value = make();
};
}  // namespace detail

/// The canonical spelling of a spec; use it wherever a spec is written.
template <class... Dims> using P = typename detail::CanonicalSpec<PartitionSpec<>, Dims...>::type;

namespace detail {
/// Returns the value of spec S on mesh M.
template <class M, class S> constexpr const Sharding& lower() { return detail::Lower<M, S>::value; }

template <class M, class Provider, int D, class Is> struct DimOf;
template <class M, class Provider, int D> struct DimOf<M, Provider, D, std::index_sequence<>> {
  using type = Replicated;
};
template <class M, class Provider, int D> struct DimOf<M, Provider, D, std::index_sequence<0>> {
  using type = typename M::template axis<Provider::value[D][0]>;
};
template <class M, class Provider, int D>
struct DimOf<M, Provider, D, std::make_index_sequence<max_axes + 1>> {
  using type = Open;
};
/// Returns the number of a dimension's axes; one that is Open counts as more than there can be.
constexpr std::size_t axes_in_type(const AxisList& axes) {
  return static_cast<std::size_t>(is_open(axes) ? max_axes + 1 : axes.size());
}
template <class M, class Provider, int D, std::size_t... I>
struct DimOf<M, Provider, D, std::index_sequence<I...>> {
  using type = Axes<typename M::template axis<Provider::value[D][static_cast<int>(I)]>...>;
};
constexpr int nth_axis(AxisSet set, int n) {
  for (int axis = 0; axis < max_axes; ++axis)
    if (set.contains(axis) && n-- == 0) return axis;
  return 0;
}
/// Marks the spec of a result made up for a call with a mistake whose message has been given: uses
/// of the result are not checked, so that one mistake gives one message.
template <class S> struct Unfounded {};
template <class M, class S> struct Lower<M, Unfounded<S>> : Lower<M, S> {};
template <Reduction R> struct ReductionTag { using type = Sum; };
template <> struct ReductionTag<Reduction::product> { using type = Product; };
template <> struct ReductionTag<Reduction::max> { using type = Max; };
template <> struct ReductionTag<Reduction::min> { using type = Min; };
template <> struct ReductionTag<Reduction::any> { using type = Any; };
template <> struct ReductionTag<Reduction::all> { using type = All; };
template <Reduction R> using reduction_tag = typename ReductionTag<R>::type;

template <class M, class Provider, class Ds, class Ps> struct SpecOf;
template <class M, class Provider, std::size_t... D, std::size_t... I>
struct SpecOf<M, Provider, std::index_sequence<D...>, std::index_sequence<I...>> {
  // Does not use the alias P: clang would print its arguments in place of the type.
  using type = typename CanonicalSpec<
      PartitionSpec<>,
      typename DimOf<
          M, Provider, static_cast<int>(D),
          std::make_index_sequence<axes_in_type(Provider::value[static_cast<int>(D)])>>::type...,
      Unreduced<reduction_tag<Provider::value.reduction>,
                typename M::template axis<nth_axis(Provider::value.partial,
                                                   static_cast<int>(I))>...>>::type;
};

/// The spec type of the sharding Provider::value (a static constexpr member) on mesh M.
template <class M, class Provider>
using spec_of = typename detail::SpecOf<
    M, Provider, std::make_index_sequence<static_cast<std::size_t>(Provider::value.rank())>,
    std::make_index_sequence<static_cast<std::size_t>(Provider::value.partial.size())>>::type;

template <class M, class S> constexpr Verdict check_spec() {
  return check(whole_where_open(lower<M, S>()), M::rank);
}
template <class M, class S> consteval bool demand_spec() {
  constexpr Verdict verdict = check_spec<M, S>();
  if constexpr (!verdict.ok()) return InvalidOperator<verdict.rule, S, M>::said();
  return true;
}

/// S is a legal spec on mesh M.
template <class S, class M>
concept SpecOn = detail::check_spec<M, S>()
.ok();
}  // namespace detail

/// Returns spec S on mesh type M as the value that dynamic tensors take:
/// named_sharding<Grid, P<data, _>>() == Sharding{{0}, {}}, where data is Grid's first axis. A spec
/// that the mesh cannot have does not compile. Communication: none.
template <class M, class S> constexpr Sharding named_sharding() {
  static_assert(detail::demand_spec<M, S>());
  return detail::lower<M, S>();
}
}  // namespace tessera
