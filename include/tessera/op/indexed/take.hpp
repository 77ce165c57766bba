// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elements of a tensor at indices that are known only when the program runs: rows of a table, as
/// in an embedding look-up; elements along a dimension; NumPy's fancy indexing. The adjoint of a
/// take is a scatter by sum (op/indexed/scatter.hpp). op/to_host.hpp brings a whole tensor to every
/// process.
///
///     auto e = take<"vm,bs->bsm">(table, ids);          // e[b,s,m] = table[ids[b,s], m]
///     auto p = take<"bv,bs->bs">(scores, ids);          // along v, for each b by itself
///     auto c = take<"xyc,n,n->nc">(image, rows, cols);  // one tensor of indices a dropped letter
///     auto v = take<"xyc,nk->nc">(image, places);       // or a column a letter: places is (n, 2)
///     auto r = take<0>(table, ids);                     // NumPy's take along dimension 0
///     auto w = take<"vm,n->nVm">(table, rows, WindowSizes(3));  // w[n,k,m] = table[rows[n]+k, m]
///
/// Letters that the table has and the result drops are indexed, by one tensor of indices each, in
/// the table's order; one of these tensors may have columns, along a letter that nothing else has,
/// and then indexes as many letters (XLA's index vectors). A letter of both table and indices is a
/// batch: XLA's parallel dimensions. Where the result has an indexed letter in the other case, an
/// index names the beginning of a window along it, of the extent that WindowSizes gives (XLA's
/// slice sizes); there is one extent for each such letter, in the result's order.
///
/// An index outside its dimension is clamped into it, as XLA's gather does, or gives zero
/// (OutOfRange::drop); negative ones do not count from the end. A window lies within its dimension
/// whole: its beginning is clamped so that it does, or the whole window is zero.
///
/// Laws: equals plain loops over the whole tensors, to the bit (but for the payload of a NaN), for
/// every mesh and spec: -0 stays -0 where parts are summed. The messages do not depend on the
/// indices.
#include <concepts>
#include <initializer_list>

#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/indexed/take.hpp>

