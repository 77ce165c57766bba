// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Updates joined into a tensor at indices that are known only when the program runs: gradients of
/// look-ups, histograms, tokens sent to their places. For the updates, the adjoint of a scatter by
/// sum is a take (op/indexed/take.hpp) of the result's gradient.
///
///     auto t = scatter<Sum, "vm,bs,bsm->vm">(table, ids, updates);  // t[ids[b,s], m] += ...
///     auto h = scatter<Sum, "bs,bsm->vm">(ids, updates, {100});     // into zeros
///     auto s = scatter<Set, "vm,bs,bsm->vm">(table, ids, updates);  // the last one stays
///     scatter_into<Sum, "vm,bs,bsm->vm">(table, ids, updates);      // in place
///
/// Kinds are Sum, Product, Max, Min (of bool Any, All) and Set. Letters of the result that the
/// updates lack are indexed, by one tensor of indices each, or by columns of one, as in a take, in
/// the result's order. Letters that the result lacks are the updates' own: all updates along them
/// are joined; but an indexed letter in the other case is a window, which lies in the table from
/// the index on, as in a take: scatter<Sum, "vm,b,bVm->vm">(table, ids, updates). A letter of
/// indices and result is a batch.
///
/// An update whose index lies outside its dimension is left out, as XLA's scatter does, or clamped
/// into it (OutOfRange::clamp); a window that does not lie within its dimension whole, likewise.
///
/// Laws: equals plain loops over the whole tensors, updates in row-major order, for every mesh and
/// spec: integers, Max, Min and Set to the bit, float sums to rounding (each process sums a row in
/// double). Set keeps the last update in row-major order. The messages do not depend on the
/// indices; the same mesh and inputs give the same bits.
#include <initializer_list>

#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>

namespace tessera {

/// Updates replace the old elements.
struct Set {
  static constexpr Reduction reduction = Reduction::none;
};

/// What a scatter does with an update whose index lies outside its dimension.
struct ScatterSettings {
  OutOfRange out_of_range = OutOfRange::drop;
  ScatterSettings() = default;
  ScatterSettings(OutOfRange outside) : out_of_range(outside) {}  // NOLINT: stands for them
};

namespace detail {
template <class Kind> consteval bool demand_scatter() {
  static_assert(!is_mean<Kind>,
                "[tessera] there is no scatter by mean; scatter sums and counts, and divide");
  return true;
}
/// How scatter<Kind, E> is made.
template <class Kind, Equation E> struct ScatterBy {
  static_assert(demand_scatter<Kind>());
  static constexpr ops::Scatter make(const TensorDescs&) {
    return {parse(E.view()), Kind::reduction};
  }
};

/// A: the tensor that is scattered into (perhaps), the indices, the updates.
template <class Kind, Equation E, class Out, class Bound, class... A>
typename Typed<ScatterBy<Kind, E>, Out, A...>::result run_scatter(const Extents& extents,
                                                                  const ScatterSettings& settings,
                                                                  const CallOptions& call,
                                                                  const A&... operands) {
  using Call = Typed<ScatterBy<Kind, E>, Out, A...>;
  use_indexed<typename Call::type>();
  ops::Scatter operation = Call::operation;
  operation.out_of_range = settings.out_of_range;
  operation.indexed = extents;
  return run_typed<Call, Bound>(E.view(), call, operation, {&operands.core()...});
}
}  // namespace detail

/// Returns x with the updates joined into it at the indices, by the equation E; its spec is x's, or
/// `Out`. Communication: none when the shardings fit and no letter of the updates alone is split;
/// else, over the axes that split those, an all-reduce of the result (a reduce-scatter where it is
/// split over them, none where `Out` leaves them open), or updates and indices are gathered, where
/// that costs less. Collective over the mesh. Throws ShapeError when extents disagree. Source:
/// XLA's partitioning of scatters, as GShard's operators (section 3.3).
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor I, TypedTensor U>
auto scatter(const A& x, const I& indices, const U& updates, const ScatterSettings& settings = {},
             const CallOptions& call = Where::here()) {
  return detail::run_scatter<Kind, E, Out, Bound>({}, settings, call, x, indices, updates);
}
/// This overload takes two indexed letters.
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor I, TypedTensor J, TypedTensor U>
auto scatter(const A& x, const I& first, const J& second, const U& updates,
             const ScatterSettings& settings = {}, const CallOptions& call = Where::here()) {
  return detail::run_scatter<Kind, E, Out, Bound>({}, settings, call, x, first, second, updates);
}
/// Without an initial tensor: `extents` are those of the indexed letters; an element without
/// updates is the reduction of no elements (0 for a sum), and 0 for Set.
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor I,
          TypedTensor U>
auto scatter(const I& indices, const U& updates, const Extents& extents,
             const ScatterSettings& settings = {}, const CallOptions& call = Where::here()) {
  return detail::run_scatter<Kind, E, Out, Bound>(extents, settings, call, indices, updates);
}
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor I,
          TypedTensor J, TypedTensor U>
auto scatter(const I& first, const J& second, const U& updates, const Extents& extents,
             const ScatterSettings& settings = {}, const CallOptions& call = Where::here()) {
  return detail::run_scatter<Kind, E, Out, Bound>(extents, settings, call, first, second, updates);
}

/// Joins the updates into x where it lies, under x's own spec. Communication: as scatter.
/// Collective over the mesh. Throws UsageError when x shares memory with the indices or updates.
template <class Kind, Equation E, class Bound = NoContract, TypedTensor A, TypedTensor I,
          TypedTensor U>
void scatter_into(A& x, const I& indices, const U& updates, const ScatterSettings& settings = {},
                  const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::ScatterBy<Kind, E>, typename A::spec, A, I, U>;
  detail::use_indexed<typename A::value_type>();
  ops::Scatter operation = Typed::operation;
  operation.out_of_range = settings.out_of_range;
  operation.in_place = true;
  (void)detail::run({operation,
                     {&indices.core(), &updates.core(), &x.core()},
                     detail::typed_site<Typed, Bound>(E.view(), call, x.core()),
                     detail::changing(x.core())});
}

/// This overload takes everything at run time; without a sharding the result is sharded as x is.
template <class Kind>
DynamicTensor scatter(std::string_view equation, const DynamicTensor& x,
                      const DynamicTensor& indices, const DynamicTensor& updates,
                      const ScatterSettings& settings = {},
                      const CallOptions& call = Where::here()) {
  return scatter<Kind>(equation, {x, indices, updates}, Extents(), settings, call);
}
/// For the tensors of the equation, in its order; `extents` as above. Without a sharding the result
/// is sharded as x is, or as the updates are where there is none.
template <class Kind>
DynamicTensor scatter(std::string_view equation, const detail::DynamicTensors& tensors,
                      const Extents& extents, const ScatterSettings& settings = {},
                      const CallOptions& call = Where::here()) {
  static_assert(detail::demand_scatter<Kind>());
  const detail::CallSite site = call.sharded_site(equation);
  return detail::run_dynamic(
      equation, call,
      ops::Scatter{parse(equation), Kind::reduction, settings.out_of_range, extents},
      detail::operands_of({}, tensors, 2, site));
}

}  // namespace tessera
