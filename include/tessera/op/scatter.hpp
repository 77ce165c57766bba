// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Updates joined into a tensor at indices that are known only when the program runs: gradients of
/// look-ups, histograms, tokens sent to their places. The adjoint of a scatter by sum is a take
/// (op/take.hpp) of what comes back, for the updates.
///
///     auto t = scatter<Sum, "vm,bs,bsm->vm">(table, ids, updates);  // t[ids[b,s], m] += ...
///     auto h = scatter<Sum, "bs,bsm->vm">(ids, updates, {100});     // into zeros
///     auto s = scatter<Set, "vm,bs,bsm->vm">(table, ids, updates);  // the last one stays
///     scatter_into<Sum, "vm,bs,bsm->vm">(table, ids, updates);      // in place
///
/// Kinds are Sum, Product, Max, Min (of bool Any, All) and Set. Letters of the result that the
/// updates lack are indexed, by one tensor of indices each, in the result's order. Letters that
/// the result lacks are the updates' own: all along them go in. A letter of indices and result is a
/// batch.
///
/// An update whose index lies outside its dimension is left out, as XLA's scatter does, or clamped
/// into it (OutOfRange::clamp).
///
/// Laws: equals plain loops over the whole tensors, updates in row-major order, for every mesh and
/// spec: integers, Max, Min and Set to the bit, float sums to rounding (each process sums a row in
/// double). Set keeps the last update in row-major order. What is sent does not depend on the
/// indices; the same mesh and inputs give the same bits.
#include <tessera/op/take.hpp>