namespace tessera {

/// The extents of a take's windows, in the order of their letters in the result.
struct WindowSizes {
  Extents extents;
  template <std::integral... Size>
    requires(sizeof...(Size) > 0)
  explicit WindowSizes(Size... sizes) : extents{static_cast<Index>(sizes)...} {}
  template <std::same_as<Extents> Sizes>
  explicit WindowSizes(const Sizes& sizes) : extents(sizes) {}
};

/// What a take does with an index outside its dimension, and the extents of its windows, if it has
/// some: take(x, ids, OutOfRange::drop), take(x, ids, {WindowSizes(3), OutOfRange::drop}).
struct TakeSettings {
  OutOfRange out_of_range = OutOfRange::clamp;
  Extents windows = {};
  TakeSettings() = default;
  TakeSettings(OutOfRange outside) : out_of_range(outside) {}  // NOLINT: one setting is enough
  TakeSettings(const WindowSizes& sizes, OutOfRange outside = OutOfRange::clamp)  // NOLINT: as here
      : out_of_range(outside), windows(sizes.extents) {}
};

namespace detail {
/// How take<E> is made.
template <Equation E> struct TakeBy {
  static constexpr ops::Take make(const TensorDescs&) { return {parse(E.view())}; }
  static constexpr std::string_view label() { return E.view(); }
};
/// How take<Dim> is made.
template <int Dim> struct TakeAlong {
  static constexpr ops::Take make(const TensorDescs& x) {
    return {take_terms(x[0].rank(), x[1].rank(), Dim)};
  }
  static constexpr std::string_view label() { return "take"; }
};

template <class By, class Out, class Bound, class A, class... I>
typename Typed<By, Out, A, I...>::result run_take(const TakeSettings& settings,
                                                  const CallOptions& call, const A& x,
                                                  const I&... indices) {
  using Call = Typed<By, Out, A, I...>;
  use_indexed<typename A::value_type>();
  ops::Take operation = Call::operation;
  operation.out_of_range = settings.out_of_range;
  operation.windows = settings.windows;
  return run_typed<Call, Bound>(By::label(), call, operation, {&x.core(), &indices.core()...});
}
}  // namespace detail

/// Returns x at the indices, by the equation E: letters of x that the result drops are indexed.
/// Communication: none when no indexed dimension is split and the shardings fit; else, over the
/// axes that split them, an all-reduce of the result (a reduce-scatter where `Out` uses them, none
/// where it leaves them open), or whatever costs less. Collective over the mesh. Throws ShapeError
/// when extents disagree. Source: XLA's partitioning of gathers, as GShard's operators (section
/// 3.3). With windows each begins at an index; where an indexed dimension is split, each process
/// gives the part of every window that it has.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor I>
auto take(const A& x, const I& indices, const TakeSettings& settings = {},
          const CallOptions& call = Where::here()) {
  return detail::run_take<detail::TakeBy<E>, Out, Bound>(settings, call, x, indices);
}
/// These overloads take two and three indexed letters; the indices broadcast together by their
/// letters.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor I,
          TypedTensor J>
auto take(const A& x, const I& first, const J& second, const TakeSettings& settings = {},
          const CallOptions& call = Where::here()) {
  return detail::run_take<detail::TakeBy<E>, Out, Bound>(settings, call, x, first, second);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor I,
          TypedTensor J, TypedTensor K>
auto take(const A& x, const I& first, const J& second, const K& third,
          const TakeSettings& settings = {}, const CallOptions& call = Where::here()) {
  return detail::run_take<detail::TakeBy<E>, Out, Bound>(settings, call, x, first, second, third);
}

/// Returns x at the indices along dimension Dim, which the dimensions of the indices replace.
/// Communication: as take<E>. Collective over the mesh.
template <int Dim, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor I>
auto take(const A& x, const I& indices, OutOfRange out_of_range = OutOfRange::clamp,
          const CallOptions& call = Where::here()) {
  constexpr bool there = Dim >= 0 && Dim < A::rank;
  static_assert(there,
                "[tessera] take names a dimension that the tensor does not have; dimensions count "
                "from 0; name one of the tensor's");
  if constexpr (there)
    return detail::run_take<detail::TakeAlong<Dim>, Out, Bound>(out_of_range, call, x, indices);
  else
    return detail::Unknown<A>();
}

/// This overload takes everything at run time, and one to six tensors of indices; without a
/// sharding the result's is deduced. Typed calls name equation and dimension while compiling, since
/// the result's type follows from them.
inline DynamicTensor take(std::string_view equation, const DynamicTensor& x,
                          const detail::DynamicTensors& indices, const TakeSettings& settings = {},
                          const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site(equation);
  return detail::run_dynamic(
      equation, call, ops::Take{parse(equation), settings.out_of_range, {}, settings.windows},
      detail::operands_of({&x.core()}, indices, 2, site));
}
/// Along a dimension.
inline DynamicTensor take(const DynamicTensor& x, const DynamicTensor& indices, int dim,
                          OutOfRange out_of_range = OutOfRange::clamp,
                          const CallOptions& call = Where::here()) {
  const Terms terms = detail::take_terms(x.core().rank(), indices.core().rank(), dim);
  if (!terms.well_formed)
    throw ShapeError(
        "take: dimension " + std::to_string(dim) + " of a tensor of " +
            std::to_string(x.core().rank()) + " dimensions, by indices of " +
            std::to_string(indices.core().rank()) +
            ", is not possible; name a dimension of the tensor, and a result of at most " +
            std::to_string(max_dims) + " dimensions",
        call.where());
  return detail::run_dynamic("take", call, ops::Take{terms, out_of_range},
                             {&x.core(), &indices.core()});
}

}  // namespace tessera