namespace tessera {

/// Writes updates over what was there.
struct Set {
  static constexpr Reduction reduction = Reduction::none;
};

namespace detail {
template <class Kind, class U> consteval bool demand_scatter() {
  static_assert(!std::is_same_v<Kind, Mean>,
                "[tessera] there is no scatter by mean; scatter sums and counts, and divide");
  if constexpr (Kind::reduction == Reduction::none)
    return true;
  else
    return demand_elements<check_reduce_type(Kind::reduction, false, dtype_of<U>).rule, U>();
}

/// A: the operand (perhaps), the indices, the updates.
template <class Kind, Equation E, class Out, class Updates, class... A> struct ScatterCall {
  using mesh = typename CommonMesh<A...>::type;
  using type = typename Updates::value_type;
  static_assert(demand_scatter<Kind, type>());
  static_assert(demand_out<mesh, Out>());
  static constexpr Terms terms = parse(E.view());
  static constexpr Shardings operands{A::sharding()...};
  static constexpr Sharding make_value() {
    const Sharding whole = Sharding::replicated(terms.result.size());
    if constexpr (!std::is_same_v<Out, Deduced>)
      return lower<mesh, Out>();
    else if (!check_scatter(terms, Kind::reduction, operands, whole).ok())
      return whole;
    else
      return deduce_scatter(terms, operands);
  }
  static constexpr Sharding value = make_value();
  static constexpr Verdict verdict = check_scatter(terms, Kind::reduction, operands, value);
  static constexpr bool sound = verdict.ok() && (founded<A> && ...);
  static_assert(demand<ScatterCall, A...>());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return verdict.ok() ? needs_of_scatter(terms, Kind::reduction, operands, value, on, contract)
                        : Contract::nothing();
  }
  using result = Result<type, mesh, ScatterCall>;
};

template <class Kind, Equation E, class Out, class Bound, class Updates, class... A>
typename ScatterCall<Kind, E, Out, Updates, A...>::result run_scatter(const Extents& indexed,
                                                                      OutOfRange out_of_range,
                                                                      Where where,
                                                                      const Extras& extras,
                                                                      const A&... operands) {
  using Typed = ScatterCall<Kind, E, Out, Updates, A...>;
  use_indexed<typename Typed::type>();
  return typename Typed::result(
      scatter(Typed::terms, Kind::reduction, OperandList{&operands.core()...}, indexed,
              out_of_range, Typed::value, {E.view(), where, bound<Typed, Bound>()}, extras));
}
template <class Kind>
DynamicTensor scatter_dynamic(std::string_view equation, const OperandList& operands,
                              const Extents& indexed, const Sharding* out, OutOfRange out_of_range,
                              Where where) {
  const Terms terms = parse(equation);
  const CallSite site{equation, where};
  if (out == nullptr) {
    const Sharding whole = Sharding::replicated(terms.result.size());
    require(check_scatter(terms, Kind::reduction, shardings_of(operands), whole), terms,
            mesh_of(*operands[0], site), site);
  }
  return DynamicTensor(
      scatter(terms, Kind::reduction, operands, indexed, out_of_range,
              out != nullptr ? *out : deduce_scatter(terms, shardings_of(operands)), site));
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
auto scatter(const A& x, const I& indices, const U& updates,
             OutOfRange out_of_range = OutOfRange::drop, Where where = Where::here()) {
  static_assert(detail::demand_indices<I>() &&
                detail::demand_one_type<Rule::update_types_alike, A, U>());
  return detail::run_scatter<Kind, E, Out, Bound, U>({}, out_of_range, where, {}, x, indices,
                                                     updates);
}
/// The same with two indexed letters.
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A,
          TypedTensor I, TypedTensor J, TypedTensor U>
auto scatter(const A& x, const I& first, const J& second, const U& updates,
             OutOfRange out_of_range = OutOfRange::drop, Where where = Where::here()) {
  static_assert(detail::demand_indices<I, J>() &&
                detail::demand_one_type<Rule::update_types_alike, A, U>());
  return detail::run_scatter<Kind, E, Out, Bound, U>({}, out_of_range, where, {}, x, first, second,
                                                     updates);
}
/// Without a tensor to begin with: `extents` has those of the indexed letters; where no update
/// goes, the result is what a reduction of nothing gives (0 for a sum), and 0 where updates are
/// set.
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor I,
          TypedTensor U>
auto scatter(const I& indices, const U& updates, const Extents& extents,
             OutOfRange out_of_range = OutOfRange::drop, Where where = Where::here()) {
  static_assert(detail::demand_indices<I>());
  return detail::run_scatter<Kind, E, Out, Bound, U>(extents, out_of_range, where, {}, indices,
                                                     updates);
}
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor I,
          TypedTensor J, TypedTensor U>
auto scatter(const I& first, const J& second, const U& updates, const Extents& extents,
             OutOfRange out_of_range = OutOfRange::drop, Where where = Where::here()) {
  static_assert(detail::demand_indices<I, J>());
  return detail::run_scatter<Kind, E, Out, Bound, U>(extents, out_of_range, where, {}, first,
                                                     second, updates);
}

/// Joins the updates into x where it lies, under x's own spec. Communication: as scatter.
/// Collective over the mesh. Throws UsageError when x shares memory with the indices or updates.
template <class Kind, Equation E, class Bound = NoContract, TypedTensor A, TypedTensor I,
          TypedTensor U>
void scatter_into(A& x, const I& indices, const U& updates,
                  OutOfRange out_of_range = OutOfRange::drop, Where where = Where::here()) {
  static_assert(detail::demand_indices<I>() &&
                detail::demand_one_type<Rule::update_types_alike, A, U>());
  detail::Extras extras;
  extras.into = &x.core();
  extras.destination = Destination::accumulated;
  (void)detail::run_scatter<Kind, E, typename A::spec, Bound, U>({}, out_of_range, where, extras, x,
                                                                 indices, updates);
}

/// The same with everything known at run time; without `out` the result is sharded as x is.
template <class Kind>
DynamicTensor scatter(std::string_view equation, const DynamicTensor& x,
                      const DynamicTensor& indices, const DynamicTensor& updates,
                      OutOfRange out_of_range = OutOfRange::drop, Where where = Where::here()) {
  return detail::scatter_dynamic<Kind>(equation, {&x.core(), &indices.core(), &updates.core()}, {},
                                       nullptr, out_of_range, where);
}
template <class Kind>
DynamicTensor scatter(std::string_view equation, const DynamicTensor& x,
                      const DynamicTensor& indices, const DynamicTensor& updates,
                      const Sharding& out, OutOfRange out_of_range = OutOfRange::drop,
                      Where where = Where::here()) {
  return detail::scatter_dynamic<Kind>(equation, {&x.core(), &indices.core(), &updates.core()}, {},
                                       &out, out_of_range, where);
}
/// Of the tensors that the equation speaks of, in its order; `extents` as above.
template <class Kind>
DynamicTensor scatter(std::string_view equation, std::initializer_list<DynamicTensor> tensors,
                      const Extents& extents, const Sharding& out,
                      OutOfRange out_of_range = OutOfRange::drop, Where where = Where::here()) {
  detail::OperandList operands;
  for (const DynamicTensor& one : tensors) operands.push_back(&one.core());
  if (operands.size() < 2)
    throw UsageError("scatter: " + std::to_string(operands.size()) +
                         " tensors are given; give indices and updates at least",
                     where);
  return detail::scatter_dynamic<Kind>(equation, operands, extents, &out, out_of_range, where);
}

}  // namespace tessera
